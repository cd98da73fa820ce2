/**
 * Addresses of one delivery: its return path (VERP), so that the address that a bounce arrives at identifies the delivery, and
 * the one that mail to unsubscribes is written to. The tag is an HMAC, so that addresses cannot be forged.
 *
 *   b- or u-<delivery id (128 bits) and tag (56 bits), 37 digits to the base 32>@<return path domain>
 *
 * 39 bytes before the @, so that a forwarder can put it, its domain and a tag of its own before the @ of a new address
 * (SRS), where RFC 5321 allows 64; nothing depends on letter case. Before 0.8 it was b-<32 hex digits>-<16 hex digits>;
 * such an address is still read, because a host may return a mail weeks later.
 */
import { timingSafeEqual } from 'node:crypto';
import { type Hmac, hmacSha256 } from '#platform/base/hmac.ts';
import { deriveKey, keysOf, type Purpose, type Secrets } from '#platform/base/secrets.ts';

interface AddressKind {
  /** With which the address begins. */
  letter: string;
  /** Its key is derived for this. */
  purpose: Purpose;
}

const returnPath: AddressKind = { letter: 'b', purpose: 'return-path' };

export const unsubscribeAddress: AddressKind = { letter: 'u', purpose: 'unsubscribe' };

/** `domain`: that of the server. `own`: under the sender's domain (accounts/rows/return-paths.ts). */
export function createReturnPath(
  secrets: Secrets,
  domain: string,
  { letter, purpose } = returnPath,
): (deliveryId: string, own?: string | null) => string {
  const keys = keysOf(secrets, hmacFor(purpose));
  return (deliveryId, own = null) => {
    const id = deliveryId.replaceAll('-', '');
    const digits = BigInt(`0x${id}${tagOf(keys.current(), id).slice(0, tagLength)}`).toString(32);
    return `${letter}-${digits.padStart(37, '0')}@${own ?? domain}`;
  };
}

/** Returns the delivery's id, or null if the local part is not such an address with a valid tag. */
export type ReadReturnPath = (localPart: string) => string | null;

/** Hexadecimal digits. */
const tagLength = 14;

const shape = /^(?<letter>[bu])-(?:(?<digits>[0-9a-v]{37})|(?<id>[0-9a-f]{32})-(?<tag>[0-9a-f]{16}))$/;
const parts = /^(?<id>[0-9a-f]{32})(?<tag>[0-9a-f]{14})$/;

export function createReturnPathReader(secrets: Secrets, { letter, purpose } = returnPath): ReadReturnPath {
  const keys = keysOf(secrets, hmacFor(purpose));
  return (localPart) => {
    // Some hosts change the address to capitals.
    const written = shape.exec(localPart.toLowerCase())?.groups;
    if (written?.letter !== letter) return null;
    const found = written.digits ? parts.exec(toHex(written.digits))?.groups : written;
    if (!found) return null;
    const id = found.id!;
    const tag = Buffer.from(found.tag!);
    const ofKey = (key: Hmac) => Buffer.from(tagOf(key, id).slice(0, tag.length));
    const isOurs = keys.find((key) => timingSafeEqual(tag, ofKey(key)) || null);
    return isOurs && id.replace(/^(.{8})(.{4})(.{4})(.{4})(.{12})$/, '$1-$2-$3-$4-$5');
  };
}

/** 46 digits, or more if the number is too large. */
function toHex(digits: string): string {
  const number = [...digits].reduce((sum, one) => sum * 32n + BigInt(Number.parseInt(one, 32)), 0n);
  return number.toString(16).padStart(46, '0');
}

const hmacFor = (purpose: Purpose) => (secret: string) => hmacSha256(deriveKey(secret, purpose));

function tagOf(hmac: Hmac, id: string): string {
  return hmac(Buffer.from(id)).toString('hex', 0, 8);
}
