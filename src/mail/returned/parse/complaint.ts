/**
 * Parses complaints: reports in the Abuse Reporting Format (ARF, RFC 5965) and the variants that some providers send. Only
 * the tokens in it that have our key identify the delivery (mail/returned/complaint-tokens.ts), not the report's other claims.
 */

import { findTokens } from '#mail/returned/complaint-tokens.ts';
import type { ParseResult } from '#mail/returned/parse-result.ts';
import type { ParsedMail } from './parsed-mail.ts';
import { type FieldBlock, fieldOf, readBlocks, typedFieldOf } from './report-fields.ts';

/**
 * Reports in the same format that are not complaints: a message that is not spam (RFC 6430), and DMARC's failure reports
 * about a message that failed authentication (RFC 6591).
 */
const noComplaints = new Set(['not-spam', 'auth-failure', 'miscategorized']);

/** Complaints without a feedback report: a copy of our mail, and a subject that says what it is. */
interface Variant {
  name: string;
  from?: RegExp;
  subject: RegExp;
}

export const complaintVariants: readonly Variant[] = [
  // Outlook.com's Junk Mail Reporting Program.
  { name: 'jmrp', from: /\bstaff@hotmail\.com\b/i, subject: /^\s*complaint about message from/i },
  { name: 'abuse-report', subject: /^\s*(?:abuse|spam|junk) (?:report|complaint)\b/i },
];

/** Null if the mail is not a complaint. */
export function readComplaint(mail: ParsedMail): ParseResult | null {
  const part = mail.parts.find(({ type }) => type === 'message/feedback-report');
  if (part) return fromReport(readBlocks(part.text)[0] ?? new Map(), mail);
  const variant = complaintVariants.find(
    ({ from, subject }) => subject.test(mail.header('subject')) && (!from || from.test(mail.header('from'))),
  );
  const hasCopy = mail.parts.some(({ type }) => type === 'message/rfc822' || type === 'text/rfc822-headers');
  if (!variant || !hasCopy) return null;
  return {
    kind: 'complaint',
    format: variant.name,
    feedbackType: 'abuse',
    reportedBy: addressOf(mail.header('from')),
    tokens: findTokens(mail),
  };
}

function fromReport(block: FieldBlock, mail: ParsedMail): ParseResult {
  const feedbackType = (fieldOf(block, 'feedback-type') ?? 'other').toLowerCase().slice(0, 40);
  if (noComplaints.has(feedbackType)) return { kind: 'automatic', format: `arf-${feedbackType}` };
  return {
    kind: 'complaint',
    format: 'arf',
    feedbackType,
    reportedBy:
      typedFieldOf(block, 'reporting-mta') ?? fieldOf(block, 'user-agent') ?? addressOf(mail.header('from')),
    tokens: findTokens(mail),
  };
}

function addressOf(from: string): string | null {
  return /[^\s<>"]{1,64}@[^\s<>"]{1,255}/.exec(from)?.[0] ?? null;
}
