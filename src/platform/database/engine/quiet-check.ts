/**
 * Lets a poll skip its look while nothing can be found: nothing was committed since the last look, by this process or by
 * another one such as the command line or another node, and time alone makes nothing due. That takes one statement on PostgreSQL,
 * and on SQLite a question to the kernel. On PostgreSQL the commits of all databases of the server count, but not those of this
 * node that change nothing which a poll looks for, such as its heartbeats: after each of them, everything would be looked at again.
 */
import type { Knex } from 'knex';
import { type Clock, isRecent } from '#platform/base/clock.ts';
import { type Db, isPostgres, logStamp } from './open.ts';

/** Whether anything was committed since the last call, and when time alone makes something due after the last look (`since`). */
export type QuietCheck = (since: number) => Promise<{ hasChanged: boolean; nextAt(): Promise<number> }>;

/** Another token than before: something was committed in between. */
export async function changeToken(db: Db): Promise<string> {
  if (!isPostgres(db)) return logStamp(db);
  // It names the transactions whose changes are visible; those that only read are not among them.
  const { rows } = await db.raw('select txid_current_snapshot()::text as token');
  return rows[0].token;
}

/** Polls come at the same times (`untilPoll`), give or take what the others do first. */
const sharedMs = 100;

export interface TokenReader {
  read(): Promise<string>;
  /** The token stays the same after this transaction of PostgreSQL (`transactionId`). */
  ignore(transaction: string): void;
}

/** Runs a statement that changes nothing which a poll looks for. */
export async function unnoticed(
  db: Db,
  statement: Knex.QueryBuilder,
  ignore: TokenReader['ignore'],
): Promise<void> {
  if (!isPostgres(db)) return void (await statement);
  const [row] = await statement.returning(db.raw('txid_current()::text as transaction'));
  if (row) ignore(row.transaction);
}

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

/** `readNextAt`: when time alone makes something due after `since`, infinite if nothing waits; read once after each change. */
export function createQuietCheck(
  readToken: () => Promise<string>,
  readNextAt: (since: number) => Promise<number>,
): QuietCheck {
  let seen: string | null = null;
  let nextAt: number | null = null;
  return async (since) => {
    const token = await readToken();
    const hasChanged = token !== seen;
    if (hasChanged) nextAt = null;
    seen = token;
    return {
      hasChanged,
      async nextAt() {
        // Mail that has fallen due may have to wait nevertheless, and then nothing is committed.
        if (nextAt === null || nextAt <= since) nextAt = await readNextAt(since);
        return nextAt;
      },
    };
  };
}
