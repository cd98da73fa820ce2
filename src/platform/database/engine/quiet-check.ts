/**
 * Lets a poll skip its look while nothing can be found: nothing was committed since the last look, by this process or by
 * another one such as the command line or another node, and time alone makes nothing due. That takes one statement, and
 * writes nothing. On PostgreSQL the commits of all databases of the server count.
 */
import { type Clock, isRecent } from '#platform/base/clock.ts';
import { type Db, isPostgres } from './open.ts';

/** Returns until when a poll may skip its look; minus infinity: it must look. `since`: when it last looked. */
export type QuietCheck = (since: number) => Promise<number>;

/** Another token than before: something was committed in between. */
export async function changeToken(db: Db): Promise<string> {
  if (isPostgres(db)) {
    // It names the transactions whose changes are visible; those that only read are not among them.
    const { rows } = await db.raw('select txid_current_snapshot()::text as token');
    return rows[0].token;
  }
  // The one counts commits of other connections, the other the rows that this connection has changed.
  const [row] = await db.raw(
    "select data_version || ' ' || total_changes() as token from pragma_data_version",
  );
  return row.token;
}

/** Polls come at the same times (`untilPoll`), give or take what the others do first. */
const sharedMs = 100;

/**
 * The change token, read once for all who ask at about the same time. It may be a little older than the question, so a commit
 * in between is found by the next poll; who has been told of a commit looks without asking.
 */
export function createTokenReader(db: Db, clock: Clock): () => Promise<string> {
  let token: Promise<string>;
  let askedAt = Number.NEGATIVE_INFINITY;
  return () => {
    const now = clock.now();
    if (!isRecent(askedAt, now, sharedMs)) {
      askedAt = now;
      token = changeToken(db);
    }
    return token;
  };
}

/**
 * `readToken` resolves to null if the token is not known. `readNextAt`: when time alone makes something due after `since`,
 * infinite if nothing waits; it is read once after each change.
 */
export function createQuietCheck(
  readToken: () => Promise<string | null>,
  readNextAt: (since: number) => Promise<number>,
): QuietCheck {
  let seen: string | null = null;
  let nextAt: number | null = null;
  return async (since) => {
    const token = await readToken();
    if (token === null || token !== seen) {
      seen = token;
      nextAt = null;
      return Number.NEGATIVE_INFINITY;
    }
    // Mail that has fallen due may have to wait nevertheless, and then nothing is committed.
    if (nextAt === null || nextAt <= since) nextAt = await readNextAt(since);
    return nextAt;
  };
}
