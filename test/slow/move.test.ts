/**
 * `postern move`: from SQLite to PostgreSQL nothing is lost and nothing is doubled, wherever it is killed; and neither
 * database is used by mistake while it is under way, or the old one after it.
 */
import { existsSync } from 'node:fs';
import { readFile, rm } from 'node:fs/promises';
import { join } from 'node:path';
import test, { type ExecutionContext } from 'ava';
import { createCli, createProcessCli } from '#lab/cli.ts';
import { type CrashScene, createCrashScene, drained, sendUntilGone } from '#lab/crash-scene.ts';
import { createDatabase } from '#lab/database/databases.ts';
import { temporaryDirectory } from '#lab/evidence.ts';
import { startProcess } from '#lab/scenes/process.ts';
import { until } from '#lab/until.ts';
import { markerFile, readMarker } from '#platform/database/admin/moved-marker.ts';
import { type Db, openDatabase } from '#platform/database/engine/open.ts';
import { migrate } from '#platform/database/schema/migrate.ts';
import { attemptDetail } from '#platform/database/tables/packed-records.ts';

const secret = 'a secret of this test';

interface Scene extends CrashScene {
  dataDir: string;
  /** The empty PostgreSQL. */
  to: string;
  target: Db;
  command: ReturnType<typeof createCli>;
  /** The command, killed at the nth time that it comes to a step. */
  killedAt(step: string, nth: number): Promise<void>;
}

/** A stopped Postern on SQLite with `waiting` mails that the exchanger has not taken, and a PostgreSQL. */
async function stopped(t: ExecutionContext, waiting: number): Promise<Scene> {
  const around = await createCrashScene(t, 'sqlite', { POSTERN_SECRET: secret });
  around.mx.script = { mail: () => '451 4.3.2 not now' };
  const postern = await startProcess(around.settings);
  t.teardown(() => postern.end('SIGKILL'));
  const promised: string[] = [];
  const loading = sendUntilGone(postern.url, around.key, 'm', promised);
  await until(() => promised.length >= waiting, { what: 'the mails to be taken' });
  await until(async () => (await around.db('attempts').first()) !== undefined, { what: 'a first attempt' });
  await postern.end('SIGKILL');
  await loading;
  around.mx.script = {};
  const database = await createDatabase('postgres');
  t.teardown(() => database.drop());
  const to = database.url!;
  const target = await openDatabase({ dataDir: '', databaseUrl: to });
  t.teardown(() => target.destroy());
  const { settings } = around;
  const killer = join(import.meta.dirname, '../lab/kill-at.ts');
  return {
    ...around,
    dataDir: settings.POSTERN_DATA_DIR!,
    to,
    target,
    command: createCli(t, settings),
    async killedAt(step, nth) {
      const flags = `--import=${killer}?step=${step}&nth=${nth}&from=start`;
      const { cli } = createProcessCli(t, { ...settings, POSTERN_MOVE_TO: to, NODE_OPTIONS: flags });
      const { stdout, stderr } = await cli('move');
      t.is(stdout.toString(), '', `killed at ${step} ${nth}, it had nothing to tell: ${stderr}`);
    },
  };
}

async function countsOf(db: Db): Promise<Record<string, number>> {
  const counts: Record<string, number> = {};
  for (const table of [
    'emails',
    'messages',
    'deliveries',
    'attempts',
    'events',
    'credit_entries',
    'domains',
  ]) {
    counts[table] = Number((await db(table).count('* as n').first())!.n);
  }
  return counts;
}

/** Starts it on PostgreSQL, until the exchanger has all. */
async function delivered(t: ExecutionContext, scene: Scene): Promise<void> {
  const recipients: string[] = await scene.target('deliveries').pluck('recipient');
  const postern = await startProcess({ ...scene.settings, POSTERN_DATABASE_URL: scene.to });
  t.teardown(() => postern.end('SIGKILL'));
  await drained({ mx: scene.mx, db: scene.target }, recipients);
  await postern.end('SIGTERM');
  t.deepEqual(
    scene.mx.messages.map(({ to }) => to[0]!).toSorted(),
    recipients.toSorted(),
    'each of them once',
  );
}

