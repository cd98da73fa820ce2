/**
 * What a move does with rows: hostile ones arrive as they are or are refused by name, large ones in small batches, the numbers
 * that were given go on, and a move that loses its connection starts again.
 */

import { randomBytes } from 'node:crypto';
import test, { type ExecutionContext } from 'ava';
import { v7 as uuid } from 'uuid';
import { insertOrganization } from '#accounts/rows/organizations.ts';
import { createDatabase } from '#lab/database/databases.ts';
import { startPostgres } from '#lab/database/postgres.ts';
import { now, openQueue } from '#lab/database/queue-rows.ts';
import { temporaryDirectory } from '#lab/evidence.ts';
import { type MoveResult, moveDatabase } from '#platform/database/admin/move/move-database.ts';
import { readMarker } from '#platform/database/admin/moved-marker.ts';
import { insertRows } from '#platform/database/engine/insert-rows.ts';
import { type Db, openDatabase } from '#platform/database/engine/open.ts';
import { migrate } from '#platform/database/schema/migrate.ts';

interface Scene extends Awaited<ReturnType<typeof openQueue>> {
  dataDir: string;
  target: Db;
  moved(overrides?: MoveOverrides): Promise<MoveResult>;
}

type MoveOverrides = Partial<
  Pick<Parameters<typeof moveDatabase>[0], 'target' | 'onProgress' | 'onError' | 'timeoutMs'>
>;

async function between(t: ExecutionContext, url?: string): Promise<Scene> {
  const queue = await openQueue(t, 'sqlite');
  const dataDir = queue.settings.POSTERN_DATA_DIR;
  const database = url ? { url, drop: async () => {} } : await createDatabase('postgres');
  t.teardown(database.drop);
  const target = await openDatabase({ dataDir, databaseUrl: database.url });
  t.teardown(() => target.destroy());
  return {
    ...queue,
    dataDir,
    target,
    moved: (overrides = {}) =>
      moveDatabase({
        source: queue.db,
        target,
        to: 'postgres://there',
        dataDir,
        now: () => now,
        onUpgrade() {},
        onProgress() {},
        onError() {},
        ...overrides,
      }),
  };
}

async function both(scene: Scene, table: string, id: string) {
  return [await scene.db(table).where({ id }).first(), await scene.target(table).where({ id }).first()];
}

test('rows arrive as they are, the hostile ones too', async (t) => {
  const scene = await between(t);
  const { db, orgId, target } = scene;
  const { emailId, ids } = await scene.add({
    last_reply: '\u0001\u001b[2J \\u0000 \ud83d\ude00 é\u0301 \u2028 ﷽ ??',
  });
  await db('deliveries').update({ recipient: 'o\'brien"\\?$1{},\\x00@there.invalid' });
  await db.raw(`update emails set subject = cast(x'61EDA08062' as text), tags = '{"a":"\\ud800"}'`);
  await db('organizations').update({ told_low: true, wallet: 2 ** 52, name: 'a\0b' });
  const messages = [
    randomBytes(9_000_000),
    Buffer.alloc(0),
    randomBytes(5_000_000),
    Buffer.from([0, 255, 92, 48]),
  ];
  const messageIds = messages.map(() => uuid());
  for (const [at, raw] of messages.entries())
    await db('messages').insert({ id: messageIds[at], email_id: emailId, size: raw.length, raw });

  const { replaced } = await scene.moved();
  for (const [at, id] of messageIds.entries()) {
    const row = await target('messages').where({ id }).first();
    t.true(row.raw.equals(messages[at]), `message ${at}`);
  }
  const [here, there] = await both(scene, 'deliveries', ids[0]!);
  t.deepEqual(there, { ...here, has_deadline: Boolean(here.has_deadline) });
  const [email, itsCopy] = await both(scene, 'emails', emailId);
  t.deepEqual(
    itsCopy,
    { ...email, is_test: Boolean(email.is_test) },
    'what is no UTF-8 is what Postern reads on SQLite',
  );
  const org = await target('organizations').where({ id: orgId }).first();
  t.like(org, { told_low: true, told_exhausted: false, wallet: 2 ** 52, name: 'a\ufffdb' });
  t.is(replaced, 1, 'a row with what PostgreSQL does not store is told');
});

test('a value that its column does not take is refused by its table, and nothing has changed', async (t) => {
  const scene = await between(t);
  const { ids } = await scene.add({});
  await scene.db('deliveries').where({ id: ids[0]! }).update({ attempts: 'many' });
  await t.throwsAsync(scene.moved(), {
    message:
      'PostgreSQL does not take a row of deliveries: invalid input syntax for type integer: "many"; correct it in SQLite, then move again',
  });
  t.is((await scene.target('organizations')).length, 0);
  t.is(readMarker(scene.dataDir), null, 'SQLite goes on as before');
  await scene.db('deliveries').update({ attempts: 3 });
  await scene.moved();
  t.is((await scene.target('deliveries').first()).attempts, 3);
});

