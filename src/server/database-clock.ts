/**
 * The time of a node on PostgreSQL. If the machine's clock differs from PostgreSQL's by more than two seconds, PostgreSQL's is
 * used: nodes that disagree about the time count limits and duplicates in different seconds, and may take a lease that still
 * runs for one that has ended.
 */
import ms from 'ms';
import { type Clock, steppedTimers, systemClock } from '#platform/base/clock.ts';
import type { Log } from '#platform/base/log.ts';
import { type Db, isPostgres } from '#platform/database/engine/open.ts';
import { readTime } from '#platform/database/engine/ping.ts';

const toleranceMs = 2_000;
const intervalMs = 10_000;

export interface DatabaseClock extends Clock {
  /** Compares the clocks once. */
  compare(db: Db): Promise<void>;
  /** Goes on comparing. Returns a function that stops it. */
  follow(db: Db): () => Promise<void>;
}

export function createDatabaseClock(log: Log): DatabaseClock {
  let aheadMs = 0;
  // Of each server: in a simulation several run in one process, and one that is killed must take no timer of another along.
  const after = steppedTimers();

  async function compare(db: Db): Promise<void> {
    if (!isPostgres(db)) return;
    const before = systemClock.now();
    const databaseNow = await readTime(db);
    const halfMs = (systemClock.now() - before) / 2;
    const foundMs = before + halfMs - databaseNow;
    if (Math.abs(foundMs - aheadMs) <= toleranceMs + halfMs) return;
    aheadMs = Math.abs(foundMs) <= toleranceMs ? 0 : foundMs;
    if (aheadMs === 0) return log.info('the clock of this machine is right again');
    const difference = `${ms(Math.round(Math.abs(aheadMs)), { long: true })} ${aheadMs > 0 ? 'ahead of' : 'behind'}`;
    log.warn(
      `the clock of this machine is ${difference} PostgreSQL's, whose time is used; synchronize both (timedatectl set-ntp true)`,
    );
  }

  return {
    now: () => Math.round(systemClock.now() - aheadMs),
    after,
    compare,
    follow(db) {
      let isStopped = false;
      let cancel = () => {};
      const later = () => {
        if (isStopped) return;
        cancel = after(intervalMs, () => {
          // While PostgreSQL is away, the last comparison stands.
          compare(db)
            .catch(() => {})
            .then(later);
        });
      };
      if (isPostgres(db)) later();
      // Not waited for: a stop has few seconds, and may happen because PostgreSQL is away.
      return async () => {
        isStopped = true;
        cancel();
      };
    },
  };
}
