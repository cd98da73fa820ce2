/**
 * Cursors of the feed: a position, sealed for one organization, since the positions themselves tell how much the others
 * send. One block of AES-256: position (8 octets) | beginning of the organization's SHA-256 (8), so that what is made
 * up, or another organization's, is told from what is ours.
 */
import { createCipheriv, createDecipheriv, hash } from 'node:crypto';
import { deriveKey, keysOf, type Secrets } from '../../base/secrets.ts';

export interface Cursors {
  write(orgId: string, position: number): string;
  /** Null: none of this organization's. */
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
