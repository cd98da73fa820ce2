/** A message that is shown once, on the page after a form. Its cookie is signed, so that others cannot put text on our pages. */
import type { Context } from 'koa';
import type { Cookies } from '#front/dashboard/security/cookies.ts';
import type { Signer } from '#front/dashboard/security/signer.ts';
import type { Flash } from './page.ts';

export interface Flashes {
  set(context: Context, flash: Flash): void;
  /** Returns the message and deletes it. */
  take(context: Context): Flash | null;
}

const maxLength = 1000;
const ttlMs = 60_000;

export function createFlashes(signer: Signer, cookies: Cookies): Flashes {
  return {
    set(context, { tone, text }) {
      const flash = JSON.stringify({ tone, text: text.slice(0, maxLength) });
      const payload = Buffer.from(flash).toString('base64url');
      cookies.set(context, 'flash', `${payload}.${signer.sign(`flash ${payload}`)}`, ttlMs);
    },
    take(context) {
      const cookie = cookies.get(context, 'flash');
      if (cookie === null) return null;
      cookies.set(context, 'flash', null);
      const [payload = '', signature = ''] = cookie.split('.');
      if (!signer.isSigned(`flash ${payload}`, signature)) return null;
      return JSON.parse(Buffer.from(payload, 'base64url').toString());
    },
  };
}
