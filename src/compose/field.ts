/**
 * Header fields as they stand in a message: the value in what a header can carry (RFC 2047 where it is not ASCII), in
 * lines of 76 characters where white space lets them be. Encoded words and folding are nodemailer's.
 */

import { envelopeAddress } from '../mail/address.ts';
import { encodeWord, encodeWords, foldLines, quoteString } from '../vendor/nodemailer.ts';
import { isMostlyLetters } from './choose-encoding.ts';

export interface FieldLine {
  name: string;
  /** All of it, folded, without the line end at its end. */
  text: string;
}

const lineLength = 76;

/** A field with a value that is fit for a header; what folding needs is white space within. */
export function field(name: string, value: string): FieldLine {
  const text = `${name}: ${value}`;
  return { name, text: text.length < lineLength ? text : foldLines(text, lineLength) };
}

/**
 * Printable ASCII that folding can lay out in lines of 998 octets at most (RFC 5322 section 2.1.1), none of which is
 * white space alone (section 3.2.2).
 */
const foldable = /^[\x21-\x7e]{1,900}(?:[ \t]{1,20}[\x21-\x7e]{1,900})*$/;

/**
 * A value as given where that can be folded, encoded where not. Nodemailer encodes what is not ASCII; left to itself
 * it folds white space onto lines of its own, never cuts a word, and encodes every quote, which belies structured
 * values.
 */
export function unstructured(value: string): string {
  if (foldable.test(value) && !value.includes('=?')) return value;
  const isPrintable = /^[\x20-\x7e\t]*$/.test(value);
  if (isPrintable && !foldable.test(value)) return value && encodeWord(value, 'Q', maxWordLength);
  return encodedText(value);
}

/** A value in encoded words, unless it is plain ASCII that cannot be taken for one. */
export function encodedText(value: string): string {
  const encoding = isMostlyLetters(value) ? 'Q' : 'B';
  // Line ends among them, though callers have none: nothing given becomes a field of its own.
  const hasControls = /[\x00-\x08\x0a-\x1f\x7f]/.test(value);
  return hasControls
    ? encodeWord(value, encoding, maxWordLength)
    : encodeWords(value, encoding, maxWordLength, true);
}

/** RFC 5322 section 3.6.4: ids in angle brackets, which callers may have left out. */
export function messageIds(value: string): string {
  if (!foldable.test(value)) return unstructured(value);
  return value.replace(/[^ \t]+/g, (id) => `<${id.replace(/^<|>$/g, '')}>`);
}

export function mailbox({ name, address }: { name: string; address: string }): string {
  const written = envelopeAddress(address);
  if (name) return `${displayName(name)} <${written}>`;
  // A quoted local part: without angle brackets, a comma in it would separate two addresses to some.
  return address.startsWith('"') ? `<${written}>` : written;
}

function displayName(name: string): string {
  if (/^[\w ]*$/.test(name)) return name;
  if (/^[\x20-\x7e]*$/.test(name)) return quoteString(name);
  return encodeWord(name, isMostlyLetters(name) ? 'Q' : 'B', maxWordLength);
}

/** RFC 2047 section 2 allows 75, and the name of a field stands before the first. */
const maxWordLength = 52;
