/**
 * Three defences against forms of other sites: the session cookie is not sent with them (SameSite), the browser tells their
 * origin (Sec-Fetch-Site, Origin), and they lack the token that each of our forms has, made for one session.
 */
import { createHmac, timingSafeEqual } from 'node:crypto';
import type { Context } from 'koa';
import { deriveKey, keysOf, type Secrets } from '../../base/secrets.ts';
import { PageError, staleForm } from '../page-error.ts';

export interface Csrf {
  tokenFor(visitor: string): string;
  /** Throws if another site made the request. Called before the body is read. */
  checkOrigin(context: Context): void;
  /** Throws if the token is missing or belongs to another session. */
  checkToken(context: Context, form: URLSearchParams, visitor: string): void;
}

const tokenField = '_csrf';
const tokenHeader = 'x-csrf-token';

export function createCsrf(secrets: Secrets, baseUrl: () => string): Csrf {
  const keys = keysOf(secrets, (secret) => deriveKey(secret, 'dashboard'));
  const tokenBy = (key: Buffer, visitor: string) =>
    createHmac('sha256', key).update(`csrf ${visitor}`).digest('base64url');
  return {
    tokenFor: (visitor) => tokenBy(keys.current(), visitor),
    checkOrigin(context) {
      const site = context.get('sec-fetch-site');
      if (site !== '' && site !== 'same-origin' && site !== 'none') throw foreign();
      const origin = context.get('origin');
      if (origin !== '' && !isOurs(origin, context.get('host'), baseUrl())) throw foreign();
    },
    checkToken(context, form, visitor) {
      const given = Buffer.from(form.get(tokenField) ?? context.get(tokenHeader));
      const isRight = keys.find((key) => {
        const expected = Buffer.from(tokenBy(key, visitor));
        return given.length === expected.length && timingSafeEqual(given, expected) ? true : null;
      });
      if (isRight === null) throw staleForm();
    },
  };
}

/** Our base URL, or the host that this browser used, for example through a tunnel. */
function isOurs(origin: string, host: string, baseUrl: string): boolean {
  if (!URL.canParse(origin)) return false;
  const given = new URL(origin);
  return given.origin === new URL(baseUrl).origin || given.host === host;
}

function foreign(): PageError {
  return new PageError(403, 'Not allowed', 'Another site made this request. Nothing was changed.');
}
