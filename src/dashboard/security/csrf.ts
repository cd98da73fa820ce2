/**
 * Forms that another site made are refused three times over: the session's cookie does not go with them (SameSite), the
 * browser says where they come from (Sec-Fetch-Site, Origin), and they lack the token that this service writes into
 * each of its own, made for one session.
 */
import { createHmac, timingSafeEqual } from 'node:crypto';
import type { Context } from 'koa';
import { deriveKey, keysOf, type Secrets } from '../../base/secrets.ts';
import { PageError, staleForm } from '../page-error.ts';

export interface Csrf {
  tokenFor(visitor: string): string;
  /** Before anything is read. Throws where another site asks. */
  checkOrigin(context: Context): void;
  /** Throws where the token is missing, or another session's. */
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

/** As the world sees the service, or as this browser has reached it (through a tunnel, say). */
function isOurs(origin: string, host: string, baseUrl: string): boolean {
  if (!URL.canParse(origin)) return false;
  const given = new URL(origin);
  return given.origin === new URL(baseUrl).origin || given.host === host;
}

function foreign(): PageError {
  return new PageError(
    403,
    'Not allowed',
    'This request was made by another site, and nothing has been done.',
  );
}
