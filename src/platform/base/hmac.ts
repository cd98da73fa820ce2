/**
 * HMAC-SHA-256 (RFC 2104) with a key that is used for every mail. Node's `createHmac` makes an object, a context of OpenSSL and
 * memory outside V8's heap for each text, which costs several times as much as the two hashes.
 */
import { hash } from 'node:crypto';

const blockLength = 64;
const digestLength = 32;

export type Hmac = (text: Buffer) => Buffer;

/** `key`: at most 64 bytes. */
export function hmacSha256(key: Buffer): Hmac {
  if (key.length > blockLength) throw new RangeError('the key is longer than a block of the hash');
  const inner = padded(key, 0x36);
  const outer = Buffer.concat([padded(key, 0x5c), Buffer.alloc(digestLength)]);
  return (text) => {
    outer.write(sha256(Buffer.concat([inner, text])), blockLength, 'latin1');
    return Buffer.from(sha256(outer), 'latin1');
  };
}

function padded(key: Buffer, pad: number): Buffer {
  const block = Buffer.alloc(blockLength, pad);
  for (const [at, byte] of key.entries()) block[at] = byte ^ pad;
  return block;
}

/** One character for each byte. */
const sha256 = (bytes: Buffer) => hash('sha256', bytes, 'binary');
