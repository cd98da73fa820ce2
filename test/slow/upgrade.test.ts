import test, { type ExecutionContext } from 'ava';
import type { Knex } from 'knex';
import { type Db, openDatabase } from '../../src/db/engine/open.ts';
import { leaseMs } from '../../src/db/queue/nodes.ts';
import { migrate, type Upgrade, upgradeNotice } from '../../src/db/schema/migrate.ts';
import { first } from '../../src/db/schema/migrations/001-first.ts';
import { engine } from '../../src/db/schema/migrations/002-engine.ts';
import { createCli } from '../lab/cli.ts';
import { createDatabase, type DatabaseKind, kinds } from '../lab/database/databases.ts';
import { temporaryDirectory } from '../lab/evidence.ts';
import { startProcess } from '../lab/scenes/process.ts';

async function emptyDatabase(t: ExecutionContext, kind: DatabaseKind) {
  const dataDir = await temporaryDirectory(t);
  const { url, drop } = await createDatabase(kind);
  t.teardown(drop);
  const settings = { POSTERN_DATA_DIR: dataDir, ...(url && { POSTERN_DATABASE_URL: url }) };
  const open = async () => {
    const db = await openDatabase({ dataDir, databaseUrl: url });
    t.teardown(() => db.destroy());
    return db;
  };
  return { settings, open };
}

/** As the program left it that had two steps. */
async function makeOlder(db: Db): Promise<void> {
  const steps: Record<string, Knex.Migration> = { '001-first': first, '002-engine': engine };
  await db.migrate.latest({
    migrationSource: {
      getMigrations: async () => Object.keys(steps),
      getMigrationName: (name: string) => name,
      getMigration: async (name: string) => steps[name]!,
    },
  });
}

/** As a program leaves it that has a step more. */
async function makeNewer(db: Db): Promise<void> {
  await migrate(db);
  await db('knex_migrations').insert({ name: '999-later', batch: 2, migration_time: new Date() });
}

/** As if the program that runs knew a step less; what it does goes on as it is. */
async function makeBehind(db: Db): Promise<void> {
  await db('knex_migrations').where({ name: '014-node-versions' }).delete();
}

const stepsOf = (db: Db): Promise<string[]> => db('knex_migrations').orderBy('id').pluck('name');

