/**
 * Parses a returned mail into what its readers need: the header fields, the text for people, and the parts with reports or
 * copies of our mail. Anyone can send such a mail, so sizes, counts and nesting are limited. A mail that cannot be parsed
 * becomes an empty one.
 */
import PostalMime, { type Attachment, type Email } from 'postal-mime';

export interface ParsedMail {
  /** The decoded value of the first field with this name (in lower case); '' if there is none. */
  header(name: string): string;
  /** The envelope sender was empty, as in every bounce (RFC 5321 section 4.5.5). */
  fromNullSender: boolean;
  /** The beginning of the text that people see; lines end with LF. */
  text: string;
  parts: ParsedPart[];
}

export interface ParsedPart {
  /** In lower case. */
  type: string;
  filename: string;
  /** Cut at `longestPart` bytes. */
  text: string;
  bytes: Uint8Array;
}

const longestText = 64 * 1024;
const longestPart = 64 * 1024;
const maxParts = 100;

/** The bytes of a report by mail that are read: it is compressed. */
export const longestReport = 4 * 1024 * 1024;
/** A bounce describes the failure before the copy of our mail. The slowest to read takes a second. */
const longestBounce = 1024 * 1024;
/** The parser takes time for each line: a mail of only line ends would keep it busy for minutes. */
const maxLines = 30_000;

const limits = { maxNestingDepth: 20, maxHeadersSize: 512 * 1024, maxRfc822NestingDepth: 0 };

export async function parseMail(
  whole: Uint8Array,
  fromNullSender: boolean,
  longest = longestBounce,
): Promise<ParsedMail> {
  const bytes = beginningOf(whole, longest);
  try {
    const email = await PostalMime.parse(bytes, { ...limits, forceRfc822Attachments: true });
    const mail = { ...mailFrom(email), fromNullSender };
    // A multipart whose boundary does not occur: use the whole body.
    return mail.text === '' && mail.parts.length === 0 ? { ...mail, text: bodyAsText(bytes) } : mail;
  } catch {
    // Its nesting or its header exceeds the limits.
    return { header: () => '', fromNullSender, text: '', parts: [] };
  }
}

function beginningOf(bytes: Uint8Array, longest: number): Uint8Array {
  let end = 0;
  for (let count = 0; count < maxLines; count++) {
    const next = bytes.indexOf(0x0a, end) + 1;
    if (next === 0 || next > longest) return bytes.subarray(0, longest);
    end = next;
  }
  return bytes.subarray(0, end);
}

function mailFrom(email: Email): Omit<ParsedMail, 'fromNullSender'> {
  return {
    header(name) {
      if (name === 'subject') return email.subject ?? '';
      return email.headers.find(({ key }) => key === name)?.value ?? '';
    },
    text: words(email.text?.trim() ? email.text.slice(0, longestText) : textOf(email.html ?? '')),
    parts: email.attachments.slice(0, maxParts).map(partFrom),
  };
}

/** The body as it stands before the first mail in it, for servers whose parts are not what their boundaries say. */
export function bodyAsText(bytes: Uint8Array): string {
  const text = lines(Buffer.from(bytes.subarray(0, 2 * longestText)).toString('utf8'));
  const start = text.indexOf('\n\n');
  if (start < 0) return '';
  const body = text.slice(start + 2, start + longestText);
  const end = body.search(/^Content-Type: ?(?:message\/rfc822|text\/rfc822-headers)/im);
  return end < 0 ? body : body.slice(0, end);
}

function partFrom({ mimeType, filename, content }: Attachment): ParsedPart {
  const bytes = typeof content === 'string' ? Buffer.from(content) : new Uint8Array(content);
  // Decoded only when it is read; most parts never are.
  let text: string | undefined;
  const type = mimeType.toLowerCase();
  return {
    type,
    filename: (filename ?? '').toLowerCase(),
    bytes,
    get text() {
      text ??= lines(decoded(type, bytes.subarray(0, longestPart)));
      return text;
    },
  };
}

/**
 * Japanese hosts write ISO-2022-JP (RFC 1468) into the fields of a report, which name no charset; its escape sequences tell.
 * A copy of our mail is never decoded like this, because an escape in it could hide the tokens after it.
 */
function decoded(type: string, bytes: Uint8Array): string {
  const text = Buffer.from(bytes).toString('utf8');
  const isJapanese = type.endsWith('delivery-status') && /\u001b\$[@B]/.test(text);
  return isJapanese ? new TextDecoder('iso-2022-jp').decode(bytes) : text;
}

function lines(text: string): string {
  return text.replace(/\r\n?/g, '\n').toWellFormed();
}

/** As people read it: with plain spaces and apostrophes, in which the rules are written. */
function words(text: string): string {
  return lines(text)
    .replace(/[\u00a0\u202f]/g, ' ')
    .replace(/[\u2018\u2019\u02bc\u00b4]/g, "'");
}

/** The text of a mail that has only HTML; good enough to search it for words. */
function textOf(html: string): string {
  return html
    .slice(0, 4 * longestText)
    .replace(/<(?:style|script|head)\b[^<>]*>[^<]*/gi, ' ')
    .replace(/<(?:br|p|div|tr|li|pre|h\d)\b[^<>]*>/gi, '\n')
    .replace(/<[^<>]*>/g, '')
    .replace(/&(?:#(\d{1,6})|#x([\da-f]{1,5})|(\w{2,8}));/gi, characterOf)
    .slice(0, longestText);
}

/** The entities that bounces have; letters with accents are written so in old French, German and Spanish ones. */
const entities: Record<string, string> = {
  nbsp: ' ',
  lt: '<',
  gt: '>',
  quot: '"',
  apos: "'",
  amp: '&',
  rsquo: "'",
  lsquo: "'",
  eacute: 'é',
  egrave: 'è',
  ecirc: 'ê',
  agrave: 'à',
  aacute: 'á',
  atilde: 'ã',
  auml: 'ä',
  ouml: 'ö',
  uuml: 'ü',
  szlig: 'ß',
  iacute: 'í',
  icirc: 'î',
  oacute: 'ó',
  ocirc: 'ô',
  otilde: 'õ',
  uacute: 'ú',
  ccedil: 'ç',
  ntilde: 'ñ',
};

function characterOf(all: string, decimal?: string, hex?: string, name?: string): string {
  if (name) return entities[name.toLowerCase()] ?? all;
  const code = decimal ? Number(decimal) : Number.parseInt(hex!, 16);
  return code > 0 && code <= 0x10ffff ? String.fromCodePoint(code) : all;
}
