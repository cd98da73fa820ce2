/** Words about the recipient and the mailbox. Rules about the sender come first, because a sender can be "unknown" too. */
import type { RuleEntry } from './reply-rule.ts';

/** The phases in which "unknown user" means the recipient; in reply to MAIL it means the sender. */
const recipientPhases = ['rcpt', 'data', 'dot'] as const;

/** "The user does not exist", in the words of many servers. `mailbox` may be followed by the address or the name in question. */
const mailbox =
  '(?:user|mailbox|mail-box|recipient|account|address|alias|rcpt|addressee|destinataire|person|username)';
const named = String.raw`(?: ?:? ?["'<[(]?(?!\d{1,3}\.)[^\s"'<>()[\]]{1,64}["'>\])]?)?`;
const unknownUser = [
  String.raw`\b(?<!(?:IP|client|sender|your|from|return|reply) )${mailbox}${named}:? (?:is )?(?:not found|not known|unknown|(?:does|do)(?: not|n't) exist|no longer (?:exists|in use|available|active))`,
  'unknown (?:user|recipient|mailbox|account|addressee|local[- ]part|or illegal alias)',
  String.raw`\bno such (?:e-?mail )?(?:user|mailbox|recipient|person|account|address|alias|local user|id)\b`,
  String.raw`\bno (?:mail ?box|account)(?: (?:found|available|here|by that name))`,
  String.raw`invalid[- ](?:user(?:name)?|recipient|mailbox|final delivery userid)\b`,
  'not an? (?:known|valid|active|existing) (?:user|recipient|mailbox|address|account)|not a registered',
  'unavailable mail user|not our (?:user|customer)|user not exist|mailbox (?:here )?by that name',
  String.raw`account that you tried to reach does not exist|doesn't have an? \S{1,60} account`,
  'marked as invalid|not in recipient list|unrouteable address|no longer on server',
  String.raw`\bbad[-_ ]?(?:recipient|rcpt ?to|destination mailbox address)|undeliverable address|address is not active`,
  // French, Italian, German, Polish, Spanish, Portuguese, Russian, Chinese and Japanese.
  String.raw`utilisateur (?:inconnu|inexistant)|(?:adresse|boite|boîte) (?:\S{1,30} ){0,3}n'existe pas|(?:utente|casella|indirizzo|destinatario) (?:sconosciut|inesistente|non (?:esiste|trovat))`,
  '(?:empf(?:ä|ae)nger|benutzer) (?:unbekannt|nicht (?:gefunden|bekannt))|(?:konto|skrzynka|odbiorca|u(?:ż|z)ytkownik) nie istnieje|nie ma takie(?:go|j) (?:u(?:ż|z)ytkownika|skrzynki|konta|adresu)',
  '(?:usuario|destinatario|buz[oó]n|cuenta) (?:desconocid|no existe|inexistente)|(?:usu[aá]rio|conta) (?:desconhecid|n[aã]o existe|inexistente)',
  '(?:пользователь|ящик|адрес) не (?:найден|существует)|(?:用户|用戶|邮箱|收件人|帐号|账号)(?:名)?不存在|宛先(?:の)?(?:メール)?アドレスが(?:見つかりません|存在しません)|ユーザー?.{0,80}(?:見つかりません|存在しません)',
];

export const mailboxes: readonly RuleEntry[] = [
  {
    // A 5xx, but the mailbox will work again.
    name: 'mailbox-locked-for-now',
    text: /temporar(?:y|ily) (?:locked|disabled|suspended)/i,
    category: 'mailbox_disabled',
    passes: true,
    quotes: [
      '550 5.7.1 <kijitora@example.com>: Recipient address rejected: User kijitora@example.com temporary locked.',
    ],
  },
  {
    name: 'mailbox-disabled',
    phases: recipientPhases,
    text: /account (?:is|has been) (?:blocked|disabled|suspended)|mailbox is (?:disabled|frozen)|inactive email address|^Disabled recipient|user is locked|is no longer valid|is a deactivated mailbox|^Mailbox disabled/i,
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
    text: /over ?-?quota|(?<!queue )quota (?:limit )?exceeded|quota violation|QuotaExceeded|out of storage space|mailbox (?:is )?full|exceeding (?:their|his|her|its) quota|mail ?box space (?:is )?not enough/i,
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
    // The result of a DNS look-up by a relay that had accepted our mail, so it appears in bounces rather than in replies.
    name: 'unknown-domain',
    phases: recipientPhases,
    text: /host or domain name not found|(?<!(?:sender|from|your|[he]{2}lo|client)(?:'s)? )(?:unknown (?:host|domain|mail server)\b|(?:host|domain) unknown|(?:domain|host) does(?: not|n't) exist)|no such (?:domain|host)\b|domain is not reachable|nonexistent domain|name or service not known|name service error for (?:name|domain)=\S{1,255} type=\w{1,10}: (?!malformed)|illegal host\/domain|(?:not|n't) find (?:a|any) (?:mail exchanger|host named)|no (?:mx|valid hosts?|mail exchanger)s? (?:records? )?found for|lookup failure: host \S{1,255} not found|record indicated no SMTP service/i,
    category: 'dns',
    quotes: ['550 Host unknown', '550 No such domain at this location'],
  },
  {
    // RFC 5321 section 4.2.3, word for word: GMX, WEB.DE, mail.com and Hotmail say it of addresses that do not exist.
    name: 'mailbox-unavailable',
    phases: recipientPhases,
    code: /^550$/,
    text: /requested (?:mail )?action not taken[:;,.]? ?mailbox unavailable(?!.{0,100}(?:later|polic|denied|temporar))/i,
    category: 'unknown_user',
    quotes: [
      '550 <example@example.com>: Requested action not taken: mailbox unavailable',
      '550 Requested action not taken: mailbox unavailable (-0000000022',
    ],
  },
  {
    name: 'unknown-user',
    phases: recipientPhases,
    text: new RegExp(unknownUser.join('|'), 'i'),
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
