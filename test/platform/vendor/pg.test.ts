/** The private parts of pg are still what src/platform/vendor/pg.ts expects. */
import { once } from 'node:events';
import type { Socket } from 'node:net';
import test, { type ExecutionContext } from 'ava';
import pg from 'pg';
import { createDatabase } from '#lab/database/databases.ts';
import { checkPart, checkVersion } from '#lab/vendor.ts';
import { dropAfter, endWhenSilent } from '#platform/vendor/pg.ts';

const file = 'src/platform/vendor/pg.ts';

test('pg is pinned to the version that was read', (t) => checkVersion(t, 'pg', file));

test('a connection that is silent during a query ends; an idle one does not, and is still watched later', async (t) => {
  const { client, errors } = await connect(t);
  await checkPart(t, "pg's socket", file, async () => {
    endWhenSilent(client, 2000);
    const { stream } = (client as unknown as { connection: { stream: Socket } }).connection;
    await once(stream, 'timeout');
    await client.query('select 1');
    const result = await client.query('select pg_sleep(20)').catch((error: Error) => error.message);
    return result === 'PostgreSQL has been silent for 2000 ms' && errors.length > 0;
  });
});

test('after a fatal error the pool is told once the transaction has ended', async (t) => {
  const { client, errors } = await connect(t);
  await checkPart(t, "pg's messages", file, async () => {
    dropAfter(client, (error) => 'code' in error && error.code === '25006');
    await client.query('select 1/0').catch(() => {});
    await client.query('begin read only');
    const refused = await client.query('create table a (b int)').then(
      () => false,
      () => errors.length === 0,
    );
    await client.query('rollback');
    return refused && errors.length === 1;
  });
});

async function connect(t: ExecutionContext) {
  const database = await createDatabase('postgres');
  const client = new pg.Client({ connectionString: database.url! });
  const errors: Error[] = [];
  client.on('error', (error) => errors.push(error));
  await client.connect();
  t.teardown(async () => {
    await client.end().catch(() => {});
    await database.drop();
  });
  return { client, errors };
}
