/**
 * Reads a received mail: its parts, and what of it is stored beside its bytes. Runs on a guarded thread, because strangers wrote
 * it. The time is linear in its size (mail/compose/mime-tree.ts), except for the lines of a reply, which are bounded.
 */
import { decodeWords } from 'postal-mime';
import { fieldValue, type Head, type HeadLimits, readHead } from '#mail/compose/head.ts';
import { type MimeTreePart, readTree } from '#mail/compose/mime-tree.ts';
import { bodyOf, contentIdOf, shownParts, textOf } from '#mail/compose/shown-parts.ts';
import { textFromHtml } from '#mail/compose/text-from-html.ts';
import { toDomain } from '#platform/values/address.ts';
import { readAddressList } from '#platform/values/mailbox-list.ts';
import { replyIn } from '#platform/vendor/email-reply-parser.ts';
import type { ReceivedAttachment, ReceivedContent, ReceivedSummary } from './received-mail.ts';
import { type SignatureFields, signaturesIn } from './signature-fields.ts';

/** What reception needs of a mail. */
export interface ReadMail {
  messageId: string | null;
  subject: string;
  fromHeader: string;
  /** The Message-IDs of In-Reply-To and References, without angle brackets; the most likely ones first. */
  answered: string[];
  signatures: SignatureFields;
  /** The domains of its From, each once, as A-labels; null if it cannot be read in one way only. */
  fromDomains: string[] | null;
  summary: Pick<
    ReceivedSummary,
    'isReadable' | 'preview' | 'textLength' | 'htmlLength' | 'attachments' | 'references' | 'isAutomatic'
  >;
}

/** Mail that was passed on often has larger headers than what applications submit. */
const limits: HeadLimits = { length: 512 * 1024, fields: 2000 };
const longestPreview = 200;
/** RFC 5322 section 2.1.1: the longest line. */
const longestValue = 998;
const maxAnswered = 20;
const maxFromLength = 16 * 1024;
/** Some of the expressions for a reply's lines take more than linear time in a line. */
const longestReplied = 32 * 1024;
const longestRepliedLine = 1000;

export function readMail(raw: Buffer): ReadMail {
  const tree = readTree(raw, limits);
  const head = tree?.head ?? readHead(raw, 0, raw.length, limits);
  const content = tree && partsIn(raw, tree);
  return {
    messageId: idsIn(fieldValue(head, 'message-id'))[0] ?? null,
    subject: decodedValue(head, 'subject'),
    fromHeader: decodedValue(head, 'from'),
    answered: answeredIn(head),
    signatures: signaturesIn(raw, head),
    fromDomains: fromDomainsIn(head),
    summary: {
      isReadable: content !== null,
      preview: previewOf(content?.text ?? ''),
      textLength: content?.text.length ?? 0,
      htmlLength: content?.html?.length ?? 0,
      attachments: content?.attachments ?? [],
      references: referencesIn(head),
      isAutomatic: isAutomatic(head),
    },
  };
}

/** A mail that is read whole. */
export interface OpenMail {
  content: ReceivedContent;
  /** The decoded bytes of an attached file. */
  file(position: number): Buffer;
}

/** Null if the mail cannot be parsed. */
export function openMail(raw: Buffer): OpenMail | null {
  const tree = readTree(raw, limits);
  if (!tree) return null;
  const headers = tree.head.fields.map(({ label, value }) => ({
    name: label,
    value: storable(decodeWords(value)),
  }));
  const parts = partsIn(raw, tree);
  const { attached } = shownParts(tree);
  return {
    content: { headers, ...parts, reply: replyOf(parts.text) },
    file: (position) => bodyOf(raw, attached[position]!),
  };
}

/** Null if the mail cannot be parsed. */
export function readContent(raw: Buffer): ReceivedContent | null {
  return openMail(raw)?.content ?? null;
}

/** The decoded bytes of an attached file; null if there is none at this position. */
export function readFile(raw: Buffer, position: number): Buffer | null {
  const tree = readTree(raw, limits);
  const part = tree && shownParts(tree).attached[position];
  return part ? bodyOf(raw, part) : null;
}

