/**
 * Ids of rows: UUIDs of version 7 (RFC 9562 section 5.7), so that later ids sort later; within this process even in the
 * same millisecond. They are written here, because a mail has eight of them and the package `uuid` makes a dozen objects for
 * each. One call gets the random bytes of a thousand ids, which costs less than one call for each.
 */
import { randomFillSync } from 'node:crypto';

/** The bytes of an id that are random: four for the start of the counter, and its last six. */
const randomBytesAnId = 10;
const pool = Buffer.allocUnsafeSlow(1024 * randomBytesAnId);
let used = pool.length;
let lastMs = Number.NEGATIVE_INFINITY;
let counter = 0;

const id = Buffer.allocUnsafeSlow(16);
/** The id with its dashes. */
const text = Buffer.from('00000000-0000-0000-0000-000000000000');
const digits = Buffer.from('0123456789abcdef');
const dash = 0x2d;

export function newId(): string {
  if (used === pool.length) {
    randomFillSync(pool);
    used = 0;
  }
  const now = Date.now();
  if (now > lastMs) {
    lastMs = now;
    id.writeUIntBE(now, 0, 6);
    // RFC 9562 section 6.2, method 1: 26 bits, with a new random start in each millisecond that leaves the highest bit clear.
    counter = pool.readUInt32BE(used) >>> 7;
  } else counter += 1;
  id.writeUInt16BE(0x7000 | (counter >>> 14), 6);
  id.writeUInt16BE(0x8000 | (counter & 0x3fff), 8);
  pool.copy(id, 10, used + 4, used + randomBytesAnId);
  used += randomBytesAnId;
  return hexadecimal();
}

function hexadecimal(): string {
  let to = 0;
  for (let at = 0; at < id.length; at++) {
    if (text[to] === dash) to += 1;
    text[to] = digits[id[at]! >> 4]!;
    text[to + 1] = digits[id[at]! & 15]!;
    to += 2;
  }
  return text.toString('latin1');
}
