/** Words about this server: its identity, the amount of its mail, and blocklists. */
import { refused, together } from './near.ts';
import type { RuleEntry } from './reply-rule.ts';

/** Us, by what the host sees of us; who refuses is another: "rejected by 192.0.2.1". */
const us = String.raw`(?<!\bby (?:(?!your\b)[a-z]{1,20} ){0,2})\[?\b(?:IPs?|\d{1,3}(?:\.\d{1,3}){3}|client host|interface|your (?:server|host|network|domain|provider|system))\b\]?`;
const client = together(us, `${refused}|(?:bad|invalid|filtered|hang ?up)\\b`, 3);

/** An amount in a time, whatever the host counts. */
const amount = together(
  String.raw`\b(?:send(?:ing|er)?|daily|hourly|monthly|submission|relay|rate|frequency|outgoing|outbound|rcpts?(?: to)?)\b`,
  String.raw`(?:quota|limit(?:s|ed|ation)?|too (?:many|much)|number)\b`,
  2,
);

export const reputation: readonly RuleEntry[] = [
  {
    name: 'greylisted',
    code: /^4/,
    text: /gr[ae]y-?list|^(?:(?:message|mail|temporarily) ){0,2}(?:is |was )?delayed by\b/i,
    category: 'greylisting',
    quotes: [
      '450 4.2.0 <greyforktest@mailbox.org>: Recipient address rejected: Greylisted, see',
      '451 4.7.1 Greylisting in action, please come back in 00:09:00',
      '450 <[]>: Client host rejected: Policy Rejection- GreyList learning.',
    ],
  },
  {
    name: 'reverse-dns',
    text: /\bPTR\b|reverse (?:DNS|host|name|look-?up|mapping)|\brDNS\b|no DNS A-data|\bDNS[:-](?:NR|P3)\b|\b(?:host|IP|server)(?: \S{1,60}){0,2} (?:must|can't|can ?not|could not|does not) (?:be )?resolved?\b|cannot find your hostname|\bname lookup failed/i,
    category: 'auth',
    quotes: [
      '554 mail.com (mxgmxus002) Nemesis ESMTP Service not available No SMTP service Bad DNS PTR resource record.',
      '571 No PTR Record found. Reverse DNS required: 203.0.113.22',
      '450 4.7.1 Client host rejected: cannot find your reverse hostname',
      '450 4.7.1 Access denied. IP name lookup failed [192.0.2.222]',
    ],
  },
  {
    name: 'sender-authentication',
    text: /\bDMARC\b|\bDomainKeys\b|\bSPF\b|\bDKIM\b(?!-)|unauthenticated|sender policy framework|sender id \(pra\)|does not have authentication information|Purported Responsible Address|mismatches client ip/i,
    category: 'auth',
    quotes: [
      "554 5.7.1 Your message was rejected due to libsisimai.org's DMARC policy.",
      '550 Bad SPF records for [example.org:192.0.2.2]',
      '550 5.7.1 This message does not have authentication information or fails to pass authentication checks.',
      '550 domain [example.com] mismatches client ip 192.0.2.225.',
    ],
  },
  {
    name: 'too-many-unknown-recipients',
    text: /(?:too many|excessive) (?:invalid|unknown|bad) (?:recipients|rcpt|users|addresses)\b|dictionary attack/i,
    category: 'policy',
    quotes: ['550 Too many invalid recipients', '554 Too many unknown RCPT TO addresses from host'],
  },
  {
    name: 'too-many-connections',
    text: /too many (?:concurrent |simultaneous )?(?:smtp )?(?:connections|sessions)|maximum number of concurrent connections|concurrent connections limit|max concurrent sessions/i,
    category: 'rate_limit',
    fault: 'infrastructure',
    passes: true,
    quotes: [
      '421 Too many concurrent SMTP connections from this IP address; please try again later.',
      '421 4.7.0 Error: too many connections from',
      '421 4.3.2 The maximum number of concurrent connections per resource forest has exceeded a limit',
      '432 4.3.2 Concurrent connections limit exceeded.',
    ],
  },
  {
    // RFC 5321 section 4.5.3.1.10: 552 to RCPT used to mean "too many recipients", and must be read as 452.
    name: 'too-many-recipients',
    text: /too many recipients|separate transaction/i,
    category: 'rate_limit',
    fault: 'infrastructure',
    passes: true,
    signal: null,
    quotes: [
      '552 Too many recipients',
      '452 4.5.3 Domain policy size per transaction exceeded, please try this recipient in a separate transaction.',
    ],
  },
  {
    // The address is one that no person has, so it was never given to the sender (mail/record/auto-pause/).
    name: 'spam-trap',
    text: /\bspam ?-?trap|\bhoney ?-?pot|\btrap (?:address|recipient|hit)\b/i,
    category: 'spam',
    fault: 'sender',
    quotes: ['554 5.7.1 <trap@example.org>: Recipient address rejected: Spamtrap', '550 5.7.1 spamtrap hit'],
  },
  {
    // A link in the mail is listed; the sender may not be.
    name: 'listed-content',
    text: /\b(?:block|black|spam)[ -]?(?:listed)? (?:url|uri|link)s?\b|\b(?:url|uri|link)s? (?:\S{1,60} ){0,9}(?:(?:is|are|was|were) )?(?:block|black)?listed\b|\b(?:local )?(?:URIBL|SURBL) polic|(?:rejected|filtered|blocked) by (?:URIBL|SURBL)\b/i,
    category: 'spam',
    quotes: [
      '550 Blacklisted URL in message.',
      '554 rejected due to spam URL in content',
      '550 5.7.1 Your email breaches local URIBL policy.',
    ],
  },
  {
    name: 'too-many-refused-recipients',
    text: /(?:too many|excessive) (?:rejected|refused|failed) recipients/i,
    category: 'blocked',
    quotes: ['550 5.7.1 Excessive rejected recipients'],
  },
  {
    name: 'rate-limited',
    text: new RegExp(
      `${amount}|rate-limit|(?:connection|submission) rate|too many (?:recent )?(?:messages|mails|e-?mails)(?! (?:on|in) )|too much (?:e-?)?mail\\b(?! (?:data|stored|in (?:his|her|the|their|your|its) (?:mail ?box|inbox)))|\\blimits? (?:for|on|of) (?:how many|the number)|slow down|try again slower|excessive volume|exceeded the max(?:imum)? (?:number of )?(?:e-?mails|messages) (?:per|an) (?:minute|hour|day)|Intrusion prevention active`,
      'i',
    ),
    category: 'rate_limit',
    passes: true,
    quotes: [
      '452 4.3.2 Connection rate limit exceeded.',
      '421 4.4.2 Message submission rate for this client has exceeded the configured limit',
      '450 too many emails from this sender, please try again later',
      "554 neko-22.nyaan.r.example.net : CAT : neko22 : CAT : You've reached your daily relay quota",
      '550 5.4.5 Daily SMTP relay limit exceeded for user.',
      '421 Rate limit reached. Please try again later',
    ],
  },
  {
    name: 'blocklist',
    text: /block(?:ed)? (?:using|by(?! the recipient)|for)\b|block(?:ed)? ?-?list|black ?-?list|\bDNSBL|\bRBL\b|spamhaus|sorbs\.net|(?<!not )list(?:ed|ing) (?:at|in|on|by)\b|\breputation\b|Blocked - see http|@:blocked\b|(?:server|host|is) (?:is )?currently blocked|too much spam from|due to abuse\b|\bin prison\b/i,
    category: 'blocked',
    quotes: [
      '550 5.7.1 Service unavailable, Client host [50.31.49.41] blocked using Spamhaus.',
      '550 5.7.1 [192.0.2.22 18] Our system has detected that this message is likely suspicious due to the very low reputation of the sending IP address.',
      '554 Blocked - see https://support.proofpoint.com/dnsbl-lookup.cgi?ip=192.0.2.225',
      '550 5.2.1 Mailbox unavailable. Your IP address 11.22.33.44 is blacklisted using SPAMHAUS-XBL.',
      '553 5.3.0 flpd594 DNSBL:RBL 521< 1.2.3.4 >_is_blocked.',
      '553 http://www.spamhaus.org/query/bl?ip=192.0.2.222',
      "554 mx.example.com Your access to this mail system has been rejected due to the sending MTA's poor reputation.",
    ],
  },
  {
    name: 'client-refused',
    text: new RegExp(
      `${client}|host network not allowed|dial-?up|not allowed to connect|access to submit messages to this e-mail system has been rejected|use the smtp server of your ISP|not allowed to send (?:us )?mail|not allowed to send from that|not in (?:the |our |an )?approved list`,
      'i',
    ),
    category: 'blocked',
    quotes: [
      '450 4.7.1 <c135.kyoto.example.ne.jp[192.0.2.56]>: Client host rejected: may not be mail exchanger',
      '554 Host network not allowed - https://community.mimecast.com/docs/DOC-1369#554',
      '554 Dialup/transient IP not allowed.',
      '554 5.7.1 You are not allowed to connect',
      '550 #5.7.1 Your access to submit messages to this e-mail system has been rejected.',
    ],
  },
];
