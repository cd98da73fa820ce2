/** What was learned: kept in the database, held in front of it, lapsing, and never in the way of a delivery. */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import test, { type ExecutionContext } from 'ava';
import { createPersistentCache, type PersistentEntry } from '../../src/base/persistent-cache.ts';
import { openDatabase } from '../../src/db/engine/open.ts';
import { forgetLearned, learnedRows } from '../../src/db/queue/learned-rows.ts';
import { manualClock } from '../helpers/clock.ts';
import { createMigrated, type DatabaseKind, kinds } from '../helpers/databases.ts';

const minute = 60_000;

async function startDatabase(t: ExecutionContext, kind: DatabaseKind) {
  const dataDir = await mkdtemp(join(tmpdir(), 'postern-memory-'));
  t.teardown(() => rm(dataDir, { recursive: true, force: true }));
  const { url, drop } = await createMigrated(kind, dataDir);
  t.teardown(drop);
  const db = await openDatabase({ dataDir, databaseUrl: url });
  t.teardown(() => db.destroy());
  return db;
}

/** Rows that a test can look into, and break. */
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

for (const kind of kinds) {
  test(`${kind}: what was learned is there after a restart, until it lapses`, async (t) => {
    const db = await startDatabase(t, kind);
    const clock = manualClock();
    const rows = learnedRows<{ mode: string }>(db, 'mta-sts');
    const memory = () => createPersistentCache(rows, clock, (what, error) => t.fail(`${what}: ${error}`));
    await memory().set('a.example', { mode: 'testing' }, minute);
    await memory().set('a.example', { mode: 'enforce' }, 2 * minute);
    t.deepEqual(await memory().get('a.example'), { mode: 'enforce' });
    t.is(await memory().get('b.example'), null);
    const others = createPersistentCache(learnedRows(db, 'greylisting'), clock, silent);
    t.is(await others.get('a.example'), null, 'another kind is another memory');
    await clock.advance(2 * minute - 1);
    t.deepEqual(await memory().get('a.example'), { mode: 'enforce' });
    await clock.advance(1);
    t.is(await memory().get('a.example'), null);
  });

  test(`${kind}: what has lapsed is forgotten, a bounded number at a time`, async (t) => {
    const db = await startDatabase(t, kind);
    const lapsed = Array.from({ length: 1001 }, (_, n) => ({
      kind: 'a',
      name: `${n}`,
      value: '1',
      expires_at: 9,
    }));
    await db.batchInsert('learned', [...lapsed, { kind: 'b', name: '1', value: '1', expires_at: 11 }], 100);
    t.is(await forgetLearned(db, 10), 1000);
    t.is(await forgetLearned(db, 10), 1);
    t.is(await forgetLearned(db, 10), 0);
    t.deepEqual(await db('learned').pluck('kind'), ['b']);
  });
}

test('a name is read once, then held for half a minute, whether it is there or not', async (t) => {
  const rows = fakeRows();
  const clock = manualClock();
  const memory = createPersistentCache(rows, clock, silent);
  rows.entries.set('there', { value: 'old', expiresAt: clock.now() + 60 * minute });
  const answers = await Promise.all([memory.get('there'), memory.get('there'), memory.get('absent')]);
  t.deepEqual(answers, ['old', 'old', null]);
  t.is(rows.reads, 2, 'callers share a reading');
  rows.entries.set('there', { value: 'new', expiresAt: clock.now() + 60 * minute });
  await clock.advance(29_999);
  t.deepEqual([await memory.get('there'), await memory.get('absent')], ['old', null]);
  t.is(rows.reads, 2);
  await clock.advance(1);
  t.is(await memory.get('there'), 'new', 'what another node has written');
});

test('what was just learned is known at once, without reading', async (t) => {
  const rows = fakeRows();
  const memory = createPersistentCache(rows, manualClock(), silent);
  t.is(await memory.get('a'), null);
  await memory.set('a', 'learned', minute);
  t.is(await memory.get('a'), 'learned');
  t.is(rows.reads, 1);
  t.is(rows.entries.get('a')?.value, 'learned');
});

test('trouble with the database is told and stops nothing', async (t) => {
  const rows = fakeRows();
  const told: string[] = [];
  const clock = manualClock();
  const memory = createPersistentCache(rows, clock, (what, error) =>
    told.push(`${what} (${(error as Error).message})`),
  );
  rows.broken = true;
  await memory.set('a', 'x', minute);
  t.regex(told[0]!, /what was learned of a cannot be kept.*disk full/);
  await clock.advance('30s');
  t.is(await memory.get('a'), null);
  t.regex(told[1]!, /what was learned of a cannot be read.*disk full/);
  rows.broken = false;
  await memory.set('a', 'y', minute);
  t.is(await memory.get('a'), 'y');
  t.is(told.length, 2);
});
