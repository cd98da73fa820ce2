/**
 * Reports about domains: DMARC aggregate reports and TLS reports, attached, forwarded, or in the text of the mail. What is no
 * report is a letter with the reason, so that somebody can see which reporter's mail is not understood.
 */

import type { AggregateReport } from '#mail/returned/aggregate-report.ts';
import {
  longestReport,
  type ParsedMail,
  type ParsedPart,
  parseMail,
} from '#mail/returned/parse/parsed-mail.ts';
import type { Letter, ParseResult } from '#mail/returned/parse-result.ts';
import { readDmarc } from './dmarc-report.ts';
import { readTls } from './tls-report.ts';
import { unpack } from './unpack.ts';

/** A report has one attachment, and perhaps a logo or a signature. */
const maxAttachments = 10;
/** A forwarded report is in a mail in this mail. */
const maxLevels = 3;
const longestReason = 300;

/** The first report in the mail. */
export async function readReport(
  mail: ParsedMail,
  whole: Uint8Array = new Uint8Array(),
): Promise<ParseResult> {
  const reasons: string[] = [];
  for await (const bytes of candidates(mail, whole)) {
    const found = await reportIn(bytes);
    if (typeof found !== 'string') return { kind: 'report', report: found };
    reasons.push(found);
  }
  return unreadable(reasons[0] ?? 'it has no attachment and no report in its text');
}

function unreadable(why: string): Letter {
  return { kind: 'letter', why: `no report can be read: ${why}`.slice(0, longestReason) };
}

/** The attachments with those of forwarded mails, the text, and last what is packed in a mail whose parts cannot be told. */
async function* candidates(mail: ParsedMail, whole: Uint8Array): AsyncGenerator<Uint8Array> {
  let count = 0;
  for await (const { bytes } of partsOf(mail, maxLevels)) if (++count <= maxAttachments) yield bytes;
  const isReport = /^[\s\ufeff]{0,20}[<{[]/.test(mail.text);
  if (isReport || count === 0) {
    if (isReport) yield Buffer.from(mail.text);
    for (const packed of packedIn(whole)) yield packed;
  }
}

async function* partsOf(mail: ParsedMail, levels: number): AsyncGenerator<ParsedPart> {
  for (const part of mail.parts.slice(0, maxAttachments)) {
    if (part.type !== 'message/rfc822') yield part;
    else if (levels > 0) yield* partsOf(await parseMail(part.bytes, true, longestReport), levels - 1);
  }
}

/** The base64 of gzip or zip at the beginning of a line: parts without a type are taken for text. */
function packedIn(whole: Uint8Array): Buffer[] {
  const text = Buffer.from(whole.buffer, whole.byteOffset, whole.byteLength).toString('latin1');
  const begin = text.search(/^(?:H4sI|UEsDB)/m);
  if (begin < 0) return [];
  const length = text.slice(begin).search(/[^\w+/=\s]/);
  return [Buffer.from(length < 0 ? text.slice(begin) : text.slice(begin, begin + length), 'base64')];
}

/** The report, or the reason why it is none. */
async function reportIn(bytes: Uint8Array): Promise<AggregateReport | string> {
  try {
    const texts = await unpack(bytes);
    const reasons: string[] = [];
    for (const text of texts) {
      const found = parseReport(text.trimStart());
      if (typeof found !== 'string') return found;
      reasons.push(found);
    }
    return reasons[0] ?? 'the archive is empty';
  } catch (error) {
    return (error as Error).message;
  }
}

function parseReport(text: string): AggregateReport | string {
  if (/^[{[]/.test(text)) return readTls(text);
  if (text.startsWith('<')) return readDmarc(text);
  return 'the attachment is neither XML nor JSON';
}
