/** The private parts of knex are still what src/platform/vendor/knex.ts expects. */
import test from 'ava';
import knex, { type Knex } from 'knex';
import { checkPart, checkVersion } from '#lab/vendor.ts';

const file = 'src/platform/vendor/knex.ts';
const load = () => import('#platform/vendor/knex.ts');

interface Raw {
  prepare(...args: unknown[]): unknown;
}

/** A database in memory, with the texts that knex was asked for and those that SQLite compiled. */
async function open() {
  const { SqliteClient } = await load();
  const asked: string[] = [];
  const compiled: string[] = [];
  const db = knex({
    client: SqliteClient as unknown as typeof Knex.Client,
    connection: { filename: ':memory:' },
    useNullAsDefault: true,
    pool: {
      min: 1,
      max: 1,
      afterCreate(raw: Raw, done: (error: null, raw: Raw) => void) {
        const prepare = raw.prepare.bind(raw);
        raw.prepare = (...args) => {
          compiled.push(String(args[0]));
          return prepare(...args);
        };
        done(null, raw);
      },
    },
  });
  db.on('query', ({ sql }) => asked.push(sql));
  return { db, asked, compiled };
}

test('knex is pinned to the version that was read', (t) => checkVersion(t, 'knex', file));

test('the SQLite client runs its queries through _query, so that a text is compiled once', async (t) => {
  await checkPart(t, '_query of knex/lib/dialects/sqlite3', file, async () => {
    const { db, compiled } = await open();
    const results = [];
    for (let value = 1; value <= 2; value++)
      results.push((await db.raw('select ? as value', [value]))[0].value);
    await db.destroy();
    return JSON.stringify({ results, compiled }) === '{"results":[1,2],"compiled":["select ? as value"]}';
  });
});

test('a transaction begins with the write lock', async (t) => {
  await checkPart(t, 'knex/lib/dialects/sqlite3/execution/sqlite-transaction', file, async () => {
    const { db, asked } = await open();
    await db.transaction((trx) => trx.raw('select 1'));
    await t.throwsAsync(db.transaction((trx) => trx.raw('select nothing')));
    await db.destroy();
    return asked.join() === 'BEGIN IMMEDIATE;,select 1,COMMIT;,BEGIN IMMEDIATE;,select nothing,ROLLBACK';
  });
});

test('a second interface uses the connection that it is given', async (t) => {
  await checkPart(t, 'acquireConnection, releaseConnection or emit of a knex client', file, async () => {
    const { createTransact } = await load();
    const { db, asked } = await open();
    const transact = createTransact(db);
    await transact((trx) => trx.raw('create table things (id integer)'));
    await t.throwsAsync(transact((trx) => trx('things').insert({ unknown: 1 })));
    const result = await transact(async (trx) => [await trx('things').insert({ id: 7 }), trx] as const);
    await t.throwsAsync(result[1].raw('select 1'), { message: 'the transaction has ended' });
    const found = await db('things').pluck('id');
    await db.destroy();
    return found.join() === '7' && asked.filter((sql) => sql === 'BEGIN IMMEDIATE').length === 3;
  });
});

test('a transaction runs on the connection of its caller', async (t) => {
  await checkPart(t, 'the option `connection` of a knex transaction', file, async () => {
    const { transactionBetween } = await load();
    const { db } = await open();
    const modes: number[] = [];
    const read = async (from: Knex) => modes.push((await from.raw('pragma foreign_keys'))[0].foreign_keys);
    await db.raw('pragma foreign_keys = on');
    await transactionBetween(
      db,
      { before: 'pragma foreign_keys = off', after: 'pragma foreign_keys = on' },
      async (trx) => {
        await read(trx);
      },
    );
    await read(db);
    await db.destroy();
    return modes.join() === '0,1';
  });
});
