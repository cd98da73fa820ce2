/**
 * Private DKIM keys and webhooks' secrets at rest: AES-256-GCM under a key derived from the service's secret. A sealed text is
 * `v1.<nonce>.<tag>.<ciphertext>`, each part base64url; a changed one does not open.
 */
import { createCipheriv, createDecipheriv, randomBytes } from 'node:crypto';
import { deriveKey, keysOf, type Secrets } from '../base/secrets.ts';

export interface Seal {
  /** With the current secret. */
  close(text: string): string;
  /** With any of the secrets. Throws where the text was sealed with another one, or changed. */
  open(sealed: string): string;
  opens(sealed: string): boolean;
  /** The same, sealed with the current secret; null where it is. */
  renew(sealed: string): string | null;
}

/** What an operator can do about a secret that is not the database's, in one line. */
export class SealError extends Error {}

/** Said when opening, or else a tag cut short to four bytes would do. */
const authTagLength = 16;

export function createSeal(secrets: Secrets): Seal {
  const keys = keysOf(secrets, (secret) => deriveKey(secret, 'seal'));
  const seal: Seal = {
    close(text) {
      const nonce = randomBytes(12);
      const cipher = createCipheriv('aes-256-gcm', keys.current(), nonce);
      const sealed = Buffer.concat([cipher.update(text, 'utf8'), cipher.final()]);
      return ['v1', nonce, cipher.getAuthTag(), sealed]
        .map((part) => (typeof part === 'string' ? part : part.toString('base64url')))
        .join('.');
    },
    open(sealed) {
      const parts = partsOf(sealed);
      const text = keys.find((key) => opened(parts, key));
      if (text !== null) return text;
      throw new SealError(
        'the DKIM keys in the database were sealed with another POSTERN_SECRET; restore that secret, or remove ' +
          'the domains (postern domain remove) and add them anew',
      );
    },
    opens(sealed) {
      try {
        seal.open(sealed);
        return true;
      } catch {
        return false;
      }
    },
    renew: (sealed) =>
      opened(partsOf(sealed), keys.current()) === null ? seal.close(seal.open(sealed)) : null,
  };
  return seal;
}

interface Parts {
  nonce: Buffer;
  tag: Buffer;
  text: Buffer;
}

function partsOf(sealed: string): Parts {
  const [version, ...parts] = sealed.split('.');
  const [nonce, tag, text] = parts.map((part) => Buffer.from(part, 'base64url'));
  if (version !== 'v1' || !nonce || !tag || !text) throw new Error('not a sealed text');
  return { nonce, tag, text };
}

function opened({ nonce, tag, text }: Parts, key: Buffer): string | null {
  try {
    const decipher = createDecipheriv('aes-256-gcm', key, nonce, { authTagLength }).setAuthTag(tag);
    return Buffer.concat([decipher.update(text), decipher.final()]).toString('utf8');
  } catch {
    return null;
  }
}
