/** What becomes of a connection to a PostgreSQL that takes no writes any more. */
import test from 'ava';
import { openDatabase } from '../src/db/open.ts';
import { createDatabase } from './helpers/databases.ts';

test('a connection to a primary that was demoted is dropped when its transaction is over', async (t) => {
  const { url, drop } = await createDatabase('postgres');
  t.teardown(drop);
  const db = await openDatabase({ dataDir: '', databaseUrl: url }, 5_000);
  t.teardown(() => db.destroy());
  await db.raw('create table t (n integer)');
  const pid = async () => (await db.raw('select pg_backend_pid() as pid')).rows[0].pid;
  // As a server does that becomes a standby with its connections standing; a new one finds the new primary.
  await db.raw('set default_transaction_read_only = on');
  const before = await pid();
  const write = () => db.transaction((trx) => trx('t').insert({ n: 1 }));
  t.like(await t.throwsAsync(write), { code: '25006' });
  await write();
  t.not(await pid(), before);
});
