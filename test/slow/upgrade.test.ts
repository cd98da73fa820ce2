import test, { type ExecutionContext } from 'ava';
import { createCli } from '#lab/cli.ts';
import { createDatabase, type DatabaseKind, kinds } from '#lab/database/databases.ts';
import { toVersion09 } from '#lab/database/version-09.ts';
import { temporaryDirectory } from '#lab/evidence.ts';
import { startProcess } from '#lab/scenes/process.ts';
import { type Db, openDatabase } from '#platform/database/engine/open.ts';
import { migrate, type Upgrade, upgradeNotice } from '#platform/database/schema/migrate.ts';
import { leaseMs } from '#platform/database/tables/nodes.ts';

const version09 = '027-destination-rules';

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

async function makeOlder(db: Db): Promise<void> {
  await migrate(db);
  await toVersion09(db);
}

/** As a program leaves it that has a step more. */
async function makeNewer(db: Db): Promise<void> {
  await migrate(db);
  await db('knex_migrations').insert({ name: '999-later', migration_time: new Date() });
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
    t.deepEqual(told, [{ from: version09, to: done.at(-1)!, steps: done.length - 1 }]);
    t.true(done.length > 1);

    const fresh = await (await emptyDatabase(t, kind)).open();
    await migrate(fresh, () => t.fail('a new database was called an upgrade'));
    t.deepEqual(await stepsOf(fresh), done);
  });

  test(`${kind}: the server says from where to where it upgrades, before it serves`, async (t) => {
    const { open, settings } = await emptyDatabase(t, kind);
    const db = await open();
    await makeOlder(db);
    await db.destroy();
    const postern = await startProcess(settings);
    t.is(await postern.end('SIGTERM'), 0);
    const told = postern.lines.flatMap((line, at) =>
      line.includes(`upgraded from ${version09} to`) ? [at] : [],
    );
    t.is(told.length, 1, postern.lines.join('\n'));
    t.true(told[0]! < postern.lines.findIndex((line) => line.includes('serves at')));
  });

  test(`${kind}: a database from before 0.9 is refused, and says what to do first`, async (t) => {
    const { open, settings } = await emptyDatabase(t, kind);
    const db = await open();
    await makeOlder(db);
    await db('knex_migrations').update({ name: '026-test-keys' });
    const words =
      /from a Postern before 0\.9 \(its schema is 026-test-keys\).*: upgrade it to 0\.9 first.*Nothing was changed/;
    t.regex((await t.throwsAsync(startProcess(settings)))!.message, words);
    const { refusal } = createCli(t, settings);
    for (const command of ['migrate', 'org list']) t.regex(await refusal(1, command), words);
    t.deepEqual(await stepsOf(db), ['026-test-keys']);
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
      /is from an older Postern \(its schema is 027-destination-rules, this program needs \d{3}-[\w-]+\): .*`postern migrate`/,
    );
    t.deepEqual(await stepsOf(db), [version09]);
    const { code, stdout, stderr } = await cli('migrate --json');
    t.is(code, 0, stderr);
    t.regex(stderr, /^postern: the database is upgraded from 027-destination-rules to [^\n]*\n$/);
    const done = await stepsOf(db);
    const upgrade = { from: version09, to: done.at(-1)!, steps: done.length - 1 };
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
    await toVersion09(db);
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
      await db('nodes').insert({ node: 'another', members: '', at: Date.now(), version: '0.9.0' });
      t.regex(await refusal(1, 'migrate'), /a node of Postern 0\.9\.0 is running on it \(another/);
      await db('nodes').update({ at: Date.now() - leaseMs });
    } else await older.end('SIGKILL');
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
  t.regex(upgradeNotice({ from: 'a', to: 'b', steps: 1 }), /from a to b in 1 step,/);
  t.regex(upgradeNotice({ from: 'a', to: 'b', steps: 2 }), /from a to b in 2 steps,/);
});
