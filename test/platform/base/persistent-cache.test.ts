/** Entries are stored in the database, cached in memory, expire, and never stop a delivery. */
import test from 'ava';
import { manualClock } from '#lab/clock.ts';
import { oneKind } from '#lab/database/databases.ts';
import { openMigrated } from '#lab/database/open-migrated.ts';
import { forgetLearned, learnedRows } from '#mail/queue/rows/learned-rows.ts';
import { createPersistentCache, type PersistentEntry } from '#platform/base/persistent-cache.ts';

const minute = 60_000;

/** Rows that a test can inspect and break. */
function fakeRows() {
  const entries = new Map<string, PersistentEntry<string>>();
  const rows = {
    entries,
    reads: 0,
    broken: false,
    async read(name: string) {
      rows.reads += 1;
      await null;
      if (rows.broken) throw new Error('disk full');
      return entries.get(name) ?? null;
    },
    async write(name: string, entry: PersistentEntry<string>) {
      if (rows.broken) throw new Error('disk full');
      entries.set(name, entry);
    },
  };
  return rows;
}

const silent = () => {};

test('an entry survives a restart until it expires', async (t) => {
  const { db } = await openMigrated(t, oneKind);
  const clock = manualClock();
  const rows = learnedRows<{ mode: string }>(db, 'mta-sts');
  const newCache = () => createPersistentCache(rows, clock, (what, error) => t.fail(`${what}: ${error}`));
  await newCache().set('a.example', { mode: 'testing' }, minute);
  await newCache().set('a.example', { mode: 'enforce' }, 2 * minute);
  t.deepEqual(await newCache().get('a.example'), { mode: 'enforce' });
  t.is(await newCache().get('b.example'), null);
  const others = createPersistentCache(learnedRows(db, 'greylisting'), clock, silent);
  t.is(await others.get('a.example'), null, 'kinds are separate');
  await clock.advance(2 * minute - 1);
  t.deepEqual(await newCache().get('a.example'), { mode: 'enforce' });
  await clock.advance(1);
  t.is(await newCache().get('a.example'), null);
});

test('expired entries are deleted, a bounded number at a time', async (t) => {
  const { db } = await openMigrated(t, oneKind);
  const expired = Array.from({ length: 1001 }, (_, n) => ({
    kind: 'a',
    name: `${n}`,
    value: '1',
    expires_at: 9,
  }));
  await db.batchInsert('learned', [...expired, { kind: 'b', name: '1', value: '1', expires_at: 11 }], 100);
  t.is(await forgetLearned(db, 10), 1000);
  t.is(await forgetLearned(db, 10), 1);
  t.is(await forgetLearned(db, 10), 0);
  t.deepEqual(await db('learned').pluck('kind'), ['b']);
});

test('a name is read once, then cached for half a minute, whether it exists or not', async (t) => {
  const rows = fakeRows();
  const clock = manualClock();
  const cache = createPersistentCache(rows, clock, silent);
  rows.entries.set('there', { value: 'old', expiresAt: clock.now() + 60 * minute });
  const answers = await Promise.all([cache.get('there'), cache.get('there'), cache.get('absent')]);
  t.deepEqual(answers, ['old', 'old', null]);
  t.is(rows.reads, 2, 'callers share a read');
  rows.entries.set('there', { value: 'new', expiresAt: clock.now() + 60 * minute });
  await clock.advance(29_999);
  t.deepEqual([await cache.get('there'), await cache.get('absent')], ['old', null]);
  t.is(rows.reads, 2);
  await clock.advance(1);
  t.is(await cache.get('there'), 'new', 'written by another node');
});

test('an entry that was just set is returned without a read', async (t) => {
  const rows = fakeRows();
  const cache = createPersistentCache(rows, manualClock(), silent);
  t.is(await cache.get('a'), null);
  await cache.set('a', 'learned', minute);
  t.is(await cache.get('a'), 'learned');
  t.is(rows.reads, 1);
  t.is(rows.entries.get('a')?.value, 'learned');
});

test('errors of the database are reported, and the cache goes on without it', async (t) => {
  const rows = fakeRows();
  const errors: string[] = [];
  const clock = manualClock();
  const cache = createPersistentCache(rows, clock, (what, error) =>
    errors.push(`${what} (${(error as Error).message})`),
  );
  rows.broken = true;
  await cache.set('a', 'x', minute);
  t.regex(errors[0]!, /the cached entry for a cannot be stored.*disk full/);
  await clock.advance('30s');
  t.is(await cache.get('a'), null);
  t.regex(errors[1]!, /the cached entry for a cannot be read.*disk full/);
  rows.broken = false;
  await cache.set('a', 'y', minute);
  t.is(await cache.get('a'), 'y');
  t.is(errors.length, 2);
});
