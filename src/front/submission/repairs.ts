/**
 * Repairs the header of a submitted message where it can only mean one thing (RFC 6409 section 8), before it is judged and
 * signed: receivers refuse such fields, or read them in different ways. What could mean two things is left for
 * message-rules.ts to refuse. Long lines of the body are repaired in mail/compose/seven-bit.ts.
 */
import { isAscii } from 'node:buffer';
import { decodeWords } from 'postal-mime';
import { foldedField, mailbox, unstructured } from '#mail/compose/field.ts';
import { type Field, type Head, readHead } from '#mail/compose/head.ts';
import { structureOf, urlFields } from '#mail/compose/header-grammar.ts';
import { hasLongLine } from '#mail/compose/long-lines.ts';
import { domainOf } from '#platform/values/address.ts';
import { readAddressList } from '#platform/values/mailbox-list.ts';
import type { NamedAddress } from '#platform/values/recipients.ts';
import { shown } from './from-field.ts';

export interface Repaired {
  raw: Buffer;
  head: Head;
  /** The names of the repairs, for the log. */
  repairs: string[];
}

/** A field of the message, or its new text without the last CRLF. */
interface Piece {
  name: string;
  label: string;
  value: string;
  text: string | null;
  /** The bytes, if it is as it was. */
  bytes: Buffer;
}

const addressFields = ['from', 'sender', 'reply-to', 'to', 'cc', 'bcc'];
/** RFC 5322 section 3.6 and RFC 2045: these may occur once. */
const once = [
  ...[...addressFields, 'subject', 'date', 'message-id', 'in-reply-to', 'references', 'mime-version'],
  ...['content-type', 'content-transfer-encoding', 'content-disposition', 'content-id', 'list-unsubscribe'],
];
/** mail/compose/seven-bit.ts encodes no longer values, because folding and decoding take more than linear time. */
const maxEncoded = 8192;
/** RFC 5322 section 4.5.3: the lists of several destination fields are one list. */
const joined = ['to', 'cc', 'bcc'];

export function repaired(given: Buffer): Repaired {
  const repairs = new Set<string>();
  const raw = withFieldNames(withoutMboxLine(given, repairs), repairs);
  const head = readHead(raw);
  if (head.isTooLarge || head.stray !== null) return { raw, head, repairs: [...repairs] };
  const pieces = repairedOnce(piecesOf(raw, head), repairs).flatMap((piece) => {
    const fixed = repairedPiece(piece);
    if (fixed !== piece) repairs.add(piece.name);
    return fixed === null ? [] : [fixed];
  });
  if (repairs.size === 0) return { raw, head, repairs: [] };
  const header = pieces.map(({ text, bytes }) => (text === null ? bytes : Buffer.from(`${text}\r\n`)));
  const whole = Buffer.concat([...header, raw.subarray(head.end)]);
  return { raw: whole, head: readHead(whole), repairs: [...repairs] };
}

/** The line that begins each message in a file of type mbox. */
function withoutMboxLine(raw: Buffer, repairs: Set<string>): Buffer {
  const line = /^>?From [^\r\n]{1,900}\r\n/.exec(raw.toString('latin1', 0, 1000))?.[0];
  if (line === undefined) return raw;
  repairs.add('mbox line');
  return raw.subarray(line.length);
}

/** `Subject : x` (RFC 5322 section 4.5): readers differ on the blank. */
function withFieldNames(raw: Buffer, repairs: Set<string>): Buffer {
  const head = readHead(raw);
  if (head.stray === null || head.isTooLarge) return raw;
  const text = raw.toString('latin1', 0, head.end);
  const fixed = text.replace(/^([!-9;-~]{1,76})[ \t]{1,20}:/gm, '$1:');
  if (fixed === text) return raw;
  repairs.add('field names');
  return Buffer.concat([Buffer.from(fixed, 'latin1'), raw.subarray(head.end)]);
}

function piecesOf(raw: Buffer, { fields }: Head): Piece[] {
  return fields.map(({ name, label, value, start, end }: Field) => {
    return { name, label, value, text: null, bytes: raw.subarray(start, end) };
  });
}

/** Keeps one of the fields that may occur once, and say the same or nothing. */
function repairedOnce(pieces: Piece[], repairs: Set<string>): Piece[] {
  const seen = new Map<string, { first: Piece; meanings: Set<string> }>();
  // An empty one alone stays: some receivers miss the field.
  const hasSubject = pieces.some(({ name, value }) => name === 'subject' && value !== '');
  return pieces.flatMap((piece) => {
    const { name, value } = piece;
    if (!once.includes(name)) return [piece];
    const isEmpty = value === '' && name !== 'from' && (name !== 'subject' || hasSubject);
    const before = seen.get(name);
    const meaning = meaningOf(piece);
    if (!isEmpty && !before) {
      seen.set(name, { first: piece, meanings: new Set([meaning]) });
      return [piece];
    }
    const isOther = !isEmpty && before !== undefined && !before.meanings.has(meaning);
    if (isOther && !joined.includes(name)) return [piece];
    if (isOther) addTo(before.first, value);
    before?.meanings.add(meaning);
    repairs.add(name);
    return [];
  });
}

