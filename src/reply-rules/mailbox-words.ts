/** Words about the recipient and the mailbox. Rules about the sender come first, because a sender can be "unknown" too. */
import type { RuleEntry } from './reply-rule.ts';

/** The phases in which "unknown user" means the recipient; in reply to MAIL it means the sender. */
const recipientPhases = ['rcpt', 'data', 'dot'] as const;

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
    text: /over ?-?quota|(?<!queue )quota (?:limit )?exceeded|quota violation|QuotaExceeded|out of storage space|mailbox (?:is )?full/i,
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
    name: 'unknown-user',
    phases: recipientPhases,
    text: /(?:user:?|addressee) unknown|unknown user|no such (?:user|mailbox|recipient)|(?:user|mailbox|recipient|address) (?:not found|unknown|does not exist)|account that you tried to reach does not exist|doesn't have an? \S{1,60} account|user not exist|not our (?:user|customer)|not a (?:valid recipient|registered)|invalid[- ](?:recipient|mailbox)|marked as invalid|not in recipient list|unrouteable address|mailbox (?:here )?by that name|no longer on server|unknown or illegal alias|Utilisateur inconnu/i,
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
    ],
  },
];
