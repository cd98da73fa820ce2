/** Statements that run as one call on SQLite, whatever became of the temporary view and trigger that make them one. */
import test from 'ava';
import { openQueue } from '#lab/database/queue-rows.ts';
import { writeTogether } from '#platform/database/engine/write-together.ts';

test('a view whose trigger could not be created does not fail all later calls', async (t) => {
  const { db } = await openQueue(t, 'sqlite');
  const write = (name: string) =>
    writeTogether(db, [
      (all) =>
        all.raw('insert into learned (kind, name, value, expires_at) values (?, ?, ?, ?)', [
          'test',
          name,
          '1',
          1,
        ]),
    ]);
  await write('a');
  const [trigger] = await db('sqlite_temp_master').where({ type: 'trigger' }).pluck('name');
  await db.raw(`drop trigger temp.${trigger}`);
  await write('b');
  await write('c');
  t.deepEqual(await db('learned').orderBy('name').pluck('name'), ['a', 'b', 'c']);
});
