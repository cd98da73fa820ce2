/**
 * Links to files of sent emails that need no key, as other services' APIs give them: who has the link can read the file until it
 * expires. It is signed with a key of our own secrets, so nothing is stored, and a link that we did not make reads nothing.
 */
import { createHmac, timingSafeEqual } from 'node:crypto';
import { deriveKey, keysOf, type Secrets } from '#platform/base/secrets.ts';

const ttlMs = 60 * 60_000;

interface File {
  orgId: string;
  emailId: string;
  /** The position of the file in the email. */
  id: string;
}

export interface FileLinks {
  /** `path`: where the dialect serves the file. */
  sign(file: File, path: string, now: number): { url: string; expiresAt: number };
  /** The organization of the email; null if we did not make the link, or it has expired. */
  read(file: Omit<File, 'orgId'>, query: Record<string, unknown>, now: number): string | null;
}

export function createFileLinks(secrets: Secrets, baseUrl: () => string): FileLinks {
  const keys = keysOf(secrets, (secret) => deriveKey(secret, 'file-link'));
  return {
    sign(file, path, now) {
      const expiresAt = now + ttlMs;
      const signature = signatureOf(keys.current(), file, String(expiresAt)).toString('base64url');
      const query = new URLSearchParams({ org: file.orgId, expires: String(expiresAt), signature });
      return { url: `${baseUrl()}${path}?${query}`, expiresAt };
    },
    read(file, { org, expires, signature }, now) {
      if (typeof org !== 'string' || typeof expires !== 'string' || typeof signature !== 'string')
        return null;
      if (!(Number(expires) > now)) return null;
      const given = Buffer.from(signature, 'base64url');
      return keys.find((key) => {
        const made = signatureOf(key, { ...file, orgId: org }, expires);
        return given.length === made.length && timingSafeEqual(given, made) ? org : null;
      });
    },
  };
}

function signatureOf(key: Buffer, { orgId, emailId, id }: File, expires: string): Buffer {
  return createHmac('sha256', key)
    .update(JSON.stringify([orgId, emailId, id, expires]))
    .digest();
}
