/**
 * Private DKIM keys and webhooks' secrets at rest: AES-256-GCM under a key derived from the service's secret. A sealed text is
 * `v1.<nonce>.<tag>.<ciphertext>`, each part base64url; a changed one does not open.
 */
import { createCipheriv, createDecipheriv, randomBytes } from 'node:crypto';
import { deriveKey } from '../secret.ts';

export interface Seal {
  close(text: string): string;
  /** Throws where the text was sealed with another secret, or changed. */
  open(sealed: string): string;
}

/** What an operator can do about a secret that is not the database's, in one line. */
export class SealError extends Error {}

/** Said when opening, or else a tag cut short to four bytes would do. */
const authTagLength = 16;

export function createSeal(secret: string): Seal {
  const key = deriveKey(secret, 'seal');
  return {
    close(text) {
      const nonce = randomBytes(12);
      const cipher = createCipheriv('aes-256-gcm', key, nonce);
      const sealed = Buffer.concat([cipher.update(text, 'utf8'), cipher.final()]);
      return ['v1', nonce, cipher.getAuthTag(), sealed]
        .map((part) => (typeof part === 'string' ? part : part.toString('base64url')))
        .join('.');
    },
    open(sealed) {
      const [version, ...parts] = sealed.split('.');
      const [nonce, tag, text] = parts.map((part) => Buffer.from(part, 'base64url'));
      if (version !== 'v1' || !nonce || !tag || !text) throw new Error('not a sealed text');
      try {
        const decipher = createDecipheriv('aes-256-gcm', key, nonce, { authTagLength }).setAuthTag(tag);
        return Buffer.concat([decipher.update(text), decipher.final()]).toString('utf8');
      } catch {
        throw new SealError(
          'the DKIM keys in the database were sealed with another POSTERN_SECRET; restore that secret, or remove ' +
            'the domains (postern domain remove) and add them anew',
        );
      }
    },
  };
}
