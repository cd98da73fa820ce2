/**
 * Reads what a part says of its transfer encoding and its charset, also in a spelling that is not the standard's but can mean
 * only one thing: with comments, quotes, blanks, a semicolon, another hyphen. The names are IANA's.
 */
import { ianaCharsets } from './iana-charsets.ts';

/** In lower case; also if there is no semicolon after it. Null if the text begins with none. */
export function mediaTypeNamed(text: string): string | null {
  const [, type, subtype] = /^\s*([\w!#$&^.+-]{1,127})\s?\/\s?([\w!#$&^.+-]{1,127})/.exec(text) ?? [];
  return type === undefined ? null : `${type}/${subtype}`.toLowerCase();
}

/** RFC 2045 section 6.1, by their letters and digits. */
const encodings: Record<string, string> = {
  '7bit': '7bit',
  '7bits': '7bit',
  '8bit': '8bit',
  '8bits': '8bit',
  binary: 'binary',
  quotedprintable: 'quoted-printable',
  base64: 'base64',
};
/** Encodings that are no standard but exist. What else is not in IANA's list is a mistake: the bytes are the content. */
const unregistered = /^x-|^(?:uuencode|uue|yenc|mac-binhex40|gzip|deflate)$/;

/** In lower case; empty for no encoding, and for one that does not exist. */
export function encodingNamed(text: string): string {
  const label = withoutComments(text)
    .split(/[;,]/)[0]!
    .replace(/["'\s]/g, '')
    .toLowerCase();
  const known = encodings[label.replace(/[^a-z0-9]/g, '')];
  return known ?? (unregistered.test(label) ? label : '');
}

/** Names of charsets are compared by it: letters and digits without leading zeros (Unicode Technical Standard 22, section 1.4). */
export function charsetKey(name: string): string {
  return name
    .toLowerCase()
    .replace(/[^a-z0-9]+/g, '')
    .replace(/(^|[a-z])0+(?=[0-9])/g, '$1');
}

const registered = new Map(
  ianaCharsets.split(/\s/).flatMap((line) => {
    const names = line.split(',');
    return names.map((name): [string, string] => [charsetKey(name), names[0]!.toLowerCase()]);
  }),
);
/** Says nothing about the bytes (RFC 1428). */
registered.delete('unknown8bit');

const longestCharset = 60;

/** The charset's preferred name in lower case; null if the text names none. */
export function charsetNamed(text: string): string | null {
  const label = withoutComments(text).replace(/["']/g, '').trim().toLowerCase();
  if (label.length > longestCharset) return null;
  const known = registered.get(charsetKey(label)) ?? decodable(label);
  if (known !== null) return known;
  // `x-sjis`, `en_US.iso885915`, `utf-8, x`
  const part = label.replace(/^x-|^[a-z]{2,3}_[a-z]{2}\./, '').split(/[\s;,]/)[0]!;
  return part === label ? null : charsetNamed(part);
}

/** Charsets that browsers know besides IANA's names, such as `utf8` and `cp1252`. */
function decodable(label: string): string | null {
  try {
    return new TextDecoder(label).encoding;
  } catch {
    return null;
  }
}

function withoutComments(text: string): string {
  return text.replace(/\([^()]*\)/g, ' ');
}
