/**
 * Recognizes browsers that have signed in to an account before, so that wrong passwords of others do not lock their owner out.
 * A cookie holds an id of the browser, signed for one account and its password. A new password ends it, and it grants no access.
 */
import { createHmac, randomBytes, timingSafeEqual } from 'node:crypto';
import type { Context } from 'koa';
import type { Clock } from '../../base/clock.ts';
import { deriveKey, keysOf, type Secrets } from '../../base/secrets.ts';
import type { User } from '../../db/accounts/users.ts';
import type { Cookies } from './cookies.ts';

type Account = Pick<User, 'id' | 'passwordHash'>;

export interface KnownBrowsers {
  /** The browser's id; null if it has not signed in to this account with its present password. */
  idOf(context: Context, account: Account): string | null;
  /** After signing in, and after a new password. The browser keeps the id that it has. */
  remember(context: Context, account: Account): void;
}

const lifetimeMs = 365 * 24 * 3_600_000;

export function createKnownBrowsers(secrets: Secrets, clock: Clock, cookies: Cookies): KnownBrowsers {
  const keys = keysOf(secrets, (secret) => deriveKey(secret, 'dashboard'));
  const sign = (key: Buffer, { id, passwordHash }: Account, browser: string) =>
    createHmac('sha256', key).update(`known browser ${id} ${passwordHash} ${browser}`).digest();

  function idOf(context: Context, account: Account): string | null {
    const [id = '', until = '', signature = ''] = cookies.get(context, 'browser')?.split('.') ?? [];
    if (!(Number(until) > clock.now())) return null;
    const given = Buffer.from(signature, 'base64url');
    return keys.find((key) => {
      const expected = sign(key, account, `${id}.${until}`);
      return given.length === expected.length && timingSafeEqual(given, expected) ? id : null;
    });
  }

  return {
    idOf,
    remember(context, account) {
      const id = idOf(context, account) ?? randomBytes(16).toString('base64url');
      const browser = `${id}.${clock.now() + lifetimeMs}`;
      const signature = sign(keys.current(), account, browser).toString('base64url');
      cookies.set(context, 'browser', `${browser}.${signature}`, lifetimeMs);
    },
  };
}
