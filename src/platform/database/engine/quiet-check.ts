/**
 * Lets a poll skip its look while nothing can be found: nothing was committed since the last look, by this process or by
 * another one such as the command line or another node, and time alone makes nothing due. That takes one statement, and
 * writes nothing. On PostgreSQL the commits of all databases of the server count, except those of this node that change nothing
 * which a poll looks for, such as its heartbeats: after each of them, everything would be looked at again.
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

export interface TokenReader {
  read(): Promise<string>;
  /** The token stays the same after this transaction of PostgreSQL (`transactionId`). */
  ignore(transaction: string): void;
}

/** The column of a statement that returns its transaction, for `ignore`. */
export const transactionId = (db: Db) => db.raw('txid_current()::text as transaction');

/** After so many they are forgotten, which costs one look. */
const maxIgnored = 1000;

/**
 * The change token, read once for all who ask at about the same time. It may be a little older than the question, so a commit
 * in between is found by the next poll; who has been told of a commit looks without asking.
 */
export function createTokenReader(db: Db, clock: Clock): TokenReader {
  let token: Promise<string>;
  let askedAt = Number.NEGATIVE_INFINITY;
  const ignored = new Set<number>();
  return {
    read() {
      const now = clock.now();
      if (!isRecent(askedAt, now, sharedMs)) {
        askedAt = now;
        token = changeToken(db).then((read) => (isPostgres(db) ? withoutIgnored(read, ignored) : read));
      }
      return token;
    },
    ignore(transaction) {
      if (ignored.size === maxIgnored) ignored.clear();
      ignored.add(Number(transaction));
    },
  };
}

/**
 * `snapshot`: the first transaction in progress, the next one, and those in progress. How many have ended and count is the same
 * before and after one that is ignored.
 */
export function withoutIgnored(snapshot: string, ignored: ReadonlySet<number>): string {
  const [, next, inProgress] = snapshot.split(':');
  const begun = [...ignored].filter((transaction) => transaction < Number(next)).length;
  const others = inProgress!.split(',').filter((transaction) => !ignored.has(Number(transaction)));
  return `${Number(next) - begun}:${others}`;
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
