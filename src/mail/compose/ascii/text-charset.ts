/**
 * The charset that a text is in, if its label says another one, none, or one that nobody knows: what cannot be UTF-8 is not shown
 * as it was meant under that label, and what says nothing is guessed by each reader in its own way.
 */
import { isAscii, isUtf8 } from 'node:buffer';
import { unencoded } from '#mail/compose/long-lines.ts';
import type { MimeTreePart } from '#mail/compose/mime-tree.ts';
import { decoded } from '#mail/compose/transfer-encoding.ts';

type Labels = Pick<MimeTreePart, 'type' | 'charset' | 'charsetLabel' | 'isAttached' | 'encoding'>;

/** The name to write; null if the label is right, or the text could be in several. */
export function newCharset(part: Labels, body: Buffer): string | null {
  if (!part.type.startsWith('text/') || part.isAttached) return null;
  const bytes = decoded(body, unencoded.test(part.encoding) ? '' : part.encoding);
  const charset = (bytes && charsetOf(part, bytes)) ?? part.charset;
  return part.charsetLabel?.toLowerCase() === charset ? null : charset;
}

/** Null if it is what the label says, or not known. */
function charsetOf({ type, charset, charsetLabel }: Labels, bytes: Buffer): string | null {
  const isUnknown = charset === null && charsetLabel !== null;
  if (isAscii(bytes)) return isUnknown ? sevenBitCharset(bytes) : null;
  const isFree = (charset === null || charset === 'us-ascii') && !hasMeta(type, bytes);
  if (isUtf8(bytes)) return isFree ? 'utf-8' : null;
  if (charset === 'utf-8') return hasUtf8(bytes) ? null : 'windows-1252';
  // The bytes from 0x80 to 0x9F are letters nowhere else in the West.
  const isWindows = bytes.some((byte) => byte >> 5 === 4) && (isFree || charset === 'iso-8859-1');
  return isWindows || isUnknown ? 'windows-1252' : null;
}

/** RFC 1468: Japanese in ASCII bytes. */
function sevenBitCharset(bytes: Buffer): string {
  return bytes.includes('\x1b$') ? 'iso-2022-jp' : 'us-ascii';
}

/** Not every reader believes an element, so UTF-8 is named beside it. */
function hasMeta(type: string, bytes: Buffer): boolean {
  const label = type === 'text/html' ? metaLabel(bytes) : null;
  return label !== null && !/^utf-?8/i.test(label);
}

/** The charset that HTML names in its head; null if it names none. */
export function metaLabel(bytes: Buffer): string | null {
  const head = bytes.toString('latin1', 0, 4096);
  return /<meta[^>]{0,200}charset\s{0,9}=\s{0,9}["']?([\w.:-]{1,40})/i.exec(head)?.[1] ?? null;
}

/** Whether a character of several bytes is in it: then it is UTF-8 with some bytes that are not. */
export function hasUtf8(bytes: Buffer): boolean {
  return /[\xc3-\xf4][\x80-\xbf]/.test(bytes.toString('latin1'));
}