function addTo(first: Piece, value: string): void {
  first.value = `${first.value}, ${value}`;
  first.text = `${first.label}: ${first.value}`;
}

/** Equal for values that mean the same. */
function meaningOf({ name, value }: Piece): string {
  if (value.length > maxEncoded) return value;
  const text = decodeWords(value).replace(/\s+/g, ' ').trim();
  if (name === 'message-id') return text.replace(/[<>\s]/g, '');
  if (name.startsWith('content-')) return text.toLowerCase().replace(/["\s]|;$/g, '');
  if (!addressFields.includes(name)) return name === 'subject' ? text : text.toLowerCase();
  const list = readAddressList(text)?.mailboxes ?? [];
  return list.length === 0
    ? text
    : JSON.stringify(list.map(({ name, address }) => [name, address.toLowerCase()]));
}

/** Null if the field is dropped; a required one is then added as if there had been none. */
function repairedPiece(piece: Piece): Piece | null {
  const { name, label, value } = piece;
  if (name === 'message-id') return withText(piece, messageIdOf(value));
  if (name === 'date') return withText(piece, dateOf(value));
  const subject = name === 'subject' ? subjectOf(value) : null;
  if (subject !== null) return { ...piece, text: foldedField(label, unstructured(subject)) };
  const written = addressFields.includes(name) ? addressesOf(piece) : structuredOf(name, value);
  if (written !== null) return { ...piece, text: `${label}: ${written}` };
  const isLong = hasLongLine(piece.text === null ? piece.bytes : Buffer.from(piece.text));
  const folded = isLong ? foldedOf(piece) : null;
  return folded === null ? piece : { ...piece, text: folded };
}

function withText(piece: Piece, value: string | null): Piece | null {
  if (value === null) return null;
  return value === piece.value ? piece : { ...piece, text: `${piece.label}: ${value}` };
}

const spacedWord =
  /(=\?(?:utf-?8|us-ascii|iso-[\w-]{1,20}|windows-\d{1,5}|koi8-\w|gb\w{1,8}|big5|shift_jis|euc-\w\w)\?)([bq])\?([^?\s]{1,900}(?:\s{1,9}[^?\s]{1,900}){1,100})\?=/gi;

/** RFC 2047 section 2: an encoded word has no blanks. Programs fold one, or leave those of its text. Null: it is right. */
function subjectOf(value: string): string | null {
  if (value.length > maxEncoded) return null;
  const fixed = value.replace(spacedWord, (_, start: string, encoding: string, text: string) => {
    const blank = encoding.toLowerCase() === 'b' ? '' : '_';
    return `${start}${encoding}?${text.replace(/\s{1,9}/g, blank)}?=`;
  });
  const text = fixed === value ? '\0' : decodeWords(fixed);
  return /[\p{Cc}\ufffd]/u.test(text) || !text.isWellFormed() ? null : text;
}

function messageIdOf(value: string): string | null {
  if (value.length > maxEncoded) return null;
  const id = writtenId(decodeWords(value));
  return id !== null && validId.test(id) ? `<${id}>` : null;
}

/** RFC 5322 section 3.6.4: Gmail refuses a message with another one. */
const validId = /^(?:"[^"]*"|[^"@]+)@[^@]+$/;

/** Without angle brackets; null if the field names nothing that could be one. */
export function writtenId(value: string): string | null {
  return /^[<\s]{0,9}([\x21-\x3b\x3d\x3f-\x7e]{1,900}?)[>\s,;]{0,9}$/.exec(value)?.[1] ?? null;
}

const date =
  /^(?:[a-z]{3}\s*,\s*)?\d{1,2}\s+[a-z]{3}\s+\d{2,4}\s+\d{1,2}:\d{2}(?::\d{2})?\s+(?:[+-]\d{4}|[a-z]{1,5})(?:\s*\([^()]*\))?$/i;
const zone = /(?:z|gmt|utc|[+-]\d{2}:?\d{2})$/i;

/** A date with its offset from UTC can be read in one way only. */
function dateOf(value: string): string | null {
  if (date.test(value)) return value;
  const time = value.length < 100 && zone.test(value) ? Date.parse(value) : Number.NaN;
  return Number.isNaN(time) ? null : new Date(time).toUTCString().replace('GMT', '+0000');
}