test('what waited on SQLite is delivered from PostgreSQL, once', async (t) => {
  t.timeout(120_000);
  const scene = await stopped(t, 40);
  const before = await countsOf(scene.db);
  const ours = (await readFile(join(scene.dataDir, 'node-id'), 'utf8')).trim();
  const sending: string[] = await scene.db('deliveries').where({ lease_owner: ours }).pluck('id');
  const positions = await scene.db('events').max('position as last').first();

  const moved = await scene.command.json('move --to', scene.to);
  t.is(
    moved.rows,
    moved.tables.reduce((sum: number, { rows }: { rows: number }) => sum + rows, 0),
  );
  t.is(
    Object.values<number>(moved.waiting).reduce((sum, count) => sum + count, 0),
    before.deliveries!,
  );
  t.false(JSON.stringify(moved).includes(`${new URL(scene.to).password}@`), 'no password is shown');
  t.deepEqual(await countsOf(scene.target), before);
  t.deepEqual(
    (await scene.target('deliveries').where({ lease_owner: ours }).pluck('id')).toSorted(),
    sending.toSorted(),
    "what was in the air when it was killed is still this node's",
  );

  await delivered(t, scene);
  const cut: string[] = (await scene.target('attempts'))
    .filter((row) => attemptDetail(row).verdict.possibleDuplicate)
    .map((row) => row.delivery_id);
  t.deepEqual(
    sending.filter((id) => !cut.includes(id)),
    [],
    'and told as such by the node that took it back',
  );
  const news: number[] = await scene
    .target('events')
    .where('position', '>', positions!.last)
    .pluck('position');
  t.true(news.length >= before.deliveries!, 'new events come after all that readers have seen');

  // SQLite is as it was, and nobody starts on it by mistake.
  t.deepEqual(await countsOf(scene.db), before);
  const refused = await t.throwsAsync(startProcess(scene.settings));
  t.regex(
    refused!.message,
    /has moved to postgres:.*set POSTERN_DATABASE_URL.*remove .*postern\.sqlite\.moved/,
  );
  t.regex(await scene.command.refusal(1, 'queue summary'), /has moved to postgres:/);
  t.regex(await scene.command.refusal(1, 'restore', markerFile(scene.dataDir), '--force'), /has moved to/);
  t.regex(await scene.command.refusal(1, 'move --to', scene.to), /has moved to postgres:/);
});

test('killed anywhere, nothing has changed or all is there, and no row is lost or doubled', async (t) => {
  t.timeout(180_000);
  const scene = await stopped(t, 20);
  const { settings, dataDir, command } = scene;
  const before = await countsOf(scene.db);
  await scene.killedAt('copying', 4);
  t.is(readMarker(dataDir), null);
  t.truthy(await command.json('org list'), 'SQLite is used on');
  for (const step of ['moving', 'moved']) {
    await scene.killedAt(step, 1);
    t.regex(await command.refusal(1, 'org list'), /was interrupted: run `postern move --to URL` again/, step);
    t.regex((await t.throwsAsync(startProcess(settings)))!.message, /was interrupted: run/, step);
  }
  const moved = await command.json('move --to', scene.to);
  t.is(moved.tables.find(({ table }: { table: string }) => table === 'emails').rows, before.emails!);
  t.deepEqual(await countsOf(scene.target), before);
  await delivered(t, scene);
});

test('a move is refused where it would mix two databases or lose rows', async (t) => {
  t.timeout(120_000);
  const scene = await stopped(t, 5);
  const { cli, refusal } = scene.command;
  const postern = await startProcess(scene.settings);
  t.regex(await refusal(1, 'move --to', scene.to), /a Postern is running on .*; stop it first/);
  await postern.end('SIGTERM');

  t.regex(await refusal(2, 'move'), /--to <URL>/);
  for (const wrong of ['mysql://root:hunter2@127.0.0.1/x', 'hunter2', '/var/lib/hunter2.sqlite']) {
    const environment = createCli(t, { ...scene.settings, POSTERN_MOVE_TO: wrong });
    for (const said of [await refusal(2, 'move --to', wrong), await environment.refusal(2, 'move')]) {
      t.regex(said, /not a PostgreSQL URL; give postgres:/);
      t.false(said.includes('hunter2'));
    }
  }
  const unreachable = new URL(scene.to);
  unreachable.pathname = '/there_is_none';
  unreachable.password = 'hunter2';
  const said = await refusal(1, 'move --to', unreachable.href);
  t.regex(said, /the database of --to cannot be used/);
  t.false(said.includes('hunter2'));

  const onPostgres = createCli(t, { ...scene.settings, POSTERN_DATABASE_URL: scene.to });
  t.regex(await onPostgres.refusal(1, 'move --to', scene.to), /POSTERN_DATABASE_URL is set/);
  const nowhere = createCli(t, { POSTERN_DATA_DIR: await temporaryDirectory(t) });
  t.regex(await nowhere.refusal(1, 'move --to', scene.to), /there is no SQLite database in/);

  await migrate(scene.target);
  await onPostgres.json('org create --name Somebody');
  t.regex(
    await refusal(1, 'move --to', scene.to),
    /the target is not empty: there are rows in .*organizations/,
  );
  t.false(existsSync(markerFile(scene.dataDir)), 'and nothing has begun');
  await scene.target('organizations').delete();

  const other = await startProcess({
    ...scene.settings,
    POSTERN_DATA_DIR: await temporaryDirectory(t),
    POSTERN_DATABASE_URL: scene.to,
  });
  await until(
    async () => /a Postern is running on the target/.test((await cli('move --to', scene.to)).stderr),
    {
      what: 'the other server to be seen',
    },
  );
  await other.end('SIGTERM');

  await scene.killedAt('moved', 1);
  await rm(markerFile(scene.dataDir));
  t.regex(await refusal(1, 'move --to', scene.to), /the target is not empty/, 'the move was given up');
  const again = await startProcess(scene.settings);
  await again.end('SIGTERM');
});
