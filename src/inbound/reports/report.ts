/** Reports on domains that come as attachments: DMARC aggregate reports and TLS reports. */
import type { Mail } from '../returned/mail.ts';
import type { Reading } from '../returned/reading.ts';
import { readDmarc } from './dmarc.ts';
import { readTls } from './tls.ts';
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
