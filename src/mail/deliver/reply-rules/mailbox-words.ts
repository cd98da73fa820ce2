/** Words about the recipient and the mailbox. Rules about the sender come first, because a sender can be "unknown" too. */
import type { RuleEntry } from './reply-rule.ts';
import { unknownUserWords } from './unknown-user-words.ts';

/** The phases in which "unknown user" means the recipient; in reply to MAIL it means the sender. */
const recipientPhases = ['rcpt', 'data', 'dot'] as const;

/** Only that it is refused, whoever or whatever `what` is, beside an identifier of the host; no reason. */
const bareRefusal = (what: string, reason: string) =>
  new RegExp(
    `^[\\s<>@:;.,"'()#-]{0,20}(?:(?:sorry|error|smtp)[,:;]? )?(?:\\d\\.\\d\\.\\d{1,3} )?(?:${what})[\\s<>@:;.,"'()-]{1,20}(?:is |was )?(?:rejected|refused|denied|not accepted)(?:${reason || '(?!)'})?[\\s<>@:;.,"'()!-]{0,20}(?:(?:\\[[^\\]]{0,100}\\]|\\([^)]{0,120}\\)|(?=[\\w.-]{0,39}\\d)[\\w.-]{1,40})[\\s.!]{0,5}){0,2}$`,
    'i',
  );

/** Not of the account that sends. */
const notOurs = "(?<!\\b(?:your|sender|sending|sender's|ihr|votre|su|tu|tuo|suo) )";

const mailboxDisabled = new RegExp(
  [
    String.raw`${notOurs}\b(?:user|account|mail ?box|recipient|(?:mail ?)?address)(?: status)?(?: ["'<(]?@["'>)]?)?:?(?: (?:is|was|has been|now|currently|permanently|administrativ\w{2,4}|been)){0,3} (?:disabled|inactive|deactivated|frozen|suspended|locked|expired|hang ?up|blocked due to inactivity|not (?:yet )?(?:activated|active|enabled))\b`,
    'account (?:is|has been) blocked|inactive email address|^Disabled recipient|is no longer valid|mail receiving disabled|is now disabled with',
    String.raw`\bis a (?:deactivated|disabled|suspended|closed|inactive) (?:mail ?box|account|user|address)|^(?:(?:<?@>?|[.: ])*)(?:deactivated|disabled|suspended|inactive|closed) (?:mail ?box|mbox|account|user|recipient|address)\b|no (?:recipient|user|account|mailbox) activity (?:since|for)\b|address rejected: inactive\b|\buser inactive\b|is inactive (?:on|at|in) (?:this|our)\b`,
    String.raw`${notOurs}\b(?:disabled|locked|closed|suspended|blocked) (?:due to|because of|for) (?:\S{1,20} )?inactivity|extended inactivity|(?:user|recipient|account|mail ?box)(?: @)? (?:has(?: not|n't)|never) (?:entered|logged (?:in|on)(?:to)?|been (?:used|accessed|activated))\b`,
    `(?:user|recipient|account|mail ?box|address)(?: @)? (?:can ?not|can't|is (?:not able|unable) to) receive (?:any )?(?:e-?)?mail|should log in to enable receiving|no longer accepts (?:e-?)?mail`,
    String.raw`${notOurs}\b(?:casilla|cuenta|buz[oó]n|usuario|conta|casella|indirizzo|konto|postfach|mailbox|compte|bo[iî]te)(?: \S{1,30}){0,5} (?:expirad|bloquead|inactiv|desactivad|bloccat|disattivat|zablokowan|nieaktywn|deaktiviert|gesperrt|d[eé]sactiv)`,
  ].join('|'),
  'i',
);

