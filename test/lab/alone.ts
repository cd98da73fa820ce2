/**
 * What needs a processor alone: a browser and a walk over all routes each keep a small machine busy, and beside each other both
 * take longer than one after the other. A lock of the run's PostgreSQL holds over all processes of the run, and ends with the
 * connection of a process that was killed.
 */
import type { ExecutionContext } from 'ava';
import pg from 'pg';

/** Waits until no browser runs, and nothing else that runs alone; none of them begins before this test has ended. */
export async function runAlone(t: ExecutionContext): Promise<void> {
  t.teardown(await hold('pg_advisory_lock'));
}

/** Waits until nothing runs alone; returns what lets it begin again. */
export const keepOthersWaiting = () => hold('pg_advisory_lock_shared');

/** Any number. */
const lockId = 4711;

async function hold(lock: string): Promise<() => Promise<void>> {
  const client = new pg.Client({ connectionString: process.env.TEST_POSTGRES_URL });
  await client.connect();
  await client.query(`select ${lock}(${lockId})`);
  return () => client.end();
}
