/**
 * Classifies a returned mail by its content alone; the address that it arrived at identifies the delivery. Never throws,
 * whatever the bytes are: a mail of no known kind is a letter.
 */

import type { ParseResult } from '#mail/returned/parse-result.ts';
import { readReport } from '#mail/returned/reports/domain-report.ts';
import type { AddressRole } from '#mail/returned/service-addresses.ts';
import { readAutomatic } from './auto-reply.ts';
import { readComplaint } from './complaint.ts';
import { readStatusReport } from './delivery-status.ts';
import { isFromMailSystem, isReport } from './mail-system.ts';
import { bodyAsText, longestReport, type ParsedMail, parseMail } from './parsed-mail.ts';
import { readTextBounce } from './text-bounce.ts';

export async function readMail(
  bytes: Uint8Array,
  role: AddressRole,
  fromNullSender = false,
): Promise<ParseResult> {
  if (role === 'reports') return readReport(await parseMail(bytes, fromNullSender, longestReport), bytes);
  const mail = await parseMail(bytes, fromNullSender);
  return readComplaint(mail) ?? (await readBounce(mail, bytes)) ?? readAutomatic(mail) ?? { kind: 'letter' };
}

async function readBounce(mail: ParsedMail, bytes: Uint8Array): Promise<ParseResult | null> {
  if (!isFromMailSystem(mail)) return isReport(mail) ? readStatusReport(mail) : null;
  return (
    readStatusReport(mail) ??
    (await readWrapped(mail)) ??
    readTextBounce(mail) ??
    readTextBounce({ ...mail, text: bodyAsText(bytes) })
  );
}

/** Gateways attach the whole mail with the report to one of their own. Only a complete report counts. */
const maxWrapped = 3;

async function readWrapped(mail: ParsedMail): Promise<ParseResult | null> {
  const wrapped = mail.parts.filter(({ type }) => type === 'message/rfc822').slice(0, maxWrapped);
  for (const { bytes } of wrapped) {
    const inner = await parseMail(bytes, true);
    const hasReport = inner.parts.some(({ type }) => /^message\/(?:global-)?delivery-status$/.test(type));
    const reading = hasReport ? readStatusReport(inner) : null;
    if (reading) return reading;
  }
  return null;
}
