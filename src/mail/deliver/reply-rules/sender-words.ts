/** Words about the sender and the route of the mail. */
import { refused, together } from './near.ts';
import type { RuleEntry } from './reply-rule.ts';

const relay = together(
  String.raw`\b(?:un)?relay(?:ing|ed)?\b`,
  `${refused}|unable to|not configured to|(?:do|does) not`,
  5,
);
const sender = together(
  String.raw`\b(?:sender(?:'s)?|mail ?from)\b`,
  String.raw`${refused}|(?:unknown|not found|does not exist|invalid|fake|forged|verif(?:y|ication)|unverified)\b`,
  3,
);

export const senders: readonly RuleEntry[] = [
  {
    name: 'loop',
    text: /too many hops|hop count exceeded|received:?['"]? (?:data )?header(?:s exceeds| counts)|mail loop|loop detected|looping message|loops? back to (?:me|myself|itself)\b|points? back to\b|best-preference MX/i,
    category: 'loop',
    quotes: ['552 looping message.', '554 sendall: too many hops 19 (17 max)'],
  },
  {
    name: 'relay-denied',
    text: new RegExp(
      `${relay}|no relaying|(?:do|does)(?: not|n't) handle mail for(?! (?:that|this) user)|not a gateway|allowed rcpthosts|to use me \\S{1,80} as a relay|local users? only|only (?:allowed |accepted )?(?:for|from|to) local`,
      'i',
    ),
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
    text: /domain of sender address|\b(?:sender|from:?)(?: ?address)?(?:'s)? ?domain (?:must|is required)|requires (?:a )?valid sender|sender address rejected: domain not found|unresolvable RFC\.5321 from domain|From: Domain is invalid|Domain may not exist or DNS check failed|Invalid DNS MX or A\/AAAA/i,
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
    text: new RegExp(
      `${sender}|postmaster verification failed|SendAsDenied|badmailfrom|mail from known senders|sending for this account is disabled`,
      'i',
    ),
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
    text: new RegExp(
      together(String.raw`\b(?:helo|ehlo)\b(?!,)`, `${refused}|(?:bad|invalid|should|must)\\b`, 3),
      'i',
    ),
    category: 'policy',
    quotes: [
      '450 4.7.1 <HomeServer.blablabla_crappyRouter>: Helo command rejected: Host not found',
      '501 5.5.4 HELO/EHLO argument is invalid.',
    ],
  },
];