/** In the words of many servers, and in the languages of Exchange. */
const mailboxFull = new RegExp(
  [
    `over (?:(?:its|his|her|their|the) )?(?:(?:disk|mailbox|storage) )?quota|over-?quota|(?<!(?:queue|relay) )quota (?:limit |usage )?(?:is |was |has been )?(?:exceed(?:ed|s)?|reached)|quota (?:is )?over\\b|quota violation|QuotaExceeded`,
    `(?:mail[ _]?(?:box|folder)|inbox|account|storage)(?:(?: of| for)? ["'<(]?@["'>)]?)?[ _](?:is )?(?:almost )?full\\b|\\bfull (?:mail ?box|inbox)|mail ?box space (?:is )?not enough|out of storage space`,
    String.raw`\b(?:not|n't)(?: have)? enough (?:(?:storage|disk|disc|free|mailbox) ?){0,2}space(?! on (?:the |this )?server)|(?:exhausted|overdrawn) (?:\S{1,20} ){0,2}(?:storage|quota|disk ?space)|(?:mail ?box|inbox|account) (?:has )?exceed(?:s|ed)? (?:the )?(?:limit|(?:allowed|maximum) size)|exceeds? (?:the )?(?:allowed|maximum) mail ?box size|exceed maximum mail ?box size|space has (?:been )?used up|receive any more (?:e-?)?mail|over the maximum allowed mail ?box size|(?:mail ?box|storage) limit ex\w{1,3}eded|larger than the (?:space|quota) available|(?:exceeds?|over) (?:the )?(?:maximum )?allowed (?:message count|number of messages)|exceed(?:s|ed)? maximum allowed storage|zu ?viele (?:e-?)?mails auf dem server|too many messages (?:on the server|in (?:the |his |her |their )?(?:mail ?box|inbox))`,
    String.raw`\b(?:mailbox|inbox|storage|disk) (?:size |storage )?(?:limit|quota|space)(?: has been| is)? (?:exceeded|reached|full)`,
    String.raw`exceed(?:ed|s|ing)? (?:(?:the|their|his|her|his/her|its) )?(?:(?:allocated|allowed|maximum|mailbox|disk|account) ){0,2}(?:storage(?! allocation)|quota)\b|(?:exceed(?:ed|s)?|over|out of) (?:the )?(?:e-?mail|dropfile(?: size)?|space|allowed|mail) quota|\bout of quota|over quote\b`,
    String.raw`postfach(?: \S{1,30}){0,3} (?:voll|überfüllt)|bo[iî]te(?: \S{1,30}){0,5} pleine|(?:buz[oó]n|casilla|mail ?box)(?: \S{1,30}){0,4} llen[oa]|casella(?: \S{1,30}){0,5} piena|caixa(?: \S{1,30}){0,5} cheia`,
    String.raw`(?:postvak|mailbox)(?: \S{1,30}){0,4} vol\b|skrzynka(?: \S{1,30}){0,3} (?:pełna|przepełniona|zapełniona)|ящик(?: \S{1,30}){0,3} (?:переполнен|заполнен)`,
    '(?:邮箱|郵箱|信箱).{0,10}(?:已满|已滿)|メールボックス.{0,20}(?:いっぱい|一杯|容量)|사서함.{0,20}(?:가득|꽉)',
  ].join('|'),
  'i',
);

/** Not the domain that the mail comes from. */
const notSender = "(?<!\\b(?:sender|from|your|[he]{2}lo|client)(?:'s)? )";
const named = '(?: (?!name )["\'<(]?[^\\s"\'<>()]{1,255}["\'>)]?)?';

const unknownDomain = new RegExp(
  [
    'host or domain name not found',
    String.raw`${notSender}(?:unknown (?:host|domain|mail server)\b|\b(?:host|domain) unknown|\b(?!domain not found)(?:domain|host)${named} (?:does(?: not|n't) exist|(?:was|is|could)? ?(?:not|n't) (?:be )?(?:found|resolved)))`,
    String.raw`no such (?:domain|host)\b|domain is not reachable|non-?existent (?:domain|host)s?\b|\bNXDOMAIN\b|name or service not known|name service error for (?:name|domain)=\S{1,255} type=\w{1,10}:|illegal host\/domain|unrouteable mail domain|(?:^|dns error: )domain name not found`,
    String.raw`(?:not|n'?t) find (?:a|any) (?:mail exchanger|host (?:named|by that name))|no (?:valid )?(?:mx|hosts?|mail (?:exchanger|host|server)s?)(?: (?:hosts?|records?|servers?))?(?: found\b| (?:found )?for\b)|lookup failure: host \S{1,255} not found|record indicated no SMTP service`,
    String.raw`^(?:[\w-]{1,63}\.){1,8}[a-z]{2,20} (?:does(?: not|n't) exist|is unknown)`,
  ].join('|'),
  'i',
);

