/** The parts of a message that people see: its HTML, its text, and the files that are attached. Read from its MIME tree. */
import { fieldValue } from './head.ts';
import { htmlParts } from './html-parts.ts';
import { type MimeTreePart, partsOf } from './mime-tree.ts';
import { decoded } from './transfer-encoding.ts';

export interface ShownParts {
  html: MimeTreePart[];
  text: MimeTreePart | null;
  attached: MimeTreePart[];
}

export function shownParts(tree: MimeTreePart): ShownParts {
  const leaves = [...partsOf(tree)].filter(
    ({ children, type }) => children.length === 0 && !type.startsWith('multipart/'),
  );
  const html = htmlParts(tree);
  const isText = ({ type, isAttached }: MimeTreePart) => type === 'text/plain' && !isAttached;
  // A multipart without parts, because its boundary is missing: text, as of an invalid type (RFC 2045 section 5.2).
  const text = leaves.find(isText) ?? (leaves.length === 0 ? tree : null);
  // The invitation among the alternatives is attached as well.
  const attached = leaves.filter((part) => part !== text && !html.includes(part) && !isUnnamedCalendar(part));
  return { html, text, attached };
}

function isUnnamedCalendar({ type, filename, isAttached }: MimeTreePart): boolean {
  return type === 'text/calendar' && filename === null && !isAttached;
}

export function isInline({ head }: MimeTreePart): boolean {
  return /^inline\b/i.test(fieldValue(head, 'content-disposition') ?? '');
}

/** Without its angle brackets. */
export function contentIdOf({ head }: MimeTreePart): string | null {
  return /^<(.+)>$/.exec(fieldValue(head, 'content-id') ?? '')?.[1] ?? null;
}

/** Decoded, if the encoding is known here. */
export function bodyOf(raw: Buffer, { head, end, encoding }: MimeTreePart): Buffer {
  const body = raw.subarray(head.bodyStart, end);
  return decoded(body, encoding) ?? body;
}
