/** Tables that grow, on PostgreSQL: how partitions are cut ahead of what is written, and what goes when they are dropped. */
import test, { type ExecutionContext } from 'ava';
import { createDatabase } from '#lab/database/databases.ts';
import { insertEmail } from '#lab/database/partitioned-rows.ts';
import { until } from '#lab/until.ts';
import { partitionJobs } from '#mail/record/rows/partitioned-tables.ts';
import { dropPast } from '#mail/record/rows/partitions-past.ts';
import { readEvents } from '#mail/record/rows/read-events.ts';
import { type Db, openDatabase } from '#platform/database/engine/open.ts';
import { migrate } from '#platform/database/schema/migrate.ts';
import {
  boundText,
  type PartitionedTable,
  partitionsOf,
  withStablePartitions,
  withTableLock,
} from '#platform/database/schema/partitions.ts';
import { createAhead } from '#platform/database/schema/partitions-ahead.ts';

const day = 86_400_000;
const noon = Date.UTC(2026, 5, 10, 12);
const growing: PartitionedTable[] = ['attempts', 'emails', 'events'];

async function newDatabase(t: ExecutionContext) {
  const { url, drop } = await createDatabase('postgres');
  t.teardown(drop);
  const open = async () => {
    const db = await openDatabase({ dataDir: '.', databaseUrl: url });
    t.teardown(() => db.destroy());
    return db;
  };
  return { open, db: await open() };
}

/** With chores whose clock is `time.now`. */
async function newParts(t: ExecutionContext) {
  const { open, db } = await newDatabase(t);
  await migrate(db);
  const time = { now: noon };
  const periods = { attempts: 2 * day, emails: 10 * day, events: 2 * day };
  return { open, db, time, parts: { db, openWithoutTimeout: open, now: () => time.now, periods } };
}

async function finish(run: () => Promise<number>): Promise<number> {
  let sum = 0;
  for (let n = 1; n > 0; sum += n) n = await run();
  return sum;
}

async function cutAll(parts: Parameters<typeof createAhead>[0]): Promise<void> {
  await finish(createAhead(parts));
}

const count = async (db: Db, table: string) => Number((await db(table).count('* as n'))[0]!.n);

const placeOf = async (db: Db, table: PartitionedTable, row: object): Promise<string> =>
  (await db(table).where(row).first(db.raw('tableoid::regclass::text as place'))).place;

/** Beginning and end of each, as days since the clock's, or as positions. */
async function boundsOf(db: Db, table: PartitionedTable): Promise<(number | null)[][]> {
  const today = noon - day / 2;
  const told = (bound: number | null) =>
    bound === null || table === 'events' ? bound : (bound - today) / day;
  return (await partitionsOf(db, table)).map(({ from, to }) => [told(from), told(to)]);
}

test('partitions are cut days ahead, and rows on both sides of a bound find their places', async (t) => {
  const { db, parts, time } = await newParts(t);
  await cutAll(parts);
  t.deepEqual(await boundsOf(db, 'attempts'), [
    [null, 3],
    [3, 5],
    [5, null],
  ]);
  t.deepEqual(await boundsOf(db, 'emails'), [
    [null, 11],
    [11, null],
  ]);
  t.deepEqual(await boundsOf(db, 'events'), [
    [null, 100_001],
    [100_001, null],
  ]);
  await cutAll(parts);
  t.is((await partitionsOf(db, 'attempts')).length, 3, 'once is enough');

  const bound = noon - day / 2 + 3 * day;
  const [early, late] = [await insertEmail(db, bound - 1), await insertEmail(db, bound)];
  t.is(await placeOf(db, 'attempts', { delivery_id: early.deliveryId }), 'attempts_first');
  t.is(await placeOf(db, 'attempts', { delivery_id: late.deliveryId }), 'attempts_20260613');
  const years = await insertEmail(db, Date.UTC(2019, 1, 1));
  t.is(await placeOf(db, 'attempts', { delivery_id: years.deliveryId }), 'attempts_first');
  await db.raw("select setval('events_position_seq', 99999)");
  const events = [];
  for (let n = 0; n < 3; n++) events.push(await insertEmail(db, noon));
  t.deepEqual(await Promise.all(events.map(({ emailId }) => placeOf(db, 'events', { email_id: emailId }))), [
    'events_first',
    'events_100001',
    'events_100001',
  ]);
  t.is(
    (await readEvents(db, { orgId: null, after: 99_998, limit: 9 })).events[0]?.email?.id,
    events[0]?.emailId,
  );

  time.now += 2 * day;
  await cutAll(parts);
  t.deepEqual((await boundsOf(db, 'attempts')).at(-1), [7, null]);
});