test('a table without a rowid is read in batches too', async (t) => {
  const scene = await between(t);
  const ids = Array.from({ length: 4500 }, () => uuid());
  const rows = ids.map((id, at) => ({ id, org_id: scene.orgId, at, change: 1, reason: 'wallet' }));
  await scene.db('credit_entries').delete();
  await scene.db.transaction((trx) => insertRows(trx, 'credit_entries', rows));
  const steps: number[] = [];
  await scene.moved({
    onProgress({ table, done }) {
      if (table === 'credit_entries') steps.push(done);
    },
  });
  t.deepEqual([steps[1]! - steps[0]!, steps[2]! - steps[1]!, steps.length], [2000, 500, 3]);
  t.deepEqual(await scene.target('credit_entries').orderBy('id').pluck('id'), ids.toSorted());
});

test('numbers that the source has given are not given again', async (t) => {
  const scene = await between(t);
  const { emailId } = await scene.add({});
  const event = () => ({
    id: uuid(),
    org_id: scene.orgId,
    email_id: emailId,
    type: 'email.sent',
    at: now,
    data: '{}',
  });
  for (let at = 0; at < 5; at++) await scene.db('events').insert(event());
  // Readers have seen it, and retention has taken it.
  await scene.db('events').where({ position: 5 }).delete();
  await scene.moved();
  const [{ position }] = await scene.target('events').insert(event()).returning('position');
  t.true(position > 5);
  const { rows } = await scene.target.raw('select events_settled() as settled');
  t.true(rows[0].settled >= position);
});

test('what others write to the target waits until the move has ended', async (t) => {
  const scene = await between(t);
  await scene.add({});
  await migrate(scene.target);
  let written: Promise<unknown> | undefined;
  let isWritten = false;
  await scene.moved({
    onProgress() {
      t.false(isWritten);
      written ??= insertOrganization(scene.target, 'Another', now).then(() => {
        isWritten = true;
      });
    },
  });
  await written;
  t.is((await scene.target('organizations')).length, 2);
});

test('a second move into the same target is refused', async (t) => {
  const scene = await between(t);
  await scene.add({});
  const other = await between(t);
  let second: Promise<unknown> | undefined;
  await scene.moved({
    onProgress() {
      second ??= t.throwsAsync(other.moved({ target: scene.target }), { message: /the target is not empty/ });
    },
  });
  await second;
  t.is(readMarker(other.dataDir), null);
});

test('PostgreSQL crashes in the middle: the move starts again, and nothing is lost or doubled', async (t) => {
  t.timeout(60_000);
  const server = await startPostgres(await temporaryDirectory(t));
  t.teardown(server.stop);
  const scene = await between(t, server.url);
  const { emailId } = await scene.add({}, {}, {});
  for (let at = 0; at < 6; at++) {
    const raw = randomBytes(3_000_000);
    await scene.db('messages').insert({ id: uuid(), email_id: emailId, size: raw.length, raw });
  }
  const crashed = Promise.withResolvers<void>();
  let batches = 0;
  const told: string[] = [];
  const moving = scene.moved({
    // Not by the steps: those of the other tests' moves are told there too.
    onProgress({ table }) {
      if (table !== 'messages') return;
      batches++;
      if (batches === 2) server.end('SIGQUIT').then(server.start).then(crashed.resolve, crashed.reject);
    },
    onError: (what) => told.push(what),
  });
  // Both at once: a server that does not come back is what fails here, and not the move that waits for it.
  const [{ tables }] = await Promise.all([moving, crashed.promise]);
  t.is(told.length > 0, true);
  t.regex(told[0]!, /PostgreSQL is away .*; the move starts again/);
  t.like(
    tables.find(({ table }) => table === 'messages'),
    { rows: 6 },
  );
});

test('the move starts again after a lost connection, however long its statement had been at work', async (t) => {
  const scene = await between(t);
  const { target } = scene;
  await scene.add({});
  await migrate(target);
  // The first insert loses its connection: what a sequence has given is not taken back by that.
  await target.raw('create sequence inserts');
  await target.raw(
    `create function lose_first() returns trigger language plpgsql as $$ begin
       if nextval('inserts') = 1 then perform pg_terminate_backend(pg_backend_pid()); end if;
       return null;
     end $$`,
  );
  await target.raw(
    'create trigger lose_first before insert on organizations for each statement execute function lose_first()',
  );
  const told: string[] = [];
  // Any statement takes longer than that.
  await scene.moved({ timeoutMs: 0, onError: (what) => told.push(what) });
  t.is(told.length, 1);
  const { rows } = await target.raw('select last_value from inserts');
  t.is(Number(rows[0].last_value), 2, 'and the insert was made once more');
  t.deepEqual(await target('organizations').pluck('id'), [scene.orgId]);
});