/** The list as it should have been written; null if it is right, or could mean something else. */
function addressesOf({ name: field, value, text, bytes }: Piece): string | null {
  const list = readAddressList(value);
  const isShort = isAscii(bytes) || value.length <= maxEncoded;
  const isWhole = text === null && isShort && !hasLongLine(bytes) && !isOdd(value);
  const isAsItShouldBe = list?.isStandard && isWhole && (value.includes('@') || !value.includes('=?'));
  const isPlain = field !== 'from' || !list?.mailboxes.some((one) => mayShowAnother(value, one));
  if (isAsItShouldBe && isPlain) return null;
  // A program may have encoded names and addresses together.
  const isEncoded = !value.includes('@') && value.length <= maxEncoded;
  const forms = isEncoded
    ? [readAddressList(decodeWords(value))]
    : [hasEncodedAddress(value) ? null : list, readAddressList(withBrackets(withAddresses(value)))];
  const meant = forms.find((form) => form?.mailboxes.every(({ address }) => domainOf(address) !== null));
  if (!meant?.mailboxes.length) return null;
  const written = meant.mailboxes.map(field === 'from' ? plainMailbox : shownMailbox).join(',\r\n ');
  return written === value ? null : written;
}

const shownMailbox = ({ name, address }: NamedAddress) => mailbox({ name: shown(name), address });

/** A comment, or a name that is an address or has a control character once it is decoded: readers show it as the sender. */
function mayShowAnother(value: string, { name }: NamedAddress): boolean {
  return value.includes('(') || /[@<]|\p{Cc}/u.test(decodeWords(name));
}

/** Without comments; the name in quotes if it has signs of an address, which a name beyond ASCII does without. */
function plainMailbox({ name, address }: NamedAddress): string {
  const text = shown(name);
  const plain = isAscii(Buffer.from(text)) ? text : shown(text.replace(/[@<>]+/g, ' '));
  return mailbox({ name: plain, address });
}

const oddSigns = /<\s?(?:<|mailto:)|>\s?>|^(?:mailto:|')|"\s{0,9}"\s?</i;

/** What `withBrackets` mends, an empty name, or an encoded word in quotes, where readers do not decode it. */
function isOdd(value: string): boolean {
  const isQuoted = (part: string, at: number) => at % 2 === 1 && part.includes('=?');
  return (
    oddSigns.test(value) ||
    hasEncodedAddress(value) ||
    (value.includes('=?') && value.split('"').some(isQuoted))
  );
}

/** Ruby's mail encodes the parts of an address beyond ASCII, where readers decode nothing (RFC 2047 section 5). */
const encodedAddress =
  /=\?[\w-]{1,40}\?[bq]\?[^?\s]{1,300}\?=(?=@)|(?<=@)=\?[\w-]{1,40}\?[bq]\?[^?\s]{1,300}\?=/gi;

const hasEncodedAddress = (value: string) => value.search(encodedAddress) >= 0;

function withAddresses(value: string): string {
  return value.length > maxEncoded ? value : value.replace(encodedAddress, decodeWords);
}

/** `<<a@b>>`, `<mailto:a@b>`, `'a@b'`, `Ann a@b`, one open quote, and one without its last bracket. */
function withBrackets(value: string): string {
  const single = value
    .replace(/<[<\s]{0,9}(?:mailto:)?/gi, '<')
    .replace(/>[>\s]{0,9}/g, '>')
    .replace(/^mailto:(?=[^\s,;:]{1,320}$)|^'(?=[^\s',;]{1,320}'$)|'$/gi, '')
    .replace(/^([^<>@,;:]{1,400}) ([^\s<>@,;:]{1,64}@[^\s<>@,;:]{1,255})$/, '$1 <$2>');
  const quoted = single.split('"').length % 2 === 0 ? single.replace('"', '') : single;
  return quoted.lastIndexOf('<') > quoted.lastIndexOf('>') ? `${quoted}>` : quoted;
}

/** Readers decode no encoded words in a URL or an id (RFC 2047 section 5). */
function structuredOf(name: string, value: string): string | null {
  if (!value.includes('=?') && !urlFields.test(name)) return null;
  const written = structureOf(name)?.write(value) ?? null;
  const same = (text: string) => text.replace(/\s/g, '');
  return written === null || same(written) === same(value) ? null : written;
}

const ids = ['references', 'in-reply-to'];
const structured = /^(?:content-.*|list-.*|received|dkim-signature|arc-.*|resent-.*|references|in-reply-to)$/;

/** Folded at its white space; null if it cannot be. */
function foldedOf({ name, label, value }: Piece): string | null {
  const spaced = ids.includes(name) ? value.replaceAll('><', '> <') : value;
  const isFree = value.length <= maxEncoded && !structured.test(name) && !addressFields.includes(name);
  return foldedField(label, isFree ? unstructured(spaced) : spaced);
}
