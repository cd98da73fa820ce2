/** Words about the sender and the route of the mail. */
import type { RuleEntry } from './reply-rule.ts';

export const senders: readonly RuleEntry[] = [
  {
    name: 'loop',
    text: /too many hops|hop count exceeded|received:?['"]? (?:data )?header(?:s exceeds| counts)|mail loop|loop detected|looping message|loops? back to (?:me|myself|itself)\b|points? back to\b|best-preference MX/i,
    category: 'loop',
    quotes: ['552 looping message.', '554 sendall: too many hops 19 (17 max)'],
  },
  {
    name: 'relay-denied',
    text: /relay(?:ing)? (?:access )?(?:to \S{1,255} )?(?:denied|disallowed|not permitted|prohibited)|relaying not allowed|no relaying|(?:unable|not (?:currently )?(?:permitted|allowed)) to relay|(?:do|does) not relay|relay of mail is not allowed|(?:do|does)(?: not|n't) handle mail for(?! (?:that|this) user)|not a gateway|not configured to relay|allowed rcpthosts|host denies relay|to use me \S{1,80} as a relay|Mail relay denied/i,
    category: 'policy',
    fault: 'infrastructure',
    quotes: [
      '554 5.7.1 <kijitora@example.com>: Relay access denied',
      "553 sorry, that domain isn't in my list of allowed rcpthosts",
      '550 relay not permitted!',
    ],
  },
  {
    name: 'login-wanted',
    text: /authentication required|requires authentication|only allowed with authentication|receive your mail before sending|SMTP authentication in your mail client/i,
    category: 'policy',
    fault: 'infrastructure',
    quotes: [
      '550 Please turn on SMTP Authentication in your mail client.',
      '530 5.5.1 Authentication Required.',
    ],
  },
  {
    name: 'sender-domain',
    text: /domain of sender address|sender address rejected: domain not found|unresolvable RFC\.5321 from domain|From: Domain is invalid|Domain may not exist or DNS check failed|Invalid DNS MX or A\/AAAA/i,
    category: 'dns',
    fault: 'sender',
    quotes: [
      '553 5.1.8 <root@vagrant-centos65.vagrantup.com>... Domain of sender address root@vagrant-centos65.vagrantup.com does not exist',
      '450 4.1.8 Sender address rejected: Domain not found',
      '451 Message temporarily deferred due to unresolvable RFC.5321 from domain.',
      '550 Domain may not exist or DNS check failed',
    ],
  },
  {
    // Before all rules about users: the unknown user here is the sender.
    name: 'sender-refused',
    text: /postmaster verification failed|SendAsDenied|not accepting mail from this sender|badmailfrom|sender verif|sender was rejected|mail from known senders|sender (?:address )?(?:rejected|blocked|denied|unknown|not found|does not exist)|invalid sender|sender verify|verify mailfrom failed|mail ?from is mismatched|denies the sender|sending for this account is disabled/i,
    category: 'policy',
    quotes: [
      '550 message sending for this account is disabled',
      '501 5.1.8 Sender address rejected',
      '501 5.1.0 Emetteur invalide. Invalid Sender. OFR004_405 [405]',
      '553 5.7.1 <someone@newsxc.net>: Sender address rejected: not owned by user someone@exchange24.net',
    ],
  },
  {
    name: 'helo-refused',
    text: /helo command rejected|HELO\/EHLO argument is invalid|\bhelo (?:\S{1,255} )?(?:has been |is |was )?(?:denied|not accepted|invalid|rejected|refused)\b|(?:bad|invalid) (?:helo|ehlo)\b/i,
    category: 'policy',
    quotes: [
      '450 4.7.1 <HomeServer.blablabla_crappyRouter>: Helo command rejected: Host not found',
      '501 5.5.4 HELO/EHLO argument is invalid.',
    ],
  },
];
