/**
 * Links to the files of a mail that need no key, as other services' APIs give them: who has the link can read the file until it
 * expires. It is signed with a key of our own secrets, so nothing is stored, and a link that we did not make reads nothing.
 */
import { createHmac, timingSafeEqual } from 'node:crypto';
import { isRecent } from './clock.ts';
import { deriveKey, keysOf, type Secrets } from './secrets.ts';

const hourMs = 60 * 60_000;

interface File {
  orgId: string;
  /** An email that was sent, or a received mail. */
  mailId: string;
  /** The position of the file in the mail, or the name of another part. */
  id: string;
}

export interface FileLinks {
  /** `path`: where the file is served. */
  sign(file: File, path: string, now: number): { url: string; expiresAt: number };
  /** The organization of the mail; null if we did not make the link, or it has expired. */
  read(file: Omit<File, 'orgId'>, query: Record<string, unknown>, now: number): string | null;
}

export function createFileLinks(secrets: Secrets, baseUrl: () => string, ttlMs = hourMs): FileLinks {
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
      // Nor does a link work that was made by a clock that was ahead: it would work for as long as that clock was ahead.
      if (!isRecent(Number(expires) - ttlMs, now, ttlMs)) return null;
      const given = Buffer.from(signature, 'base64url');
      return keys.find((key) => {
        const made = signatureOf(key, { ...file, orgId: org }, expires);
        return given.length === made.length && timingSafeEqual(given, made) ? org : null;
      });
    },
  };
}

function signatureOf(key: Buffer, { orgId, mailId, id }: File, expires: string): Buffer {
  return createHmac('sha256', key)
    .update(JSON.stringify([orgId, mailId, id, expires]))
    .digest();
}
