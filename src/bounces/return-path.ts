/**
 * Variable envelope return paths: each delivery has a sender address of its own, so that a bounce names its delivery
 * by where it arrives. The tag is keyed; nobody can make up an address that this service takes bounces for.
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

/** Whose return path the part before the @ is; null: nobody's, the tag is not ours. */
export type ReadReturnPath = (localPart: string) => string | null;

const shape = /^b-(?<id>[0-9a-f]{32})-(?<tag>[0-9a-f]{16})$/;

export function createReturnPathReader(secrets: Secrets): ReadReturnPath {
  const keys = keysOf(secrets, keyOf);
  return (localPart) => {
    // Some hosts answer in capitals.
    const found = shape.exec(localPart.toLowerCase())?.groups as { id: string; tag: string } | undefined;
    if (!found) return null;
    const { id } = found;
    const tag = Buffer.from(found.tag);
    const isOurs = keys.find((key) => timingSafeEqual(tag, Buffer.from(tagOf(key, id))) || null);
    return isOurs && id.replace(/^(.{8})(.{4})(.{4})(.{4})(.{12})$/, '$1-$2-$3-$4-$5');
  };
}

/** Bytes would be made a key of for every mail, which takes longer than the HMAC. */
function keyOf(secret: string): KeyObject {
  return createSecretKey(deriveKey(secret, 'return-path'));
}

function tagOf(key: KeyObject, id: string): string {
  return createHmac('sha256', key).update(id).digest('hex').slice(0, 16);
}
