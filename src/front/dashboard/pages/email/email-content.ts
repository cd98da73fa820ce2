/**
 * The content of a stored message for its page: HTML preview, text, header, attachment names. Read from the MIME tree
 * (mail/compose/mime-tree.ts), which bounds parts, depth and header; the size of each text shown is bounded here.
 */
import { isUtf8 } from 'node:buffer';
import { legible } from '#front/dashboard/legible.ts';
import { byReference, comparedId, safeIdsFor } from '#mail/compose/content-ids/content-ids.ts';
import { withReferences } from '#mail/compose/content-ids/references.ts';
import type { Field } from '#mail/compose/head.ts';
import { type MimeTreePart, partsOf, readTree } from '#mail/compose/mime-tree.ts';
import { bodyOf, contentIdOf, shownParts, textOf } from '#mail/compose/shown-parts.ts';

export interface EmailContent {
  hasHtml: boolean;
  text: Shown | null;
  fields: { label: string; value: string }[];
  attachments: { name: string; type: string; size: number; isInline: boolean }[];
}

interface Shown {
  text: string;
  isCut: boolean;
}

const maxText = 256 * 1024;
const maxHtml = 3 * 1024 * 1024;
/** Total of the inline images that the HTML refers to by Content-ID. */
const maxPictures = 6 * 1024 * 1024;
const pictureType = /^image\/(png|jpeg|gif|webp|bmp|svg\+xml)$/;

/** Null if the message cannot be parsed. */
export function readContent(raw: Buffer): EmailContent | null {
  const tree = readTree(raw);
  if (!tree) return null;
  const { html, text, attached } = shownParts(tree);
  const plain = text.filter(({ type }) => type !== 'text/html');
  return {
    hasHtml: html.length > 0,
    text: plain.length === 0 ? null : cut(joined(raw, plain), maxText),
    fields: tree.head.fields.map(presentField),
    attachments: attached.map((part) => ({
      name: legible(part.filename?.trim() || '(no name)'),
      type: legible(part.type),
      size: sizeOf(part),
      isInline: part.isInline,
    })),
  };
}

/** The raw message as text, to be read on the page. */
export function sourceOf(raw: Buffer): Shown {
  return { text: raw.toString(isUtf8(raw) ? 'utf8' : 'latin1', 0, maxText), isCut: raw.length > maxText };
}

/** Null if the message has no HTML. `undo` removes our own tracking from it. */
export function readHtml(raw: Buffer, undo: (html: string) => string): string | null {
  const tree = readTree(raw);
  const part = tree && shownParts(tree).html[0];
  return part ? withPictures(undo(textOf(raw, part, maxHtml)), raw, tree) : null;
}

/** Browsers cannot load `cid:` URLs (RFC 2392), so the images are inlined. */
function withPictures(html: string, raw: Buffer, tree: MimeTreePart): string {
  if (!/cid:/i.test(html)) return html;
  const parts = [...partsOf(tree)].filter(({ type }) => pictureType.test(type));
  const safe = safeIdsFor(parts.flatMap((part) => contentIdOf(part) ?? []));
  const pictures = new Map<string, string>();
  let bytesLeft = maxPictures;
  for (const part of parts) {
    const id = safe.get(contentIdOf(part) ?? '');
    if (id === undefined) continue;
    const bytes = bodyOf(raw, part);
    bytesLeft -= bytes.length;
    if (bytesLeft >= 0) pictures.set(id, `data:${part.type};base64,${bytes.toString('base64')}`);
  }
  let charactersLeft = 4 * maxPictures;
  const given = withReferences(html, byReference(safe));
  return given.replace(/\bcid:([^\s"'<>)&]{1,300})/gi, (whole, id: string) => {
    const picture = pictures.get(id) ?? pictures.get(comparedId(id)) ?? '';
    charactersLeft -= picture.length;
    return picture === '' || charactersLeft < 0 ? whole : picture;
  });
}

function joined(raw: Buffer, parts: MimeTreePart[]): string {
  let text = '';
  for (const part of parts) {
    if (text.length > maxText) break;
    text += `${text === '' ? '' : '\n'}${textOf(raw, part, 4 * maxText)}`;
  }
  return text;
}

/** The decoded size; for base64 an estimate that needs no decoding. */
function sizeOf({ head, end, encoding }: MimeTreePart): number {
  const size = end - head.bodyStart;
  return encoding === 'base64' ? Math.floor((size * 76 * 3) / (78 * 4)) : size;
}

function presentField({ label, value }: Field) {
  return { label, value: legible(value) };
}

function cut(text: string, max: number): Shown {
  return { text: text.slice(0, max), isCut: text.length > max };
}
