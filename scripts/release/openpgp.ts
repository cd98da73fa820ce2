/**
 * The release key as OpenPGP (RFC 9580, version 4, EdDSA legacy): apt knows no other signatures. A certificate of the key with one
 * name, and detached signatures. The key's time is fixed, because it is part of the fingerprint.
 */
import { createHash, createPublicKey, type KeyObject, sign } from 'node:crypto';

const createdAt = Math.floor(Date.UTC(2026, 0, 1) / 1000);
const userId = 'Postern releases';
const eddsa = 22;
const sha256 = 8;
const tags = { signature: 2, publicKey: 6, userId: 13 };
const types = { ofBytes: 0x00, ofCertificate: 0x13 };
/** Certifies itself, and signs data. */
const keyFlags = 0x03;
const ed25519Oid = Buffer.from('092b06010401da470f01', 'hex');

export function certificateOf(privateKey: KeyObject): Buffer {
  const key = publicKeyBody(privateKey);
  const name = Buffer.from(userId);
  const certified = Buffer.concat([framed(0x99, 2, key), framed(0xb4, 4, name)]);
  const flags = subpacket(27, Buffer.from([keyFlags]));
  const signature = signatureBody(privateKey, types.ofCertificate, certified, createdAt, flags);
  return Buffer.concat([
    packet(tags.publicKey, key),
    packet(tags.userId, name),
    packet(tags.signature, signature),
  ]);
}

/** In ASCII armor, which apt demands. `at`: in seconds. */
export function detachedSignature(privateKey: KeyObject, data: Buffer, at: number): string {
  const made = packet(tags.signature, signatureBody(privateKey, types.ofBytes, data, at));
  const lines = made.toString('base64').replace(/.{64}/g, '$&\n');
  return `-----BEGIN PGP SIGNATURE-----\n\n${lines}\n-----END PGP SIGNATURE-----\n`;
}

function signatureBody(
  privateKey: KeyObject,
  type: number,
  data: Buffer,
  at: number,
  more: Buffer = Buffer.alloc(0),
): Buffer {
  const fingerprint = createHash('sha1')
    .update(framed(0x99, 2, publicKeyBody(privateKey)))
    .digest();
  const hashed = Buffer.concat([
    subpacket(2, number(at, 4)),
    subpacket(33, Buffer.concat([Buffer.from([4]), fingerprint])),
    subpacket(16, fingerprint.subarray(-8)),
    more,
  ]);
  const head = Buffer.concat([Buffer.from([4, type, eddsa, sha256]), number(hashed.length, 2), hashed]);
  const trailer = Buffer.concat([Buffer.from([4, 0xff]), number(head.length, 4)]);
  const digest = createHash('sha256').update(data).update(head).update(trailer).digest();
  const made = sign(null, digest, privateKey);
  const halves = [integer(made.subarray(0, 32)), integer(made.subarray(32))];
  return Buffer.concat([head, number(0, 2), digest.subarray(0, 2), ...halves]);
}

function publicKeyBody(privateKey: KeyObject): Buffer {
  const { x } = createPublicKey(privateKey).export({ format: 'jwk' });
  const point = Buffer.concat([Buffer.from([0x40]), Buffer.from(x!, 'base64url')]);
  return Buffer.concat([
    Buffer.from([4]),
    number(createdAt, 4),
    Buffer.from([eddsa]),
    ed25519Oid,
    integer(point),
  ]);
}

/** A multiprecision integer: its bits, then its bytes without leading zeros. */
function integer(bytes: Buffer): Buffer {
  const first = bytes.findIndex((byte) => byte !== 0);
  const significant = bytes.subarray(first === -1 ? bytes.length : first);
  const bits = significant.length === 0 ? 0 : significant.length * 8 - Math.clz32(significant[0]!) + 24;
  return Buffer.concat([number(bits, 2), significant]);
}

function packet(tag: number, body: Buffer): Buffer {
  return framed(0xc0 | tag, 0, Buffer.concat([lengthOf(body.length), body]));
}

function subpacket(type: number, body: Buffer): Buffer {
  return Buffer.concat([lengthOf(body.length + 1), Buffer.from([type]), body]);
}

function lengthOf(length: number): Buffer {
  return length < 192
    ? Buffer.from([length])
    : Buffer.from([((length - 192) >> 8) + 192, (length - 192) & 0xff]);
}

function framed(first: number, lengthBytes: number, body: Buffer): Buffer {
  return Buffer.concat([Buffer.from([first]), number(body.length, lengthBytes), body]);
}

function number(value: number, bytes: number): Buffer {
  const whole = Buffer.alloc(4);
  whole.writeUInt32BE(value);
  return whole.subarray(4 - bytes);
}
