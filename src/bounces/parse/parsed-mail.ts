/**
 * A returned mail taken apart, as far as its readers need: its headers, what it says to people, and the parts that
 * machines or copies of our mail are in. Bounded on every side: whoever wrote it may mean us harm. A mail that cannot
 * be taken apart at all is one that says nothing.
 */
import PostalMime, { type Attachment, type Email } from 'postal-mime';

export interface ParsedMail {
  /** The first field of that name, in lower case, decoded; '' where there is none. */
  header(name: string): string;
  /** What its human readers see, from the beginning; ended by line feeds. */
  text: string;
  parts: ParsedPart[];
}

export interface ParsedPart {
  /** In lower case. */
  type: string;
  filename: string;
  /** From the beginning; what is longer than `longestPart` is cut. */
  text: string;
  bytes: Uint8Array;
}

const longestText = 64 * 1024;
const longestPart = 64 * 1024;
const maxParts = 100;

/**
 * A bounce says what it has to say before the copy of our mail, and a report is packed. The parser takes its time for
 * each line, so that a mail of nothing but line ends would keep it busy for minutes.
 */
const longestMail = 4 * 1024 * 1024;
const maxLines = 30_000;

const limits = { maxNestingDepth: 20, maxHeadersSize: 512 * 1024, maxRfc822NestingDepth: 0 };

export async function parseMail(whole: Uint8Array): Promise<ParsedMail> {
  const bytes = beginningOf(whole);
  try {
    const mail = mailFrom(await PostalMime.parse(bytes, { ...limits, forceRfc822Attachments: true }));
    // A multipart whose boundary is nowhere: what it says is there all the same.
    return mail.text === '' && mail.parts.length === 0 ? { ...mail, text: bodyOf(bytes) } : mail;
  } catch {
    // Nested or headed beyond the limits.
    return { header: () => '', text: '', parts: [] };
  }
}

function beginningOf(bytes: Uint8Array): Uint8Array {
  let end = 0;
  for (let count = 0; count < maxLines; count++) {
    const next = bytes.indexOf(0x0a, end) + 1;
    if (next === 0 || next > longestMail) return bytes.subarray(0, longestMail);
    end = next;
  }
  return bytes.subarray(0, end);
}

function mailFrom(email: Email): ParsedMail {
  return {
    header(name) {
      if (name === 'subject') return email.subject ?? '';
      return email.headers.find(({ key }) => key === name)?.value ?? '';
    },
    text: lines(email.text?.slice(0, longestText) ?? textOf(email.html ?? '')),
    parts: email.attachments.slice(0, maxParts).map(partFrom),
  };
}

function bodyOf(bytes: Uint8Array): string {
  const text = lines(Buffer.from(bytes.subarray(0, 2 * longestText)).toString('utf8'));
  const start = text.indexOf('\n\n');
  return start < 0 ? '' : text.slice(start + 2, start + longestText);
}

function partFrom({ mimeType, filename, content }: Attachment): ParsedPart {
  const bytes = typeof content === 'string' ? Buffer.from(content) : new Uint8Array(content);
  // Lazily: most parts are never looked into.
  let text: string | undefined;
  return {
    type: mimeType.toLowerCase(),
    filename: (filename ?? '').toLowerCase(),
    bytes,
    get text() {
      text ??= lines(Buffer.from(bytes.subarray(0, longestPart)).toString('utf8'));
      return text;
    },
  };
}

function lines(text: string): string {
  return text.replace(/\r\n?/g, '\n').toWellFormed();
}

/** Of a mail that is HTML alone: enough to find words in. */
function textOf(html: string): string {
  return html
    .slice(0, 4 * longestText)
    .replace(/<(?:style|script|head)\b[^<>]*>[^<]*/gi, ' ')
    .replace(/<(?:br|p|div|tr|li|pre|h\d)\b[^<>]*>/gi, '\n')
    .replace(/<[^<>]*>/g, '')
    .replaceAll('&nbsp;', ' ')
    .replaceAll('&lt;', '<')
    .replaceAll('&gt;', '>')
    .replaceAll('&quot;', '"')
    .replaceAll('&#39;', "'")
    .replaceAll('&amp;', '&')
    .slice(0, longestText);
}
