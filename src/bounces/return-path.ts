/**
 * Variable envelope return paths (VERP): each delivery has its own envelope sender, so the address that a bounce arrives at
 * identifies the delivery. The tag is an HMAC, so that nobody can forge an address.
 *
 *   b-<delivery id, 32 hex digits>-<tag, 16 hex digits>@<return path domain>
 *
 * 51 octets before the @, where RFC 5321 allows 64; nothing depends on letter case.
 */
import { createHmac, createSecretKey, type KeyObject, timingSafeEqual } from 'node:crypto';
import { deriveKey, keysOf, type Secrets } from '../base/secrets.ts';

export function createReturnPath(secrets: Secrets, domain: string): (deliveryId: string) => string {
  const keys = keysOf(secrets, keyOf);
  return (deliveryId) => {
    const id = deliveryId.replaceAll('-', '');
    return `b-${id}-${tagOf(keys.current(), id)}@${domain}`;
  };
}

/** Returns the delivery's id, or null if the local part is not a return path with a valid tag. */
export type ReadReturnPath = (localPart: string) => string | null;

const shape = /^b-(?<id>[0-9a-f]{32})-(?<tag>[0-9a-f]{16})$/;

export function createReturnPathReader(secrets: Secrets): ReadReturnPath {
  const keys = keysOf(secrets, keyOf);
  return (localPart) => {
    // Some hosts change the address to capitals.
    const found = shape.exec(localPart.toLowerCase())?.groups as { id: string; tag: string } | undefined;
    if (!found) return null;
    const { id } = found;
    const tag = Buffer.from(found.tag);
    const isOurs = keys.find((key) => timingSafeEqual(tag, Buffer.from(tagOf(key, id))) || null);
    return isOurs && id.replace(/^(.{8})(.{4})(.{4})(.{4})(.{12})$/, '$1-$2-$3-$4-$5');
  };
}

/** Created once, because creating a key from its bytes for every mail takes longer than the HMAC. */
function keyOf(secret: string): KeyObject {
  return createSecretKey(deriveKey(secret, 'return-path'));
}

function tagOf(key: KeyObject, id: string): string {
  return createHmac('sha256', key).update(id).digest('hex').slice(0, 16);
}
