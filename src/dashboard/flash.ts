/** A message that is shown once, on the page after a form. It travels in a signed cookie, so that nobody else can put text on our pages. */
import { createHmac, timingSafeEqual } from 'node:crypto';
import type { Context } from 'koa';
import { deriveKey, keysOf, type Secrets } from '../base/secrets.ts';
import type { Flash } from './page.ts';
import type { Cookies } from './security/cookies.ts';

export interface Flashes {
  set(context: Context, flash: Flash): void;
  /** Returns the message and deletes it. */
  take(context: Context): Flash | null;
}

const maxLength = 1000;
const ttlMs = 60_000;

export function createFlashes(secrets: Secrets, cookies: Cookies): Flashes {
  const keys = keysOf(secrets, (secret) => deriveKey(secret, 'dashboard'));
  const sign = (key: Buffer, text: string) => createHmac('sha256', key).update(`flash ${text}`).digest();
  return {
    set(context, { tone, text }) {
      const payload = Buffer.from(JSON.stringify({ tone, text: text.slice(0, maxLength) })).toString(
        'base64url',
      );
      cookies.set(
        context,
        'flash',
        `${payload}.${sign(keys.current(), payload).toString('base64url')}`,
        ttlMs,
      );
    },
    take(context) {
      const cookie = cookies.get(context, 'flash');
      if (cookie === null) return null;
      cookies.set(context, 'flash', null);
      const [payload = '', signature = ''] = cookie.split('.');
      const given = Buffer.from(signature, 'base64url');
      const isOurs = keys.find((key) => {
        const expected = sign(key, payload);
        return given.length === expected.length && timingSafeEqual(given, expected) ? true : null;
      });
      if (isOurs === null) return null;
      return JSON.parse(Buffer.from(payload, 'base64url').toString());
    },
  };
}
