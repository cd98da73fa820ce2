/**
 * Encrypts private DKIM keys, webhook secrets and the messages of the server's own mail at rest: AES-256-GCM with a key derived
 * from POSTERN_SECRET. A sealed text is `v1.<nonce>.<tag>.<ciphertext>`, each part in base64url. A modified text does not open.
 */
import { createCipheriv, createDecipheriv, randomBytes } from 'node:crypto';
import { deriveKey, keysOf, type Secrets } from '#platform/base/secrets.ts';
import { sealedMark } from '#platform/values/packed-message.ts';

export interface Seal {
  /** With the current secret. */
  close(text: string): string;
  /** With any of the secrets. Throws if the text was sealed with another secret or was modified. */
  open(sealed: string): string;
  opens(sealed: string): boolean;
  /** The text sealed with the current secret; null if it already is. */
  renew(sealed: string): string | null;
}

/** The database was sealed with another secret. The message tells the operator what to do, in one line. */
export class SealError extends Error {}

/** Given when opening, because Node would otherwise accept a tag cut to four bytes. */
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
          'the domains (postern domain remove) and add them again',
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

/** Seals a packed message. */
export const sealMessage = (seal: Pick<Seal, 'close'>, packed: Buffer): Buffer =>
  Buffer.concat([Buffer.of(sealedMark), Buffer.from(seal.close(packed.toString('latin1')))]);

export const openMessage = (seal: Pick<Seal, 'open'>, sealed: Buffer): Buffer =>
  Buffer.from(seal.open(sealed.toString('latin1', 1)), 'latin1');

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