test('nodes that cut at once cut once', async (t) => {
  const { db, open, parts } = await newParts(t);
  const nodes = await Promise.all([open(), open(), open()]);
  await Promise.all(nodes.map((node) => cutAll({ ...parts, db: node })));
  // Whoever found another at it left it for later.
  await cutAll(parts);
  for (const table of growing) {
    const bounds = await boundsOf(db, table);
    t.is(bounds.length, table === 'attempts' ? 3 : 2, table);
    for (const [at, [from]] of bounds.entries()) t.is(from, at === 0 ? null : bounds[at - 1]![1]!);
  }
});

test('a last partition that has rows gets its end beside those who write', async (t) => {
  const { db, parts } = await newParts(t);
  await insertEmail(db, noon - 30 * day);
  await insertEmail(db, noon);
  const run = createAhead(parts);
  t.is(await run(), 1);
  const ends = () => db('pg_constraint').where('conname', 'like', '%_end').select('conname', 'convalidated');
  t.deepEqual(await ends(), [{ conname: 'attempts_first_end', convalidated: false }]);
  await insertEmail(db, noon + 5 * day);
  t.is(await run(), 1);
  t.deepEqual(await ends(), [{ conname: 'attempts_first_end', convalidated: true }]);
  await finish(run);
  t.deepEqual(await ends(), []);
  t.deepEqual(await boundsOf(db, 'attempts'), [
    [null, 10],
    [10, null],
  ]);
  t.is(await placeOf(db, 'attempts', { ended_at: noon - 30 * day }), 'attempts_first');
  // Of an end that has come near (a node died on the way, and nobody went on for days) none is left in the way.
  const { name, from } = (await partitionsOf(db, 'emails')).at(-1)!;
  const near = boundText('emails', from! + 2 * day);
  await db.raw(`alter table ${name} add constraint ${name}_end check (id < ${near}) not valid`);
  await insertEmail(db, from! + day);
  parts.now = () => from! + day;
  await cutAll(parts);
  t.deepEqual(await ends(), []);
});

test('a partition all of whose rows are old is dropped, and no younger row is lost', async (t) => {
  const { db, parts, time } = await newParts(t);
  await cutAll(parts);
  const kept: string[] = [];
  for (let days = 0; days < 12; days++) {
    const { emailId } = await insertEmail(db, time.now);
    if (days >= 5) kept.push(emailId);
    await db.raw("select setval('events_position_seq', last_value + 49999) from events_position_seq");
    time.now += day;
    await cutAll(parts);
  }
  const before = await boundsOf(db, 'attempts');
  const old = () => time.now - 6 * day;
  for (const table of ['attempts', 'events'] as const) {
    const drop = dropPast(db, table, parts.now, old);
    const dropped = await drop();
    t.true(dropped > 0, table);
    t.is(await drop(), 0);
  }
  t.deepEqual(before.slice(0, 3), [
    [null, 3],
    [3, 5],
    [5, 7],
  ]);
  t.deepEqual((await boundsOf(db, 'attempts')).slice(0, 2), [
    [null, 5],
    [5, 7],
  ]);
  const names: string[] = await db('pg_class').where('relkind', 'r').pluck('relname');
  for (const name of ['attempts_first', 'attempts_20260613', 'events_first'])
    t.false(names.includes(name), name);
  t.true(names.includes('attempts_before_20260615'));
  const young = async (table: string, time_: string) =>
    Number((await db(table).where(time_, '>=', old()).count('* as n'))[0]!.n);
  t.is(await young('attempts', 'ended_at'), 6);
  t.is(await young('events', 'at'), 6);
  const { events } = await readEvents(db, { orgId: null, after: 0, limit: 100 });
  t.true(events.every(({ email }) => email !== null));
  // A row from before all of them, as a move brings it, has a place; and the next time round goes with it.
  await insertEmail(db, noon - 100 * day);
  time.now += 30 * day;
  t.true((await dropPast(db, 'attempts', parts.now, old)()) > 1);
  t.is(await count(db, 'attempts'), 0);
  t.is(await dropPast(db, 'attempts', parts.now, old)(), 0, 'the empty one in their place stays');
});

