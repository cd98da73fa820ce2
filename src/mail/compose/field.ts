/**
 * Header fields as they are written in a message: values encoded if a header cannot carry them (RFC 2047), and folded to
 * lines of 76 characters where white space allows it. Encoded words and folding are nodemailer's.
 */

import { envelopeAddress } from '#platform/values/address.ts';
import { encodeWord, encodeWords, foldLines, quoteString } from '#platform/vendor/nodemailer.ts';
import { isMostlyLetters } from './transfer-encoding.ts';

export interface FieldLine {
  name: string;
  /** The whole field, folded, without its last CRLF. */
  text: string;
}

const lineLength = 76;

/** The value must be encoded already. Folding needs white space inside it. */
export function field(name: string, value: string): FieldLine {
  const text = `${name}: ${value}`;
  if (text.length < lineLength) return { name, text };
  const folded = foldLines(text, lineLength);
  const [start, next] = [`${name}:\r\n `, folded.indexOf('\r\n', name.length + 3)];
  // Some verifiers of DKIM and some readers take a value for empty that begins on the second line.
  const isEmptyLine = folded.startsWith(start) && (next < 0 ? folded.length : next) <= maxLine;
  return { name, text: isEmptyLine ? `${name}: ${folded.slice(start.length)}` : folded };
}

/** RFC 5322 section 2.1.1. */
const maxLine = 998;

/** With the white space before it; fits on a line of 998 bytes. */
const maxWord = 900;

/** Folds at white space, in time linear in the length; null if a word has no room on a line. */
export function foldedField(label: string, value: string): string | null {
  if (label.length > maxWord) return null;
  let text = `${label}:`;
  let column = text.length;
  for (const [word] of ` ${value}`.trimEnd().matchAll(/[ \t]+[^ \t]*/g)) {
    if (word.length > maxWord) return null;
    const isFirst = text.length === label.length + 1;
    const isNext = column + word.length > (isFirst ? maxLine : lineLength);
    text += isNext ? `\r\n${word}` : word;
    column = isNext ? word.length : column + word.length;
  }
  return text;
}

/**
 * Printable ASCII that can be folded to lines of at most 998 bytes (RFC 5322 section 2.1.1), none of which is only white
 * space (section 3.2.2).
 */
export const foldable = /^[\x21-\x7e]{1,900}(?:[ \t]{1,20}[\x21-\x7e]{1,900})*$/;

/**
 * The value itself if it can be folded, otherwise encoded. nodemailer alone would only encode what is not ASCII: it folds
 * white space onto lines of its own, never splits a word, and encodes every quote, which falsifies structured values.
 */
export function unstructured(value: string): string {
  if (foldable.test(value) && !value.includes('=?')) return value;
  const isPrintable = /^[\x20-\x7e\t]*$/.test(value);
  if (isPrintable && !foldable.test(value)) return value && encodeWord(value, 'Q', maxWordLength);
  return encodedText(value);
}

/** The value in encoded words, unless it is plain ASCII that cannot be mistaken for one. */
export function encodedText(value: string): string {
  const encoding = isMostlyLetters(value) ? 'Q' : 'B';
  // nodemailer would leave what looks like an encoded word as it is, and readers would decode it. Controls include line
  // ends, although callers refuse them: no value may ever become a field of its own.
  const needsEncoding = /=\?|[\x00-\x08\x0a-\x1f\x7f]/.test(value);
  return needsEncoding
    ? encodeWord(value, encoding, maxWordLength)
    : encodeWords(value, encoding, maxWordLength, true);
}

export function mailbox({ name, address }: { name: string; address: string }): string {
  const written = envelopeAddress(address);
  if (name) return `${phrase(name)} <${written}>`;
  // A quoted local part gets angle brackets: without them, some readers take a comma in it for a separator.
  return address.startsWith('"') ? `<${written}>` : written;
}

/** RFC 5322 section 3.2.5. A quoted string that looks like an encoded word is decoded by many readers. */
export function phrase(name: string): string {
  if (/^[\w ]*$/.test(name)) return name;
  if (/^[\x20-\x7e]*$/.test(name) && !name.includes('=?')) return quoteString(name);
  return encodeWord(name, isMostlyLetters(name) ? 'Q' : 'B', maxWordLength);
}

/** RFC 2047 section 2 allows 75; the field's name takes part of the first line. */
const maxWordLength = 52;
