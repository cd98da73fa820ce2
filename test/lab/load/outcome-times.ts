/**
 * When outcomes are on disk: a process of its own reads the database every few milliseconds and notes when it first finds
 * each delivery delivered. SQLite and PostgreSQL show a commit to other connections only after it has been synced, so a noted
 * time is never too early, and too late by at most one interval and a read.
 */
import { fork } from 'node:child_process';
import { once } from 'node:events';
import { setTimeout as sleep } from 'node:timers/promises';
import { type Db, openDatabase } from '#platform/database/engine/open.ts';

export interface Where {
  dataDir: string;
  databaseUrl: string | null;
}

export interface OutcomeTimes {
  /** By recipient, milliseconds since the epoch with fractions; of mails that were accepted since the start. */
  read(): Promise<Map<string, number>>;
  stop(): Promise<unknown>;
}

export async function watchOutcomes({ dataDir, databaseUrl }: Where): Promise<OutcomeTimes> {
  const child = fork(import.meta.filename, [JSON.stringify({ dataDir, databaseUrl })], {
    serialization: 'advanced',
  });
  await once(child, 'message');
  return {
    async read() {
      const answered = once(child, 'message');
      child.send('read');
      return (await answered)[0];
    },
    async stop() {
      const ended = once(child, 'exit');
      if (child.exitCode === null && child.kill('SIGKILL')) await ended;
    },
  };
}

/** A UUID of version 7 that sorts before all that are created from `at` on. */
export const idAt = (at: number) =>
  at
    .toString(16)
    .padStart(12, '0')
    .replace(/(.{8})(.{4})/, '$1-$2-7000-8000-000000000000');

// Everything below runs in that process.

const intervalMs = 2;
/** Each read looks at the mails of this long; older ones are looked at once a second. */
const recentMs = 1_000;

async function watch(db: Db): Promise<void> {
  const begun = Date.now();
  const seenAt = new Map<string, number>();
  process.on('disconnect', () => process.exit());
  process.on('message', () => process.send!(seenAt));
  process.send!('ready');
  for (let count = 0; ; count++) {
    const isFull = count % (recentMs / intervalMs) === 0;
    const since = isFull ? begun : Math.max(begun, Date.now() - recentMs);
    const found = await db('deliveries')
      .where('id', '>', idAt(since))
      .where({ status: 'delivered' })
      .pluck('recipient');
    const now = performance.timeOrigin + performance.now();
    for (const recipient of found) if (!seenAt.has(recipient)) seenAt.set(recipient, now);
    await sleep(intervalMs);
  }
}

if (import.meta.main) await watch(await openDatabase(JSON.parse(process.argv[2]!)));
