/** knex's SQLite client with prepared statements: what is asked is answered as if each were compiled anew. */
import { stat } from 'node:fs/promises';
import { join } from 'node:path';
import test, { type ExecutionContext } from 'ava';
import { temporaryDirectory } from '#lab/evidence.ts';
import { insertRows } from '#platform/database/engine/insert-rows.ts';
import { keepLogShort, openDatabase } from '#platform/database/engine/open.ts';
import { inSharedCommit } from '#platform/database/engine/shared-commit.ts';

async function newDatabase(t: ExecutionContext) {
  const dataDir = await temporaryDirectory(t);
  const open = () => openDatabase({ dataDir, databaseUrl: null });
  const db = await open();
  t.teardown(() => db.destroy());
  await db.schema.createTable('things', (table) => {
    table.integer('id').primary();
    table.text('name').notNullable();
  });
  return { db, open, dataDir };
}

test('a text that does not compile is refused each time it is asked, and others go on', async (t) => {
  const { db } = await newDatabase(t);
  for (let count = 0; count < 3; count++)
    await t.throwsAsync(db.raw('select it from nowhere'), { message: /no such table: nowhere/ });
  t.deepEqual(await db.raw('select 1 as one'), [{ one: 1 }]);
  await db.schema.createTable('nowhere', (table) => table.integer('it'));
  t.deepEqual(await db.raw('select it from nowhere'), []);
});

test('a statement that has failed works with other values, and a transaction around it rolls back', async (t) => {
  const { db } = await newDatabase(t);
  const insert = (id: number, name: string | null) => db('things').insert({ id, name });
  await insert(1, 'one');
  await t.throwsAsync(insert(1, 'again'), { message: /UNIQUE/ });
  await t.throwsAsync(insert(2, null), { message: /NOT NULL/ });
  await insert(2, 'two');
  const failing = db.transaction(async (trx) => {
    await trx('things').insert({ id: 3, name: 'three' });
    await trx('things').insert({ id: 3, name: 'three' });
  });
  await t.throwsAsync(failing, { message: /UNIQUE/ });
  t.deepEqual(await db('things').orderBy('id').pluck('name'), ['one', 'two']);
  t.is(await db('things').where({ id: 2 }).update({ name: 'deux' }), 1, 'how many were changed');
  t.is(await db('things').where({ id: 9 }).delete(), 0);
});

test('why a transaction failed is told, also where SQLite has rolled it back by itself', async (t) => {
  const { db } = await newDatabase(t);
  await db.raw(
    "create temp trigger full before insert on things when new.id = 2 begin select raise(rollback, 'full'); end",
  );
  const insert = (...ids: number[]) =>
    db.transaction(async (trx) => {
      for (const id of ids) await trx('things').insert({ id, name: 'one' });
    });
  await t.throwsAsync(insert(1, 2), { message: /full/ });
  await insert(3);
  t.deepEqual(await db('things').pluck('id'), [3], 'nothing is left of it, and the next can');
});

test('more statements than are kept, and a table that changes under them', async (t) => {
  const { db } = await newDatabase(t);
  await insertRows(db as never, 'things', [
    { id: 1, name: 'one' },
    { id: 2, name: 'zwei, "due"' },
  ]);
  for (let count = 0; count < 500; count++)
    t.deepEqual(await db.raw(`select ${count} as count, name from things where id = ?`, [2]), [
      { count, name: 'zwei, "due"' },
    ]);
  const all = () => db.raw('select * from things where id = ?', [1]);
  t.deepEqual(await all(), [{ id: 1, name: 'one' }]);
  await db.schema.alterTable('things', (table) => table.integer('size').defaultTo(7));
  t.deepEqual(await all(), [{ id: 1, name: 'one', size: 7 }]);
});

