/**
 * Sessions: 256 random bits in a cookie, their SHA-256 in the database. A session ends on sign-out, after a week without use,
 * after 30 days, or when its user is disabled.
 */
import { randomBytes } from 'node:crypto';
import type { Context } from 'koa';
import { tokenHash } from '#accounts/people/one-time-links.ts';
import {
  endSession,
  findSession,
  insertSession,
  recordSessionUse,
  type Session,
} from '#accounts/rows/sessions-table.ts';
import { changeUser, type User } from '#accounts/rows/users.ts';
import type { Clock } from '#platform/base/clock.ts';
import { clientAddress } from '#platform/base/net/client-address.ts';
import type { Db } from '#platform/database/engine/open.ts';
import type { Cookies } from './cookies.ts';
import type { KnownBrowsers } from './known-browsers.ts';

const day = 24 * 3_600_000;
const idleMs = 7 * day;
const ttlMs = 30 * day;
/** "Last active" has this precision, so that it costs one write per minute and not one per page. */
const seenPrecisionMs = 60_000;
/** The same for requests that an open page makes by itself, which keep a session alive. */
const livePrecisionMs = 3_600_000;
const maxAgentLength = 300;

export interface Sessions {
  /** The session of the browser and its user; null if the browser is not signed in. */
  find(context: Context): Promise<{ session: Session; user: User } | null>;
  /** Starts a new session and ends the browser's previous one. */
  begin(context: Context, user: Pick<User, 'id' | 'passwordHash'>): Promise<void>;
  end(context: Context, session: Session): Promise<void>;
  /** Identifies the browser, signed in or not; a new browser gets a cookie. */
  visitor(context: Context): string;
}

export function createSessions(
  db: Db,
  clock: Clock,
  cookies: Cookies,
  knownBrowsers: KnownBrowsers,
): Sessions {
  const find = async (context: Context) => {
    const token = cookies.get(context, 'session');
    if (!token || !isToken(token)) return null;
    const found = await findSession(db, tokenHash(token));
    if (!found || found.user.disabledAt !== null) return null;
    const now = clock.now();
    const { session } = found;
    if (now >= session.expiresAt || now >= session.seenAt + idleMs) return null;
    const precisionMs = context.get('hx-request') ? livePrecisionMs : seenPrecisionMs;
    if (now >= session.seenAt + precisionMs) await recordSessionUse(db, session.id, now);
    return found;
  };
  return {
    find,
    async begin(context, user) {
      const old = await find(context);
      const token = newToken();
      const now = clock.now();
      await db.transaction(async (trx) => {
        if (old) await endSession(trx, old.user.id, old.session.id);
        await changeUser(trx, user.id, { signedInAt: now });
        const address = clientAddress(context).slice(0, 100);
        const agent = context.get('user-agent').slice(0, maxAgentLength);
        const session = { hash: tokenHash(token), userId: user.id, address, agent, expiresAt: now + ttlMs };
        await insertSession(trx, session, now);
      });
      cookies.set(context, 'session', token, ttlMs);
      cookies.set(context, 'visitor', null);
      knownBrowsers.remember(context, user);
    },
    async end(context, { id, userId }) {
      await endSession(db, userId, id);
      cookies.set(context, 'session', null);
    },
    visitor(context) {
      const known = cookies.get(context, 'session') ?? cookies.get(context, 'visitor');
      if (known && isToken(known)) return known;
      const token = newToken();
      cookies.set(context, 'visitor', token);
      return token;
    },
  };
}

const newToken = () => randomBytes(32).toString('base64url');

const isToken = (text: string) => /^[\w-]{43}$/.test(text);
