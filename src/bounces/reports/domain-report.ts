/** Reports on domains that come as attachments: DMARC aggregate reports and TLS reports. */

import type { Reading } from '../parse/parse-result.ts';
import type { Mail } from '../parse/parsed-mail.ts';
import { readDmarc } from './dmarc-report.ts';
import { readTls } from './tls-report.ts';
import { unpack } from './unpack.ts';

/** A report has one attachment, and perhaps a logo or a signature beside it. */
const mostAttachments = 5;

/** Of the first attachment that is one; null: none is. */
export async function readReport(mail: Mail): Promise<Reading | null> {
  for (const part of mail.parts.slice(0, mostAttachments)) {
    const text = await unpack(part);
    const report = text && (text.trimStart().startsWith('{') ? readTls(text) : readDmarc(text));
    if (report) return { is: 'report', report };
  }
  return null;
}