function partsIn(raw: Buffer, tree: MimeTreePart): Pick<ReceivedContent, 'text' | 'html' | 'attachments'> {
  const { text, html, attached } = shownParts(tree);
  const read = new Map([...new Set([...text, ...html])].map((part) => [part, storable(textOf(raw, part))]));
  const plain = text.map((part) => {
    const content = read.get(part)!;
    return part.type === 'text/html' ? textFromHtml(content) : content;
  });
  const whole = html.length === 0 ? null : html.map((part) => read.get(part)!).join('\n');
  const joined = plain.join('\n');
  return {
    // Some programs write an alternative in plain text that is blank.
    text: whole !== null && joined.trim() === '' ? (textFromHtml(whole) ?? joined) : joined,
    html: whole,
    attachments: attached.map((part, position) => describe(raw, part, position)),
  };
}

function describe(raw: Buffer, part: MimeTreePart, position: number): ReceivedAttachment {
  const contentId = contentIdOf(part);
  return {
    position,
    filename: part.filename === null ? null : storableValue(part.filename),
    type: storableValue(part.type),
    size: bodyOf(raw, part).length,
    contentId: contentId === null ? null : storableValue(contentId),
    isInline: part.isInline,
  };
}

function decodedValue(head: Head, name: string): string {
  const value = (fieldValue(head, name) ?? '').slice(0, 4 * longestValue);
  return storableValue(decodeWords(value));
}

function previewOf(text: string): string {
  const line = text
    .slice(0, 4 * longestPreview)
    .replace(/\s+/g, ' ')
    .trim();
  return storable(line.slice(0, longestPreview));
}

/** Cut first, because a cut may leave half a surrogate pair. */
function storableValue(text: string): string {
  return storable(text.slice(0, longestValue));
}

/** PostgreSQL, ours or an application's, stores no NUL, and no database half a surrogate pair. */
function storable(text: string): string {
  return text.replaceAll('\0', '\ufffd').toWellFormed();
}

/** In-Reply-To, then References from its end, where the mail that is answered stands. */
function answeredIn(head: Head): string[] {
  const ids = [...idsIn(fieldValue(head, 'in-reply-to')), ...idsIn(fieldValue(head, 'references')).reverse()];
  return [...new Set(ids)].slice(0, maxAnswered);
}

const longestReference = 200;

/** The last of them; one that is longer is left out, because an answer repeats them. */
function referencesIn(head: Head): string[] {
  const ids = idsIn(fieldValue(head, 'references')).filter((id) => id.length <= longestReference);
  return ids.slice(-maxAnswered);
}

function idsIn(value: string | null): string[] {
  const text = (value ?? '').slice(-64 * 1024);
  const ids = [...text.matchAll(/<([^<>\s]{1,998})>/g)].map(([, id]) => storable(id!));
  // Some programs leave the angle brackets out.
  return ids.length === 0 && /^[^\s<>]{1,998}$/.test(text) ? [storable(text)] : ids;
}

/** Null: there are several fields, which readers choose from as they like, or an address names no domain. */
function fromDomainsIn(head: Head): string[] | null {
  const [from, ...others] = head.fields.filter(({ name }) => name === 'from');
  if (!from) return [];
  const list = others.length > 0 || from.value.length > maxFromLength ? null : readAddressList(from.value);
  const domains = list?.mailboxes.map(({ address }) => toDomain(address.slice(address.lastIndexOf('@') + 1)));
  if (!domains || domains.includes(null)) return null;
  return [...new Set(domains as string[])];
}

/**
 * RFC 3834 section 5, RFC 2919, and what programs wrote before those. Not X-Auto-Response-Suppress, which Exchange also writes into
 * the mail of people, for example if it passed a distribution list.
 */
function isAutomatic(head: Head): boolean {
  const value = (name: string) => (fieldValue(head, name) ?? '').toLowerCase();
  return (
    /^auto-/.test(value('auto-submitted')) ||
    /^(?:bulk|junk|list|auto[-_]?reply)\b/.test(value('precedence')) ||
    ['list-id', 'x-autoreply', 'x-autorespond'].some((name) => fieldValue(head, name) !== null)
  );
}

function replyOf(text: string): string {
  const isBounded =
    text.length <= longestReplied && text.split('\n').every((line) => line.length <= longestRepliedLine);
  return isBounded ? replyIn(text) : text;
}