test('a new file that several open at the same time opens for all of them', async (t) => {
  for (let round = 0; round < 50; round++) {
    const dataDir = await temporaryDirectory(t);
    const all = await Promise.all([1, 2, 3].map(() => openDatabase({ dataDir, databaseUrl: null })));
    await Promise.all(all.map((db) => db.destroy()));
  }
  t.pass();
});

test('two connections: what one holds open does not keep the other from writing, or the file from closing', async (t) => {
  const { db, open } = await newDatabase(t);
  const other = await open();
  await db('things').insert({ id: 1, name: 'one' });
  t.deepEqual(await other('things').pluck('name'), ['one']);
  await db('things').where({ id: 1 }).update({ name: 'uno' });
  t.deepEqual(await other('things').pluck('name'), ['uno'], 'a statement that has ended holds no old view');
  await t.notThrowsAsync(other.destroy());
});

test('the write-ahead log is begun anew after 16 MB, or after one where it is kept short', async (t) => {
  const logOf = async (isShort: boolean) => {
    const { db, dataDir } = await newDatabase(t);
    await keepLogShort(db, isShort);
    for (let id = 0; id < 100; id++) await db('things').insert({ id, name: 'x'.repeat(200_000) });
    const { size } = await stat(join(dataDir, 'postern.sqlite-wal'));
    return size / 1024 / 1024;
  };
  const [fallback, short] = [await logOf(false), await logOf(true)];
  t.true(fallback > 15 && fallback < 18, `${fallback} MB`);
  t.true(short < 2, `${short} MB`);
});

test('a write-ahead log that has grown beside a long read gives its space back', async (t) => {
  const { db, open, dataDir } = await newDatabase(t);
  const logMb = async () => (await stat(join(dataDir, 'postern.sqlite-wal'))).size / 1024 / 1024;
  const write = () => db('things').insert({ name: 'x'.repeat(2_000_000) });
  const other = await open();
  t.teardown(() => other.destroy());
  await other.raw('begin');
  await other('things').first();
  for (let count = 0; count < 50; count++) await write();
  t.true((await logMb()) > 90, 'the look keeps it from being begun anew');
  await other.raw('commit');
  for (let count = 0; count < 2; count++) await write();
  t.true((await logMb()) <= 32, `${await logMb()} MB`);
});

test('an error tells the statement, and none of its values', async (t) => {
  const { db } = await newDatabase(t);
  await db('things').insert({ id: 1, name: 'one' });
  const error = await t.throwsAsync(db('things').insert({ id: 1, name: 'bob@there.invalid' }));
  t.regex(error.message, /^insert into `things` .*SQLITE_CONSTRAINT/);
  t.notRegex(error.message, /bob/);
});

test('after another process has locked the database, the next statement is written', async (t) => {
  const { db, open } = await newDatabase(t);
  const other = await open();
  t.teardown(() => other.destroy());
  await db.raw('pragma busy_timeout = 20');
  const write = () => db('things').where({ id: 1 }).delete();
  const transaction = () => db.transaction((trx) => trx('things').insert({ name: 'in a transaction' }));
  const shared = () => inSharedCommit(db, (trx) => trx('things').insert({ name: 'in a shared one' }));
  for (const one of [write, transaction, shared]) {
    await other.transaction(async (trx) => {
      await trx('things').insert({ name: 'of the other' });
      await t.throwsAsync(one(), { message: /SQLITE_BUSY/ });
    });
    for (const next of [transaction, shared, write]) await t.notThrowsAsync(next());
  }
});

test('a transaction whose COMMIT fails has ended, and the next can begin', async (t) => {
  const { db } = await newDatabase(t);
  await db.raw('create table parts (thing integer references things deferrable initially deferred)');
  const failing = db.transaction((trx) => trx('parts').insert({ thing: 9 }));
  await t.throwsAsync(failing, { message: /COMMIT; - .*FOREIGN KEY/ });
  await db.transaction((trx) => trx('things').insert({ id: 9, name: 'nine' }));
  t.deepEqual(await db('parts'), []);
});
