/**
 * Lines of more than 998 bytes (RFC 5322 section 2.1.1): other servers refuse or cut them, and both break a signature. Those of
 * most parts can be made shorter by another transfer encoding (seven-bit.ts).
 */
import type { MimeTreePart } from './mime-tree.ts';

const maxLine = 998;

export function hasLongLine(bytes: Buffer): boolean {
  // Only the last line end within the limit is looked for: a message can have a million empty lines.
  let start = 0;
  while (bytes.length - start > maxLine) {
    const end = bytes.subarray(start, start + maxLine + 2).lastIndexOf('\r\n');
    if (end < 0) return true;
    start += end + 2;
  }
  return false;
}

/** Signed or encrypted (RFC 1847): a change would break it. */
export const sealed = /^multipart\/(signed|encrypted)$/;
export const unencoded = /^(7bit|8bit|binary|)$/;

/** fixed: there is one that cannot be made shorter. */
export function longLines(raw: Buffer, part: MimeTreePart): 'none' | 'repairable' | 'fixed' {
  const bytes = raw.subarray(part.start, part.end);
  if (!hasLongLine(bytes)) return 'none';
  if (sealed.test(part.type)) return 'fixed';
  if (hasLongLine(raw.subarray(part.start, part.head.bodyStart)) && part.start === 0) return 'fixed';
  if (part.children.length > 0) {
    return part.children.some((child) => longLines(raw, child) === 'fixed') ? 'fixed' : 'repairable';
  }
  const isKnown = unencoded.test(part.encoding) || /^(quoted-printable|base64)$/.test(part.encoding);
  const isMessage = part.type.startsWith('message/') && !/^message\/(rfc822|global)$/.test(part.type);
  return isKnown && !isMessage ? 'repairable' : 'fixed';
}
