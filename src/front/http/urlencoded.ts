/**
 * Forms as application/x-www-form-urlencoded (https://url.spec.whatwg.org/#urlencoded-parsing). They are decoded in slices, between
 * which other requests run, because a few megabytes can take URLSearchParams half a second.
 */
import { setImmediate as yieldToOthers } from 'node:timers/promises';

const [ampersand, equals, percent, plus, space] = Buffer.from('&=%+ ');
const sliceSize = 64 * 1024;
/** A UTF-16 code unit has at most three bytes of UTF-8, and each of those can be written as `%XX`. */
export const bytesOfCharacter = 9;

export function isUrlencoded(contentType: string): boolean {
  return /^application\/x-www-form-urlencoded\s*(;|$)/i.test(contentType);
}

export interface UrlencodedField {
  name: string;
  /** The bytes of the value, still encoded. */
  value: Buffer;
}

export async function* fieldsIn(form: Buffer): AsyncGenerator<UrlencodedField> {
  for (let at = 0; at < form.length; ) {
    const end = find(form, ampersand!, at);
    const nameEnd = Math.min(find(form, equals!, at), end);
    if (end > at)
      yield { name: await decoded(form.subarray(at, nameEnd)), value: form.subarray(nameEnd + 1, end) };
    at = end + 1;
  }
}

function find(form: Buffer, byte: number, from: number): number {
  const found = form.indexOf(byte, from);
  return found < 0 ? form.length : found;
}

/** Overwrites the bytes. */
export async function decoded(bytes: Buffer): Promise<string> {
  let length = 0;
  for (let at = 0, pauseAt = sliceSize; at < bytes.length; at += 1) {
    if (at >= pauseAt) {
      pauseAt = at + sliceSize;
      await yieldToOthers();
    }
    const byte = bytes[at]!;
    const escaped = byte === percent ? (digitOf(bytes[at + 1]) << 4) | digitOf(bytes[at + 2]) : -1;
    if (escaped >= 0) at += 2;
    bytes[length] = escaped >= 0 ? escaped : byte === plus ? space! : byte;
    length += 1;
  }
  return bytes.toString('utf8', 0, length);
}

/** The value of a hexadecimal digit; -1 for anything else. */
const digits = new Int8Array(256).fill(-1);
for (const [value, digit] of [...'0123456789abcdef'].entries())
  for (const written of Buffer.from(digit + digit.toUpperCase())) digits[written] = value;

function digitOf(byte: number | undefined): number {
  return byte === undefined ? -1 : digits[byte]!;
}
