/** Three-digit codes (RFC 5321 section 4.2.3), for replies that no other rule matches. The last rule always matches. */
import type { RuleEntry } from './reply-rule.ts';

export const codes: readonly RuleEntry[] = [
  {
    // Before the mail transaction a reply is about the host itself (RFC 5321 section 3.1).
    name: 'code-before-mail',
    phases: ['greeting', 'ehlo'],
    category: 'unavailable',
    quotes: ['554 st11p00im-smtpin013.me.com ESMTP not accepting connections', '550 Rejected'],
  },
  {
    // After the status, which Domino mostly gives.
    name: 'not-in-address-book',
    text: /not listed in (?:the )?(?:public name (?:&|and) address book|domino directory)/i,
    category: 'unknown_user',
    quotes: ['550 User ann (ann@example.org) not listed in public Name & Address Book'],
  },
  {
    // The words of servers that took our mail and reached nobody with it.
    name: 'not-reached',
    text: /\b(?:connect(?:ion|ing|ed)?|conversation|session)\b.{0,80}\b(?:timed? ?-?out|refused by|reset by|dropped|broken|lost)\b|lost connection|no route to host|unable to connect\b|network (?:is )?unreachable|could(?: not|n't) (?:initiate|establish) |not accept our requests to connect/i,
    category: 'network',
    quotes: ['450 connect to mx.example.org[192.0.2.25]:25: Connection timed out'],
  },
  {
    name: 'code-later',
    code: /^[234]/,
    category: 'unavailable',
    quotes: ['450 busy - please try later', '450 4.0.0 Temporary failure'],
  },
  {
    // Permanent, but the text says neither that the mailbox does not exist nor that something is refused.
    name: 'code-mailbox',
    phases: ['rcpt'],
    code: /^55[013]$/,
    category: 'unknown_user',
    bounce: 'soft',
    quotes: ['550 Cannot route to <ann@example.org>', '550 Recipient verification failed'],
  },
  {
    // RFC 5321 section 4.5.3.1.10: 552 to RCPT is to be read as 452.
    name: 'code-552-as-452',
    phases: ['rcpt'],
    code: /^552$/,
    category: 'mailbox_full',
    passes: true,
    quotes: ['552 Requested action not taken: exceeded storage allocation'],
  },
  {
    name: 'code-storage',
    code: /^552$/,
    category: 'mailbox_full',
    quotes: ['552 Requested mail action aborted: exceeded storage allocation'],
  },
  {
    name: 'code-command',
    code: /^(?:50|555)/,
    category: 'protocol',
    quotes: ['504 Command parameter not implemented'],
  },
  {
    name: 'code-failed',
    category: 'other',
    quotes: ['554 Transaction failed'],
  },
];
