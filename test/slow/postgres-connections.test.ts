/** Connections to a PostgreSQL that commits without waiting for its disk, and to one that takes no writes any more. */
import test from 'ava';
import { createDatabase } from '#lab/database/databases.ts';
import { startPostgres } from '#lab/database/postgres.ts';
import { temporaryDirectory } from '#lab/evidence.ts';
import { checkDatabase } from '#operate/doctor/checks/database.ts';
import { openDatabase } from '#platform/database/engine/open.ts';
import { migrate } from '#platform/database/schema/migrate.ts';

test('commits wait for the disk even where the server or the database has turned that off', async (t) => {
  const server = await startPostgres(await temporaryDirectory(t), {
    synchronous_commit: 'off',
    fsync: 'on',
  });
  t.teardown(() => server.stop());
  // With a time limit, as the server opens it, and without, as the command line does.
  const synchronousCommit = async (timeoutMs: number | null) => {
    const db = await openDatabase({ dataDir: '', databaseUrl: server.url }, timeoutMs);
    try {
      const { rows } = await db.raw(
        `select setting, reset_val from pg_settings where name = 'synchronous_commit'`,
      );
      return [rows[0].reset_val, rows[0].setting];
    } finally {
      await db.destroy();
    }
  };
  for (const timeoutMs of [5_000, null]) t.deepEqual(await synchronousCommit(timeoutMs), ['off', 'on']);
  const db = await openDatabase({ dataDir: '', databaseUrl: server.url });
  t.teardown(() => db.destroy());
  for (const [value, used] of [
    ['local', 'local'],
    ['off', 'on'],
  ]) {
    await db.raw(`alter database postgres set synchronous_commit = ${value}`);
    for (const timeoutMs of [5_000, null]) t.deepEqual(await synchronousCommit(timeoutMs), [value, used]);
  }
  // What the server of all tests has turned off, test/operate/doctor.test.ts looks at.
  await migrate(db);
  t.like(await checkDatabase(async () => db), { verdict: 'ok' });
});

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
