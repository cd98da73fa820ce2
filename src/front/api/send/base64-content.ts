/**
 * The content of an attachment: standard base64 with its padding (RFC 4648 section 4); line breaks are allowed, and a file can be
 * empty. Other forms that programs write by mistake are named with what would be right: without its padding, a content that was
 * cut off would look whole.
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

/** Says what is wrong if the text is not base64. */
function readBase64(text: string): Buffer | string {
  if (/^data:/i.test(text)) return 'it is a data: URI. Give only what follows its comma, if that is base64';
  const packed = withoutBreaks(text);
  if (!standard.test(packed)) return problemOf(packed);
  const length = packed.indexOf('=') < 0 ? packed.length : packed.indexOf('=');
  // Each character is six bits, so that one is left over of no byte.
  if (length % 4 === 1 || (length === 0 && packed !== ''))
    return 'it ends within a byte; the content may have been cut off';
  const padding = '='.repeat((4 - (length % 4)) % 4);
  if (packed.length !== length + padding.length)
    return padding === ''
      ? 'it has = that do not belong there'
      : `its padding is missing or wrong. End it with ${padding}`;
  return Buffer.from(packed, 'base64');
}

function problemOf(packed: string): string {
  if (urlSafe.test(packed))
    return 'it is URL-safe base64, with - or _. Write + in place of -, and / in place of _';
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
