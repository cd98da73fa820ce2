/**
 * The content of an attachment in base64, as programs write it: standard (RFC 4648 section 4) or URL-safe (section 5), with its
 * padding or without, with line breaks, or as a `data:` URI (RFC 2397). What is not that is named.
 */
import { z } from 'zod';

const standard = /^[A-Za-z0-9+/]*={0,2}$/;
const urlSafe = /^[A-Za-z0-9_-]*={0,2}$/;
const expected = 'base64';

export const base64Content = z.string().transform((text, context) => {
  const read = readBase64(text);
  if (typeof read !== 'string') return read;
  context.addIssue({ code: 'custom', message: `must be ${expected}: ${read}`, params: { expected } });
  return z.NEVER;
});

/** What is wrong instead, if the text is not base64. */
function readBase64(text: string): Buffer | string {
  const data = dataOf(text);
  if (data === null) return 'it is a data: URI, but not of base64. Give data:;base64, and then the content';
  const packed = withoutBreaks(data);
  if (!standard.test(packed) && !urlSafe.test(packed)) return faultOf(packed);
  const length = packed.indexOf('=') < 0 ? packed.length : packed.indexOf('=');
  // Each character is six bits, so that one is left over of no octet.
  if (length % 4 === 1 || (length === 0 && packed !== ''))
    return 'it ends within an octet; the content may have been cut off';
  return Buffer.from(packed, 'base64');
}

/** The text itself, or what a `data:` URI has after its comma; null if that is not base64. */
function dataOf(text: string): string | null {
  if (!/^data:/i.test(text)) return text;
  const comma = text.indexOf(',');
  return comma >= 0 && /;base64$/i.test(text.slice(0, comma).trim()) ? text.slice(comma + 1) : null;
}

function faultOf(packed: string): string {
  const at = packed.search(/[^A-Za-z0-9+/=_-]/);
  if (at < 0)
    return /[+/]/.test(packed) && /[_-]/.test(packed)
      ? 'it has characters of both alphabets, + or / and - or _'
      : 'it has = before its end, or more than two';
  if (packed[at] === ' ')
    return `it has a blank, after ${at} characters. Forms write + as a blank; write it as %2B there`;
  return `it has the character ${JSON.stringify(String.fromCodePoint(packed.codePointAt(at)!))}, after ${at} characters`;
}

/** A regular expression would take half a second for 20 MB that are mostly line breaks. */
function withoutBreaks(text: string): string {
  if (!/[\r\n]/.test(text)) return text;
  const bytes = Buffer.from(text);
  let length = 0;
  for (let at = 0; at < bytes.length; at += 1) {
    const byte = bytes[at]!;
    if (byte === 0x0d || byte === 0x0a) continue;
    bytes[length] = byte;
    length += 1;
  }
  return bytes.toString('utf8', 0, length);
}