test('nodes that drop at once drop once; whoever is in the way is waited for no longer than a moment', async (t) => {
  const { db, open, parts, time } = await newParts(t);
  await cutAll(parts);
  await insertEmail(db, noon);
  time.now += 20 * day;
  const reader = await db.transaction();
  await reader('attempts').count();
  const drops = (at: Db) => dropPast(at, 'attempts', parts.now, () => time.now - day)();
  t.is(await drops(db), 0);
  t.is(await count(db, 'attempts'), 1);
  await reader.commit();
  const nodes = await Promise.all([open(), open(), open()]);
  const dropped = await Promise.all(nodes.map(drops));
  t.is(dropped.filter((n) => n > 0).length, 1, String(dropped));
  t.is(await count(db, 'attempts'), 0);
});

test('a partition that another node drops while it is looked at is no error', async (t) => {
  const { db, open, parts, time } = await newParts(t);
  const other = await open();
  const waiting = async () =>
    (
      await other('pg_stat_activity')
        .whereRaw('datname = current_database()')
        .where({ wait_event_type: 'Lock' })
    ).length;
  await cutAll(parts);
  await insertEmail(db, noon - 30 * day);
  time.now += 20 * day;
  const drop = () => dropPast(db, 'attempts', parts.now, () => time.now - day)();
  const asked: string[] = [];
  db.on('query', ({ sql }) => asked.push(sql));
  t.is(await withStablePartitions(other, drop), 0);
  const readByName = asked.filter((sql) => sql.includes('attempts_first'));
  t.deepEqual(readByName, [], 'what another node may drop now is not read by name');

  const dropped = Promise.withResolvers<void>();
  const commit = Promise.withResolvers<void>();
  const dropping = withTableLock(other, 'attempts', async (trx) => {
    await trx.raw('drop table attempts_first');
    dropped.resolve();
    await commit.promise;
  });
  await dropped.promise;
  let settled = 0;
  const looks = [drop, createAhead(parts)].map((run) => run().finally(() => (settled += 1)));
  await until(async () => settled + (await waiting()) === 2, { what: 'both to wait, or to have done' });
  commit.resolve();
  await dropping;
  t.deepEqual(await Promise.all(looks), [0, 1]);

  await cutAll(parts);
  time.now += 20 * day;
  for (const ago of [5, 10, 15]) await insertEmail(db, time.now - ago * day);
  const run = createAhead(parts);
  t.is(await run(), 1);
  const { name } = (await partitionsOf(db, 'attempts')).at(-1)!;
  const validated = await other.transaction(async (trx) => {
    await trx.raw(`lock table ${name} in share update exclusive mode`);
    const validating = run();
    await until(async () => (await waiting()) === 1, { what: 'the validation to wait' });
    await trx.raw(`alter table ${name} drop constraint ${name}_end`);
    return { validating };
  });
  t.is(await validated.validating, 1);
});

test('emails go with their rows, and their partition when it is empty; waiting mail keeps it', async (t) => {
  const { db, open, parts, time } = await newParts(t);
  const chores = partitionJobs({
    ...parts,
    keepEvents: 5 * day,
    keepEmails: 40 * day,
    openWithoutTimeout: open,
  });
  const runAll = async () => {
    time.now += 6 * 60_000;
    for (const { run } of chores) await finish(run);
  };
  await runAll();
  const held = await insertEmail(db, time.now, 'held');
  for (let n = 0; n < 120; n++) await insertEmail(db, time.now);
  time.now += 30 * day;
  await runAll();
  await insertEmail(db, time.now);
  time.now += 11 * day;
  await runAll();
  t.deepEqual(
    await Promise.all(
      ['emails', 'deliveries', 'messages', 'attempts', 'events'].map((table) => count(db, table)),
    ),
    [2, 2, 2, 0, 0],
  );
  t.true((await db('pg_class').where({ relname: 'emails_first' })).length > 0);
  await db('deliveries').where({ id: held.deliveryId }).update({ status: 'canceled' });
  await runAll();
  t.is(await count(db, 'emails'), 1);
  time.now += 40 * day;
  await runAll();
  t.is(await count(db, 'emails'), 0);
  const names: string[] = (await partitionsOf(db, 'emails')).map(({ name }) => name);
  t.regex(names[0]!, /^emails_before_/);
  t.deepEqual(await db('pg_class').where({ relname: 'emails_first' }).pluck('relname'), []);
});
