/** Signs what the dashboard gives to browsers and gets back: CSRF tokens, flash messages, the ids of known browsers. */
import { createHmac, timingSafeEqual } from 'node:crypto';
import { deriveKey, keysOf, type Secrets } from '#platform/base/secrets.ts';

export interface Signer {
  /** `text` begins with a word for its purpose, so that a signature is valid for one purpose only. */
  sign(text: string): string;
  isSigned(text: string, signature: string): boolean;
}

export function createSigner(secrets: Secrets): Signer {
  const keys = keysOf(secrets, (secret) => deriveKey(secret, 'dashboard'));
  const signatureOf = (key: Buffer, text: string) => createHmac('sha256', key).update(text).digest();
  return {
    sign: (text) => signatureOf(keys.current(), text).toString('base64url'),
    isSigned(text, signature) {
      const given = Buffer.from(signature, 'base64url');
      const isOurs = keys.find((key) => {
        const expected = signatureOf(key, text);
        return (given.length === expected.length && timingSafeEqual(given, expected)) || null;
      });
      return isOurs !== null;
    },
  };
}
