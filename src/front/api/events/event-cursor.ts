/**
 * Cursors of the event feed: a position, encrypted for one organization, because plain positions would reveal how much
 * other organizations send. One block of AES-256: position (8 bytes) | first bytes of the organization's SHA-256 (8),
 * so that an invented cursor, or one of another organization, is recognised.
 */
import { createCipheriv, createDecipheriv, hash } from 'node:crypto';
import { deriveKey, keysOf, type Secrets } from '#platform/base/secrets.ts';

export interface Cursors {
  write(orgId: string, position: number): string;
  /** Null if the text is not a cursor of this organization. */
  read(orgId: string, text: string): number | null;
}

const cipher = 'aes-256-ecb';
const blockLength = 16;

export function createCursors(secrets: Secrets): Cursors {
  const keys = keysOf(secrets, (secret) => deriveKey(secret, 'event-cursor'));
  return {
    write(orgId, position) {
      const block = Buffer.concat([Buffer.alloc(8), ownerOf(orgId)]);
      block.writeBigUInt64BE(BigInt(position));
      return createCipheriv(cipher, keys.current(), null)
        .setAutoPadding(false)
        .update(block)
        .toString('base64url');
    },
    read(orgId, text) {
      const sealed = Buffer.from(text, 'base64url');
      if (sealed.length !== blockLength || sealed.toString('base64url') !== text) return null;
      const owner = ownerOf(orgId);
      return keys.find((key) => {
        const block = createDecipheriv(cipher, key, null).setAutoPadding(false).update(sealed);
        return block.subarray(8).equals(owner) ? Number(block.readBigUInt64BE()) : null;
      });
    },
  };
}

function ownerOf(orgId: string): Buffer {
  return hash('sha256', orgId, 'buffer').subarray(0, 8);
}
