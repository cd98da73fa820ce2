/** Reports about domains in attachments: DMARC aggregate reports and TLS reports. */
import type { ParseResult } from '../parse/parse-result.ts';
import type { ParsedMail } from '../parse/parsed-mail.ts';
import { readDmarc } from './dmarc-report.ts';
import { readTls } from './tls-report.ts';
import { unpack } from './unpack.ts';

/** A report has one attachment, and perhaps a logo or a signature. */
const maxAttachments = 5;

/** The first attachment that is a report; null if there is none. */
export async function readReport(mail: ParsedMail): Promise<ParseResult | null> {
  for (const part of mail.parts.slice(0, maxAttachments)) {
    const text = await unpack(part);
    const report = text && (text.trimStart().startsWith('{') ? readTls(text) : readDmarc(text));
    if (report) return { is: 'report', report };
  }
  return null;
}
