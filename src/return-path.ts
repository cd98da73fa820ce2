/**
 * Variable envelope return paths: each delivery has a sender address of its own, so that a bounce names its delivery
 * by where it arrives. The tag is keyed; nobody can make up an address that this service takes bounces for.
 *
 *   b-<delivery id, 32 hex digits>-<tag, 16 hex digits>@<return path domain>
 *
 * 51 octets before the @, where RFC 5321 allows 64; nothing depends on letter case.
 */
import { createHmac } from 'node:crypto';
import { deriveKey } from './secret.ts';

export function createReturnPath(secret: string, domain: string): (deliveryId: string) => string {
  const key = deriveKey(secret, 'return-path');
  return (deliveryId) => {
    const id = deliveryId.replaceAll('-', '');
    const tag = createHmac('sha256', key).update(id).digest('hex').slice(0, 16);
    return `b-${id}-${tag}@${domain}`;
  };
}
