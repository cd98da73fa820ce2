/**
 * A refusal that no rule knows more about: who sends the mail, or nothing that is named. Status codes about
 * an address (X.1, X.2) come before these rules. Without them a 550 to RCPT would count against the recipient.
 */
import { refused } from './near.ts';
import type { RuleEntry } from './reply-rule.ts';

export const generalRefusals: readonly RuleEntry[] = [
  {
    // The answer to MAIL is about the sender; which parameter a host does not know is another matter.
    name: 'mail-from-refused',
    phases: ['mail'],
    code: /^5/,
    text: /@|\b(?:sender|mail ?from|address|domain|host|exist)/i,
    unless: /\b(?:parameter|syntax|command)/i,
    category: 'policy',
    quotes: [
      '501 mail from address must be same as authorization user',
      '553 5.5.4 <ann>... Domain name required for sender address',
    ],
  },
  {
    name: 'refused',
    phases: ['mail', 'rcpt', 'data', 'dot'],
    code: /^5/,
    // X.4 is about the network: "connection refused".
    status: /^(?!\d\.4\.)/,
    text: new RegExp(`${refused}|отклон|отказ|заблокир|запрещ|拒[否绝絕]|protocol violation`, 'i'),
    // RFC 5321 section 4.2.3, of a mailbox that cannot be.
    unless: /mailbox name not allowed/i,
    category: 'policy',
    quotes: [
      '550 Mail is rejected by recipients',
      '550 RCPT TO:<ann@example.org> SMTP delivery not allowed',
      '550 Sorry, no access for this domain',
      '550 That recipient is not allowed here',
    ],
  },
];
