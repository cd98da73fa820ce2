/**
 * Classifies a returned mail by its content alone; the address that it arrived at identifies the delivery. Never throws,
 * whatever the bytes are: a mail of no known kind is a letter.
 */
import { readReport } from '../reports/domain-report.ts';
import type { AddressRole } from '../service-addresses.ts';
import { readAutomatic } from './auto-reply.ts';
import { readComplaint } from './complaint.ts';
import { readStatusReport } from './delivery-status.ts';
import type { ParseResult } from './parse-result.ts';
import { parseMail } from './parsed-mail.ts';
import { readTextBounce } from './text-bounce.ts';

export async function readMail(
  bytes: Uint8Array,
  role: AddressRole,
  fromNullSender = false,
): Promise<ParseResult> {
  const mail = await parseMail(bytes, fromNullSender);
  if (role === 'reports') return (await readReport(mail)) ?? { is: 'letter' };
  return (
    readComplaint(mail) ??
    readStatusReport(mail) ??
    readTextBounce(mail) ??
    readAutomatic(mail) ?? { is: 'letter' }
  );
}