export const mailboxes: readonly RuleEntry[] = [
  {
    // A 5xx, but the mailbox will work again.
    name: 'mailbox-locked-for-now',
    // Postfix says "delivery temporarily suspended" if it reaches no host.
    text: /(?<!delivery )temporar(?:y|ily) (?:locked|disabled|suspended|inactive|deactivated)|(?:mail ?box|account)(?: @)?(?: is| was)? temporarily (?:unavailable|not available)|currently disabled, (?:please )?try again/i,
    category: 'mailbox_disabled',
    passes: true,
    quotes: [
      '550 5.7.1 <kijitora@example.com>: Recipient address rejected: User kijitora@example.com temporary locked.',
    ],
  },
  {
    name: 'mailbox-disabled',
    phases: recipientPhases,
    text: mailboxDisabled,
    // A full one is disabled, too, until it is emptied.
    unless: mailboxFull,
    category: 'mailbox_disabled',
    quotes: [
      '554 delivery error: dd Sorry your message to kijitora@example.co.jp cannot be delivered. This account has been disabled or discontinued [#102].',
      '550 5.5.0 Le compte du destinataire est bloque. The recipient account is blocked. LPN007_426',
      '550 Mailbox is frozen.',
      '554 delivery error: dd example@example.com is no longer valid.',
    ],
  },
  {
    name: 'mailbox-full',
    text: mailboxFull,
    category: 'mailbox_full',
    quotes: [
      '552 5.1.1 Boite du destinataire pleine. Recipient overquota. OFR_417 [417]',
      '522 5.2.0 Delivery failed: Over quota',
      '552 Error: disk quota exceeded',
      '552 5.1.1 <example@comcast.net> recipient rejected - extended quota violation',
      '451 domain.ru prohibited. Disk quota exceeded',
    ],
  },
  {
    // The address lives elsewhere, and the mail goes there.
    name: 'delivers-elsewhere',
    phases: recipientPhases,
    text: /\b(?:but|and|so)(?: (?:we|it|i))? will (?:still )?(?:be )?(?:try to )?(?:deliver|forward|redirect)/i,
    category: 'other',
    quotes: ['550 User unknown, but will deliver to bob@example.org'],
  },
  {
    // A look-up that gave no answer, in the words of relays that returned our mail: it says nothing about the domain.
    name: 'dns-trouble',
    phases: recipientPhases,
    text: /MX records point to non-?existent|\b(?:host|domain)(?: \S{1,255})? (?:not found|unknown|not resolved)[,;:. ] ?(?:please )?try (?:again|later)|malformed (?:or unexpected )?name ?server|host lookup did not complete|look-?up failed temporarily|host (?:name )?look-?up (?:failed|failure)(?!.{0,60}(?:not found|nxdomain|not exist))|temporary (?:failure in name resolution|(?:dns|mx|name|resolver|lookup|resolution) (?:\w{1,20} )?(?:failure|error|problem))|\bSERVFAIL\b|\bdns (?:\w{1,20} ){0,3}?(?:timed? ?-?out|temporar|(?:error|failure|problem)(?!:|.{0,60}(?:not found|nxdomain|not exist)))|(?:error|failure|problem) (?:in|of|during|with) (?:the )?dns\b|name ?server (?:timed? ?out|timeout|failure|is (?:down|unreachable))/i,
    category: 'dns',
    fault: 'infrastructure',
    passes: true,
    quotes: [
      '550 5.4.3 Host or domain name not found. Name service error for name=example.org type=MX: Host not found, try again',
    ],
  },
  {
    // RFC 7505 and RFC 7504: nobody at this domain takes mail.
    name: 'domain-takes-no-mail',
    phases: recipientPhases,
    text: /(?<!sender address rejected: )domain (?:\S{1,255} )?(?:does(?: not|n't)|will not|do not) (?:accept|receive|take) (?:any )?(?:e-?)?mail\b(?! from)/i,
    category: 'dns',
    quotes: [
      '550 5.1.10 <ann@example.org>: Recipient address rejected: Domain example.org does not accept mail (nullMX)',
    ],
  },
  {
    name: 'host-takes-no-mail',
    phases: recipientPhases,
    code: /^(?:521|556)$/,
    status: /^\d\.3\.2$/,
    category: 'dns',
    quotes: ['521 5.3.2 Host does not accept mail'],
  },
  {
    // The result of a DNS look-up by a relay that had accepted our mail, so it appears in bounces rather than in replies.
    name: 'unknown-domain',
    phases: recipientPhases,
    // X.7 is about ours.
    status: /^(?!\d\.7\.)/,
    text: unknownDomain,
    category: 'dns',
    quotes: ['550 Host unknown', '550 No such domain at this location'],
  },
  {
    // RFC 5321 section 4.2.3, word for word: GMX, WEB.DE, mail.com and Hotmail say it of addresses that do not exist.
    name: 'mailbox-unavailable',
    phases: recipientPhases,
    code: /^550$/,
    text: /(?:requested (?:mail )?action (?:was )?not taken[:;,.]? ?mailbox|^[\s<>@:;.,"'()#-]{0,20}(?:user's |user |recipient's |the )?(?:mail ?box|account)(?: ["'<(]?@["'>)]?)?(?: is)?)(?: not available| unavail?able)(?!.{0,100}(?:later|polic|denied|temporar|blocked|reputation|spam))/i,
    category: 'unknown_user',
    quotes: [
      '550 <example@example.com>: Requested action not taken: mailbox unavailable',
      '550 Requested action not taken: mailbox unavailable (-0000000022',
    ],
  },
  {
    // Nothing else is said: hosts that hide which addresses exist refuse those that do not with these words.
    name: 'recipient-refused',
    phases: recipientPhases,
    code: /^(?:521|550)$/,
    text: bareRefusal(
      '(?:recipient|rcpt|mailbox|destination|e-?mail)(?: address)?|address',
      ': ?access denied',
    ),
    category: 'unknown_user',
    quotes: [
      '550 <neko-nyaan@ne.auone-net.jp>: Recipient address rejected.',
      '550 #5.1.0 Address rejected.',
      '550 5.1.1 <user@example.com> recipient rejected',
    ],
  },
  {
    // X.7.1 is a policy, and so may be words in another phase.
    name: 'access-denied-to-recipient',
    phases: ['rcpt'],
    code: /^550$/,
    status: /^5\.[0-6]\.\d+$/,
    text: bareRefusal('access', ''),
    category: 'unknown_user',
    quotes: ['550 5.1.0 Access denied'],
  },
  {
    name: 'unknown-user',
    phases: recipientPhases,
    text: unknownUserWords,
    category: 'unknown_user',
    quotes: [
      '550 5.1.1 <neko@example.co.jp>: Recipient address rejected: User unknown in virtual mailbox table',
      '550 5.7.1 <pseudo-local-part-kijitora-nyaan@sfr.fr>: Recipient address rejected: User unknown',
      "554 delivery error: dd This user doesn't have a y.example.com account",
      '550 5.1.1 Adresse d au moins un destinataire invalide. Invalid recipient. OFR_416 [416]',
      '554 5.7.1 <email@example.com>: Recipient address rejected: Not in recipient list',
      '550 5.7.1 No such user!',
      '550 5.5.0 Adresse destinataire invalide. Invalid recipient. LPN007_416',
      '511 sorry, no mailbox here by that name (#5.1.1 - chkuser)',
      '552 1 Requested mail action aborted, mailbox not found',
      '550 User not found: 12345@163.com',
      '550 Invalid User',
      '550 No such person at this address',
      '554 5.7.1 <user@example.com>: Recipient address rejected: user user@example.com does not exist',
      '550 5.1.1 Account not found',
      '550 Local User [xxx@123.com] not found.',
      '550 #2175041 unavailable mail user',
    ],
  },
];