for (const kind of kinds) {
  test(`${kind}: an upgrade is told once, before it happens; a new database and one that is up to date are none`, async (t) => {
    const { open } = await emptyDatabase(t, kind);
    const [older, other] = [await open(), await open()];
    await makeOlder(older);
    const told: Upgrade[] = [];
    const tell = (upgrade: Upgrade) => void told.push(upgrade);
    await Promise.all([migrate(older, tell), migrate(other, tell)]);
    const done = await stepsOf(older);
    t.deepEqual(told, [{ from: '002-engine', to: done.at(-1)!, steps: done.length - 2, renames: [] }]);
    t.true(done.length > 2);

    const fresh = await (await emptyDatabase(t, kind)).open();
    await migrate(fresh, () => t.fail('a new database was called an upgrade'));
    t.deepEqual(await stepsOf(fresh), done);
  });

  test(`${kind}: the server says from where to where it upgrades, and which organizations it renames`, async (t) => {
    const { open, settings } = await emptyDatabase(t, kind);
    const db = await open();
    await makeOlder(db);
    const ids = ['1', '2', '3', '4'].map((digit) => `00000000-0000-7000-8000-00000000000${digit}`);
    for (const [at, name] of ['Acme', 'Acme (2)', 'Acme', 'Acme'].entries()) {
      await db('organizations').insert({ id: ids[at], name, created_at: at, quota_limit: 0, quota_since: 0 });
    }
    await db.destroy();
    const postern = await startProcess(settings);
    t.is(await postern.end('SIGTERM'), 0);
    const lines = postern.lines.filter((line) => line.includes('upgraded from 002-engine to'));
    t.is(lines.length, 1, postern.lines.join('\n'));
    const { msg } = JSON.parse(lines[0]!);
    t.true(
      msg.includes(`"Acme" (id ${ids[2]}) becomes "Acme (3)", "Acme" (id ${ids[3]}) becomes "Acme (4)"`),
      msg,
    );
    const names = await (await open())('organizations').orderBy('id').pluck('name');
    t.deepEqual(names, ['Acme', 'Acme (2)', 'Acme (3)', 'Acme (4)']);
    t.true(postern.lines.indexOf(lines[0]!) < postern.lines.findIndex((line) => line.includes('serves at')));
  });

  test(`${kind}: of the commands, migrate alone changes the schema, and says so before`, async (t) => {
    const { open, settings } = await emptyDatabase(t, kind);
    const { cli, json, refusal } = createCli(t, settings);
    for (const command of ['org list', 'migrate'])
      t.regex(
        await refusal(1, command),
        /(is empty|there is no database in .*): the first start of the server creates it/,
      );
    const db = await open();
    await makeOlder(db);
    t.regex(
      await refusal(1, 'org list'),
      /is from an older Postern \(its schema is 002-engine, this program needs \d{3}-[\w-]+\): .*`postern migrate`/,
    );
    t.deepEqual(await stepsOf(db), ['001-first', '002-engine']);
    const { code, stdout, stderr } = await cli('migrate --json');
    t.is(code, 0, stderr);
    t.regex(stderr, /^postern: the database is upgraded from 002-engine to [^\n]*\n$/);
    const done = await stepsOf(db);
    const upgrade = { renames: [], from: '002-engine', to: done.at(-1)!, steps: done.length - 2 };
    t.deepEqual(JSON.parse(stdout.toString()), upgrade);
    t.deepEqual(await json('migrate'), { from: upgrade.to, to: upgrade.to, steps: 0 });
    t.deepEqual(await json('org list'), []);
  });

  test(`${kind}: nobody upgrades the database while a node of another version runs`, async (t) => {
    const { open, settings } = await emptyDatabase(t, kind);
    const { json, cli, refusal } = createCli(t, settings);
    const older = await startProcess(settings);
    t.teardown(() => older.end('SIGKILL'));
    const db = await open();
    await makeBehind(db);
    t.regex(await refusal(1, 'migrate'), /a Postern is running on .*; stop it first/);
    if (kind === 'postgres') {
      const own = await temporaryDirectory(t);
      const other = { ...settings, POSTERN_DATA_DIR: own };
      const lives =
        /a node of Postern \d[^ ]* is running on it \([0-9a-f-]{36}, last heartbeat \d+ s ago\): stop all its nodes first/;
      t.regex(await createCli(t, other).refusal(1, 'migrate'), lives);
      t.regex((await t.throwsAsync(startProcess(other)))!.message, lives);
      await older.end('SIGKILL');
      t.regex(await createCli(t, other).refusal(1, 'migrate'), lives, 'it may only be silent');
      // Of a version that did not say which; its leases have ended.
      await db('nodes').insert({ node: 'another', members: '', at: Date.now() });
      await db.schema.alterTable('nodes', (table) => table.dropColumns('version', 'sends'));
      t.regex(await refusal(1, 'migrate'), /a node of an older Postern is running on it \(another/);
      await db('nodes').update({ at: Date.now() - leaseMs });
    } else {
      await older.end('SIGKILL');
      await db.schema.alterTable('nodes', (table) => table.dropColumns('version', 'sends'));
    }
    const { code, stderr } = await cli('migrate');
    t.is(code, 0, stderr);
    t.deepEqual(await json('org list'), []);
  });

  test(`${kind}: a newer database is refused in one sentence, and stays as it is`, async (t) => {
    const { open, settings } = await emptyDatabase(t, kind);
    const db = await open();
    await makeNewer(db);
    const before = await stepsOf(db);
    await db.destroy();
    const said = await t.throwsAsync(startProcess(settings));
    t.regex(
      said!.message,
      /\npostern: the database is from a newer Postern: .*999-later.* \d{3}-[\w-]+; [^\n]*$/,
    );
    t.regex(await createCli(t, settings).refusal(1, 'org list'), /newer Postern: .*999-later/);
    t.deepEqual(await stepsOf(await open()), before);
  });
}

test('one step is no steps', (t) => {
  t.regex(upgradeNotice({ from: 'a', to: 'b', steps: 1, renames: [] }), /from a to b in 1 step,/);
  t.regex(upgradeNotice({ from: 'a', to: 'b', steps: 2, renames: [] }), /from a to b in 2 steps,/);
});
