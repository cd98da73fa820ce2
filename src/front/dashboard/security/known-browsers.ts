/**
 * Recognizes browsers that have signed in to an account before, so that wrong passwords of others do not lock their owner out.
 * A cookie holds an id of the browser, signed for one account and its password. A new password ends it, and it grants no access.
 */
import { randomBytes } from 'node:crypto';
import type { Context } from 'koa';
import type { User } from '#accounts/rows/users.ts';
import type { Clock } from '#platform/base/clock.ts';
import type { Cookies } from './cookies.ts';
import type { Signer } from './signer.ts';

type Account = Pick<User, 'id' | 'passwordHash'>;

export interface KnownBrowsers {
  /** The browser's id; null if it has not signed in to this account with its present password. */
  idOf(context: Context, account: Account): string | null;
  /** After signing in, and after a new password. The browser keeps the id that it has. */
  remember(context: Context, account: Account): void;
}

const lifetimeMs = 365 * 24 * 3_600_000;

export function createKnownBrowsers(signer: Signer, clock: Clock, cookies: Cookies): KnownBrowsers {
  const textOf = ({ id, passwordHash }: Account, browser: string) =>
    `known browser ${id} ${passwordHash} ${browser}`;

  function idOf(context: Context, account: Account): string | null {
    const [id = '', until = '', signature = ''] = cookies.get(context, 'browser')?.split('.') ?? [];
    if (!(Number(until) > clock.now())) return null;
    return signer.isSigned(textOf(account, `${id}.${until}`), signature) ? id : null;
  }

  return {
    idOf,
    remember(context, account) {
      const id = idOf(context, account) ?? randomBytes(16).toString('base64url');
      const browser = `${id}.${clock.now() + lifetimeMs}`;
      cookies.set(context, 'browser', `${browser}.${signer.sign(textOf(account, browser))}`, lifetimeMs);
    },
  };
}
