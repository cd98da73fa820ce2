/**
 * A backup made while mail is taken, brought back where there is nothing: nothing accepted before the backup is lost,
 * nothing that waited goes out twice unasked, and readers of events miss nothing.
 */
import { existsSync } from 'node:fs';
import { copyFile, mkdir, readdir, readFile, rm, stat, truncate, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import test, { type ExecutionContext } from 'ava';
import { createCli, createProcessCli, makeInstallation } from '#lab/cli.ts';
import { type CrashScene, createCrashScene, sendUntilGone } from '#lab/crash-scene.ts';
import { kinds } from '#lab/database/databases.ts';
import { temporaryDirectory } from '#lab/evidence.ts';
import { startProcess } from '#lab/scenes/process.ts';
import { startWorld } from '#lab/scenes/world.ts';
import { until } from '#lab/until.ts';
import { openDatabase } from '#platform/database/engine/open.ts';

const senders = 8;

/** A server under load, killed some time after the backup: what was answered 200 before it began, and the file. */
async function backedUpUnderLoad(t: ExecutionContext, around: CrashScene, file: string) {
  // A process of its own: in this one, it would leave the senders no time.
  const { cli } = createProcessCli(t, around.settings);
  const postern = await startProcess(around.settings);
  t.teardown(() => postern.end('SIGKILL'));
  const promised: string[] = [];
  const loads = Promise.all(
    Array.from({ length: senders }, (_, n) => sendUntilGone(postern.url, around.key, `s${n}`, promised)),
  );
  await until(() => promised.length > 50, { what: 'the load to get going' });
  const before = [...promised];
  const made = await cli('backup', file);
  t.is(made.code, 0, made.stderr);
  const later = promised.length;
  await until(() => promised.length > later + 20, { what: 'the load to go on' });
  await postern.end('SIGKILL');
  await loads;
  t.true(later > before.length, 'it was taken while mail was');
  return before;
}

test('nothing accepted before a backup under load is lost', async (t) => {
  t.timeout(120_000);
  const around = await createCrashScene(t, 'sqlite');
  // Nothing gets through before the backup is back.
  around.mx.script = { mail: () => '451 4.3.2 not now' };
  const place = await temporaryDirectory(t);
  const file = join(place, 'backup.sqlite');
  const before = await backedUpUnderLoad(t, around, file);
  t.deepEqual(
    (await readdir(place)).sort(),
    ['backup.sqlite', 'backup.sqlite.secret'],
    'and nothing half-done',
  );
  for (const each of [file, `${file}.secret`]) t.is((await stat(each)).mode & 0o777, 0o600);

  const settings = { ...around.settings, POSTERN_DATA_DIR: join(place, 'anew') };
  const { cli, json } = createCli(t, settings);
  const restored = await cli('restore', file, '--json');
  t.is(restored.code, 0, restored.stderr);
  const { held, replaced } = JSON.parse(restored.stdout.toString());
  t.true(held >= before.length);
  t.is(replaced, null);
  t.regex(restored.stderr, /queue release --status held/);

  around.mx.script = {};
  const postern = await startProcess(settings);
  t.teardown(() => postern.end('SIGKILL'));
  const { moved } = await json('queue release --status held --reason', 'it was not sent');
  t.is(moved, held);
  const missing = () => {
    const got = new Set(around.mx.messages.map(({ to }) => to[0]!));
    return before.filter((address) => !got.has(address));
  };
  await until(() => missing().length === 0, { what: () => `the MX to get ${missing()}` });
  t.is(await postern.end('SIGTERM'), 0);
});

for (const kind of kinds) {
  test(`${kind}: what waited is held, and events come after all that anybody has read`, async (t) => {
    const world = await startWorld(t, {
      database: kind,
      settings: { POSTERN_SECRET: 'a secret of this test' },
    });
    world.mx[0]!.script = { mail: () => '451 4.3.2 not now' };
    const { body } = await world.send({ to: 'ann@there.invalid' });
    await world.when(body.emailId, ({ status }) => status === 'deferred');
    const after = (await world.call('GET', '/api/public/events')).body.next;
    await world.stop();

    // As it is when the backup was made while a mail was being sent.
    await world.db('deliveries').update({ status: 'sending', lease_owner: 'a node of then', due_at: 1 });
    const { dataDir, databaseUrl } = world.config;
    const env = {
      POSTERN_DATA_DIR: dataDir,
      POSTERN_SECRET: 'a secret of this test',
      ...(databaseUrl && { POSTERN_DATABASE_URL: databaseUrl }),
    };
    const { cli, json } = createCli(t, env);
    const file = join(dataDir, 'copy');
    if (kind === 'sqlite') t.is((await cli('backup', file)).code, 0);
    const ran = kind === 'sqlite' ? await cli('restore', file, '--force') : await cli('restore');
    t.is(ran.code, 0, ran.stderr);

    const [email] = (await json('email show', body.emailId)).recipients;
    t.is(email.status, 'held');
    await world.restart();
    const { events } = (await world.call('GET', `/api/public/events?after=${after}`)).body;
    t.deepEqual(
      events.map(({ type, data }: { type: string; data: { reason: string } }) => [
        type,
        /restored/.test(data.reason),
      ]),
      [['email.held', true]],
    );
    const db = await openDatabase(world.config);
    t.teardown(() => db.destroy());
    const [position] = await db('events').max('position as last');
    t.true(position!.last > 1_000_000_000);
  });
}

test('a backup that cannot be used is refused', async (t) => {
  const place = await temporaryDirectory(t);
  const dataDir = join(place, 'data');
  const { cli, json, refusal } = createCli(t, { POSTERN_DATA_DIR: dataDir });
  t.regex(await refusal(1, 'backup', join(place, 'none')), /POSTERN_DATA_DIR/);
  await makeInstallation(dataDir);
  const org = await json('org create --name Acme');
  await json('domain add sender.invalid --org', org.id);
  const file = join(place, 'backup');

  const made = await cli('backup', file);
  t.is(made.code, 0);
  t.regex(made.stderr, /backup\.secret decrypts the keys in the backup/);
  t.regex(await refusal(1, 'backup', file), /already exists; --force/);
  t.is((await cli('backup --force', file)).code, 0);
  t.regex(await refusal(1, 'backup', join(place, 'no/such')), /cannot be written to/);

  const secret = join(dataDir, 'secret');
  const kept = await readFile(secret);
  await writeFile(secret, 'of another service altogether\n');
  t.regex(await refusal(1, 'backup', join(place, 'other')), /cannot decrypt 1 of 1 keys/);
  await writeFile(secret, kept);
  t.deepEqual((await readdir(place)).sort(), ['backup', 'backup.secret', 'data']);
});

test('a restore changes nothing until all is well', async (t) => {
  const place = await temporaryDirectory(t);
  const dataDir = join(place, 'data');
  const { cli, json, refusal } = createCli(t, { POSTERN_DATA_DIR: dataDir });
  await makeInstallation(dataDir);
  const org = await json('org create --name Acme');
  await json('domain add sender.invalid --org', org.id);
  const file = join(place, 'backup');
  t.is((await cli('backup', file)).code, 0);
  await json('org create --name Later');

  t.regex(await refusal(2, 'restore'), /no backup is given/);
  t.regex(await refusal(1, 'restore', join(place, 'none')), /does not exist/);
  t.regex(await refusal(1, 'restore', file), /--force renames it/);
  const torn = join(place, 'torn');
  await copyFile(file, torn);
  await truncate(torn, (await stat(torn)).size - 8192);
  t.regex(await refusal(1, 'restore --force', torn), /damaged|malformed|cannot be used/);
  t.is((await json('org list')).length, 2, 'as it was');

  const anew = createCli(t, { POSTERN_DATA_DIR: join(place, 'anew') });
  const apart = join(place, 'apart');
  await mkdir(join(place, 'anew'));
  await copyFile(file, apart);
  t.regex(
    await anew.refusal(1, 'restore', apart),
    /put the secret that was saved with the backup at .*apart\.secret/,
  );
  t.false(existsSync(join(place, 'anew/postern.sqlite')));
  await copyFile(`${file}.secret`, `${apart}.secret`);
  t.is((await anew.cli('restore', apart)).code, 0);
  t.is((await anew.json('domain list --org Acme')).length, 1);

  const back = await cli('restore --force', file);
  t.is(back.code, 0, back.stderr);
  t.is((await json('org list')).length, 1);
  const aside = (await readdir(dataDir)).filter((name) => name.includes('replaced'));
  t.is(aside.length, 1);
  await rm(join(dataDir, 'postern.sqlite'));
  await copyFile(join(dataDir, aside[0]!), join(dataDir, 'postern.sqlite'));
  t.is((await json('org list')).length, 2, 'what was set aside is whole');
});

test('no restore while a server runs', async (t) => {
  const world = await startWorld(t, { database: 'sqlite' });
  const { dataDir } = world.config;
  const { cli, refusal } = createCli(t, { POSTERN_DATA_DIR: dataDir });
  const file = join(dataDir, 'copy');
  t.is((await cli('backup', file)).code, 0);
  t.regex(await refusal(1, 'restore --force', file), /another Postern is running/);
});

test('on PostgreSQL the commands name pg_dump and pg_restore', async (t) => {
  const { refusal } = createCli(t, { POSTERN_DATABASE_URL: 'postgres://nobody@127.0.0.1:1/none' });
  t.regex(await refusal(1, 'backup', '/nowhere'), /pg_dump/);
  t.regex(await refusal(2, 'restore', '/nowhere'), /pg_restore/);
});
