/**
 * Complaints: reports in the Abuse Reporting Format (ARF, RFC 5965), and what providers send that is not quite that.
 * Which delivery is complained of is for its keyed tokens to say (bounces/complaint-tokens.ts), whatever else the report claims.
 */

import { findTokens } from '../complaint-tokens.ts';
import type { ParsedReturn } from './parse-result.ts';
import type { ParsedMail } from './parsed-mail.ts';
import { type Block, fieldOf, readBlocks, typedFieldOf } from './report-fields.ts';

/**
 * Reports of another kind in the same format: a message that was no spam (RFC 6430), and DMARC's failure reports
 * (RFC 6591), which tell of a message that failed authentication and of no recipient's anger.
 */
const noComplaints = new Set(['not-spam', 'auth-failure', 'miscategorized']);

/** Complaints without a feedback report: a copy of our mail under a header that says what it is. */
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

/** Null: nobody complains. */
export function readComplaint(mail: ParsedMail): ParsedReturn | null {
  const part = mail.parts.find(({ type }) => type === 'message/feedback-report');
  if (part) return fromReport(readBlocks(part.text)[0] ?? new Map(), mail);
  const variant = complaintVariants.find(
    ({ from, subject }) => subject.test(mail.header('subject')) && (!from || from.test(mail.header('from'))),
  );
  const hasCopy = mail.parts.some(({ type }) => type === 'message/rfc822' || type === 'text/rfc822-headers');
  if (!variant || !hasCopy) return null;
  return {
    is: 'complaint',
    format: variant.name,
    feedbackType: 'abuse',
    reportedBy: addressOf(mail.header('from')),
    tokens: findTokens(mail, null),
  };
}

function fromReport(block: Block, mail: ParsedMail): ParsedReturn {
  const feedbackType = (fieldOf(block, 'feedback-type') ?? 'other').toLowerCase().slice(0, 40);
  if (noComplaints.has(feedbackType)) return { is: 'automatic', format: `arf-${feedbackType}` };
  return {
    is: 'complaint',
    format: 'arf',
    feedbackType,
    reportedBy:
      typedFieldOf(block, 'reporting-mta') ?? fieldOf(block, 'user-agent') ?? addressOf(mail.header('from')),
    tokens: findTokens(mail, fieldOf(block, 'original-mail-from')),
  };
}

function addressOf(from: string): string | null {
  return /[^\s<>"]{1,64}@[^\s<>"]{1,255}/.exec(from)?.[0] ?? null;
}
