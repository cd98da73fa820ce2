/** Replies of other providers and filters, most of them with a misleading code. */
import type { RuleEntry } from './reply-rule.ts';

export const providers: readonly RuleEntry[] = [
  {
    name: 'yahoo-permanently-deferred',
    text: /All messages from \S{1,60} (?:will be )?permanently deferred/i,
    category: 'blocked',
    quotes: [
      '421 4.7.1 [TS03] All messages from x.x.x.x permanently deferred',
      '553 5.7.2 [TSS09] All messages from 192.0.2.25 will be permanently deferred; Retrying will NOT succeed.',
    ],
  },
  {
    name: 'yahoo-rate',
    code: /^4/,
    text: /\[TSS?\d\d\]|Messages? from \S{1,60} temporarily deferred/i,
    category: 'rate_limit',
    quotes: [
      '421 4.7.0 [TSS04] Messages from 192.0.2.192 temporarily deferred due to unexpected volume or user complaints',
      '421 4.7.0 [TS02] Temporarily deferred',
      '421 Message from x.x.x.x temporarily deferred - 4.16.50',
    ],
  },
  {
    // A limit of this session only; the host itself is not overloaded.
    name: 'session-limit',
    text: /max(?:imum)? (?:number of )?(?:messages?|mails?|e-?mails?) (?:per|in|for) (?:(?:one|a|this) )?(?:connection|session)|Error: too many errors/i,
    category: 'rate_limit',
    fault: 'infrastructure',
    signal: null,
    quotes: [
      '421 Max message per connection reached, closing transmission channel',
      '421 4.7.0 me.com Error: too many errors',
    ],
  },
  {
    // service.mail.qq.com: the limits are temporary. "Mailbox unavailable" means that the mailbox gets too much mail.
    name: 'tencent-rate',
    text: /^(?:Ip|Domain|Sender|Connection) frequency limited/i,
    category: 'rate_limit',
    passes: true,
    quotes: ['550 Ip frequency limited', '550 Connection frequency limited', '550 Sender frequency limited.'],
  },
  {
    name: 'tencent-mailbox-rate',
    text: /^Mailbox unavailable or access denied/i,
    category: 'rate_limit',
    fault: 'recipient',
    passes: true,
    signal: 'working',
    quotes: ['550 Mailbox unavailable or access denied'],
  },
  {
    name: 'netease-rate',
    text: /^(?:HL:(?:ICC|IFC|IFQ)|MI:(?:DMC|SFQ)|RP:DRC)\b/,
    category: 'rate_limit',
    passes: true,
    quotes: ['554 HL:ICC', '554 HL:IFQ'],
  },
  {
    name: 'netease-blocked',
    text: /^(?:HL:(?:IHU|IPB|REP|MEP)|DT:RBL|WM:BL[IU])\b/,
    category: 'blocked',
    quotes: ['554 HL:IPB', '450 HL:REP'],
  },
  {
    name: 'netease-spam',
    text: /^DT:S(?:PM|UM)\b/,
    category: 'spam',
    quotes: ['554 DT:SPM 163 smtp12,'],
  },
  {
    // Orange, Wanadoo (OFR) and La Poste (LPN) end their replies with a number that gives the reason.
    name: 'orange-blocked',
    text: /\b(?:OFR|LPN)\w{0,8}_(?:101|102|630)\b/i,
    category: 'blocked',
    quotes: [
      '550 mwinf5c04 ME Adresse IP source bloquee pour incident de spam.',
      '554 5.7.1 <xxxx.xxxx.net[#.#.#.#]:49309>: Client host rejected: #216 lpn LPN000_630',
    ],
  },
  {
    name: 'orange-slow-down',
    text: /\b(?:OFR|LPN)\w{0,8}_(?:10[3-9]|201|42[34]|50[35]|999)\b/i,
    category: 'rate_limit',
    passes: true,
    quotes: [
      '550 5.5.0 Service refuse. Veuillez essayer plus tard. service refused, please try later. LPN001_108',
      '421 mwinf5c77 ME Service refuse. Veuillez essayer plus tard. Service refused, please try later. OFR_999 [999]',
      '421 mwinf5c63 ME Trop de connexions, veuillez verifier votre configuration. Too many connections, slow down. OFR005_104 [104]',
    ],
  },
  {
    name: 'orange-spam',
    text: /\b(?:OFR|LPN)\w{0,8}_(?:506|510)\b/i,
    category: 'spam',
    quotes: [
      '550 5.2.0 Mail rejete. Mail rejected. OFR_506 [506]',
      '550 5.5.0 Service refuse. Veuillez essayer plus tard. service refused, please try later. LPN007_510',
    ],
  },
  {
    // A limit per hour, sent with the code of an unknown recipient.
    name: 'godaddy-rate',
    text: /has sent to too many recipients this hour/i,
    category: 'rate_limit',
    passes: true,
    quotes: [
      '550 5.1.1 <kijitora@example.com> - 203.0.113.222 has sent to too many recipients this hour. IB607',
    ],
  },
  {
    // cox.com: blocked for at most a day.
    name: 'cox-blocked-for-a-day',
    text: /\bAUP#CDRBL\b/,
    category: 'blocked',
    passes: true,
    quotes: ['550 5.1.0 <bounce@mailer.cnt1.example.com> sender rejected.'],
  },
  {
    // spectrum.net: 1300 to 1340 are too many connections, 1350 to 1490 too much mail.
    name: 'spectrum-rate',
    text: /\bAUP#I\w{0,2}-1(?:3[0-9]|4[0-9])0\b/,
    category: 'rate_limit',
    passes: true,
    quotes: [
      '550 5.1.0 <010001725d8ad4fc-9fe8fb1f-0292-430b-a634-1eba65166dbb-000000@amazonses.com> sender rejected.',
    ],
  },
  {
    name: 'facebook-recipient-preferences',
    text: /\bRCP-P2\b/,
    category: 'policy',
    fault: 'recipient',
    quotes: ['550 5.1.1 RCP-P2 http://postmaster.facebook.com/response_codes?ip=192.0.2.135#rcp'],
  },
  {
    name: 't-online-blocked',
    text: /A problem occurred\. \(?Ask your postmaster|None\/bad reputation/i,
    category: 'blocked',
    quotes: ['554 IP=192.0.2.254 - A problem occurred.', '554 IP=<Ihre.IP.Adresse> - None/bad reputation.'],
  },
  {
    // Mimecast's own page on the code: "subjected to greylisting".
    name: 'mimecast-greylisting',
    code: /^4/,
    text: /Internal resources? (?:is |are )?temporarily unavailable/i,
    category: 'greylisting',
    quotes: [
      '451 Internal resource is temporarily unavailable - https://community.mimecast.com/docs/DOC-1369#451',
    ],
  },
  {
    name: 'mimecast-spam',
    text: /\bMCSpamSignature\b/,
    category: 'spam',
    quotes: ['554 email rejected due to security policies - MCSpamSignature.sa.2.2'],
  },
  {
    // The default texts of rspamd's milter for greylisting and for a soft reject.
    name: 'rspamd-greylisting',
    code: /^4/,
    status: /^4\.7\.1$/,
    text: /^Try again later$/i,
    category: 'greylisting',
    quotes: ['451 4.7.1 Try again later'],
  },
];
