/** Starting the program: what it says, what it writes, one clear line when it cannot start. */
import { chmod, readdir, readFile, stat, writeFile } from 'node:fs/promises';
import { createServer } from 'node:net';
import { join } from 'node:path';
import test, { type ExecutionContext } from 'ava';
import { createCli, createProcessCli, run } from '#lab/cli.ts';
import { temporaryDirectory } from '#lab/evidence.ts';
import { startProcess } from '#lab/scenes/process.ts';
import { startWorld } from '#lab/scenes/world.ts';
import { until } from '#lab/until.ts';
import { createLog } from '#platform/base/log.ts';
import { openDatabase } from '#platform/database/engine/open.ts';
import { loadConfig } from '#platform/settings/config.ts';
import { start } from '#server/start.ts';
import { describeStartError } from '#server/start-messages.ts';

const startHere = async (settings: Record<string, string>) =>
  start(loadConfig({ POSTERN_HTTP_PORT: '0', POSTERN_LOG_LEVEL: 'silent', ...settings }));

/** What a start that fails says, in one line; "a bad setting is named" shows that the process prints it. */
async function refusal(t: ExecutionContext, settings: Record<string, string>): Promise<string> {
  const said = describeStartError((await t.throwsAsync(startHere(settings)))!);
  t.notRegex(said, /\n/);
  return said;
}

test('the first start says what to do next, and those commands work; SIGHUP does not stop the server', async (t) => {
  const dataDir = join(await temporaryDirectory(t), "new and Ann's", 'data');
  const postern = await startProcess({ POSTERN_DATA_DIR: dataDir });
  t.teardown(() => postern.end('SIGKILL'));
  const said = postern.lines.map((line) => JSON.parse(line).msg as string);
  const [hint] = said.filter((line) => line.includes('org create'));
  const { code, stderr } = await run('sh', ['-c', `cd / && ${hint}`], { PATH: process.env.PATH });
  t.deepEqual([code, stderr], [0, '']);
  const { json } = createCli(t, { POSTERN_DATA_DIR: dataDir });
  t.deepEqual(
    (await json('org list')).map(({ name }: { name: string }) => name),
    ['Acme'],
  );
  // As when a terminal has closed, or an operator wants the settings to be read again.
  process.kill(postern.pid, 'SIGHUP');
  await until(() => postern.lines.some((line) => line.includes('SIGHUP: ')));
  t.is((await fetch(`${postern.url}/health/ready`)).status, 200);
  t.is(await postern.end('SIGTERM'), 0);
});

test('what it writes into a directory made by hand is for its user alone, and so is what a command writes', async (t) => {
  const dataDir = await temporaryDirectory(t);
  await chmod(dataDir, 0o755);
  const umask = process.umask(0o022);
  t.teardown(() => process.umask(umask));
  const postern = await startProcess({ POSTERN_DATA_DIR: dataDir });
  t.teardown(() => postern.end('SIGKILL'));
  const open = async () => {
    const found: string[] = [];
    for (const entry of await readdir(dataDir, { recursive: true, withFileTypes: true })) {
      const { mode } = await stat(join(entry.parentPath, entry.name));
      if (mode & 0o077) found.push(entry.name);
    }
    return found;
  };
  t.deepEqual(await open(), []);
  t.true((await readdir(dataDir)).includes('postern.sqlite'));
  t.is(await postern.end('SIGTERM'), 0);
  // The last connection has taken these away.
  t.false((await readdir(dataDir)).includes('postern.sqlite-wal'));
  const { cli } = createProcessCli(t, { POSTERN_DATA_DIR: dataDir });
  t.is((await cli('secret rotate')).code, 0);
  t.deepEqual(await open(), []);
});

test('a first start that finds no room leaves nothing half written to the next', async (t) => {
  const dataDir = await temporaryDirectory(t);
  const main = join(import.meta.dirname, '../../src/main.ts');
  // A write past the limit is an error only for a process that does not die of the signal.
  const args = ['-c', `trap '' XFSZ; ulimit -f 0; exec "$0" "$1"`, process.execPath, main];
  const first = await run('sh', args, { POSTERN_DATA_DIR: dataDir });
  t.is(first.code, 1);
  t.regex(first.stderr, /^postern: EFBIG[^\n]*\n$/);
  t.deepEqual(await readdir(dataDir), []);
  const second = await startHere({ POSTERN_DATA_DIR: dataDir });
  await second.stop();
});

test('a node whose name was not written to the end gets another', async (t) => {
  const dataDir = await temporaryDirectory(t);
  const file = join(dataDir, 'node-id');
  await writeFile(file, '');
  const name = async () => {
    const postern = await startHere({ POSTERN_DATA_DIR: dataDir });
    await postern.stop();
    return (await readFile(file, 'utf8')).trim();
  };
  const made = await name();
  t.regex(made, /^[0-9a-f-]{36}$/);
  t.is(await name(), made, 'and keeps it');
});

test('a bad setting is named', async (t) => {
  const settings = { POSTERN_DATA_DIR: await temporaryDirectory(t), POSTERN_MTA_PORT: 'smtp' };
  const error = await t.throwsAsync(startProcess(settings));
  t.deepEqual(error!.message.split('\n').slice(1), [`postern: ${await refusal(t, settings)}`]);
  t.regex(error!.message, /^postern: POSTERN_MTA_PORT: "smtp"/m);
});

test('a port in use is named', async (t) => {
  const taken = createServer();
  await new Promise<void>((resolve) => taken.listen(0, '127.0.0.1', resolve));
  t.teardown(() => taken.close());
  const { port } = taken.address() as { port: number };
  const line = await refusal(t, {
    POSTERN_DATA_DIR: await temporaryDirectory(t),
    POSTERN_HTTP_PORT: String(port),
  });
  t.regex(line, /is in use; stop the program that listens there, or set POSTERN_HTTP_PORT/);
});

test('a data directory that is none is named', async (t) => {
  const file = join(await temporaryDirectory(t), 'file');
  await writeFile(file, '');
  t.regex(await refusal(t, { POSTERN_DATA_DIR: file }), new RegExp(file));
});

test('a data directory where nothing can be made is named, soon', async (t) => {
  t.regex(
    await refusal(t, { POSTERN_DATA_DIR: '/proc/x/data' }),
    /^the directory \/proc\/x\/data cannot be created: .*; .*set POSTERN_DATA_DIR/,
  );
});

test('a database file that is none is named', async (t) => {
  const dataDir = await temporaryDirectory(t);
  await writeFile(join(dataDir, 'postern.sqlite'), 'this is no database, whatever its name says'.repeat(100));
  t.regex(
    await refusal(t, { POSTERN_DATA_DIR: dataDir }),
    /postern\.sqlite cannot be used: .*not a database/,
  );
});

test('a PostgreSQL that does not answer is named, its password is not', async (t) => {
  const line = await refusal(t, {
    POSTERN_DATA_DIR: await temporaryDirectory(t),
    POSTERN_DATABASE_URL: 'postgres://postern:s3cret@127.0.0.1:1/postern',
  });
  t.regex(line, /POSTERN_DATABASE_URL cannot be used: .*ECONNREFUSED/);
  t.notRegex(line, /s3cret/);
});

test('a secret that is not the database’s is named', async (t) => {
  const dataDir = await temporaryDirectory(t);
  const settings = { POSTERN_DATA_DIR: dataDir, POSTERN_SECRET: 'the secret of the first start' };
  const first = await startHere(settings);
  const { json } = createCli(t, settings);
  await json('org create --name Acme');
  await json('domain add example.com --org Acme');
  await first.stop();
  t.regex(
    await refusal(t, { ...settings, POSTERN_SECRET: 'the secret of the second' }),
    /another POSTERN_SECRET/,
  );
  const again = await startHere(settings);
  await again.stop();
});

test('a second server on one data directory is refused; a killed one leaves no lock behind', async (t) => {
  const settings = { POSTERN_DATA_DIR: await temporaryDirectory(t) };
  const first = await startProcess(settings);
  t.teardown(() => first.end('SIGKILL'));
  t.regex(await refusal(t, settings), /another Postern is running on/);
  await first.end('SIGKILL');
  const second = await startHere(settings);
  await second.stop();
});

test('a host that hangs does not stretch a stop', async (t) => {
  const world = await startWorld(t, {
    exchangers: [{ script: { connect: () => 'hang' } }],
    settings: { POSTERN_MTA_TIMEOUTS: 'greeting=1h' },
  });
  await world.send({ to: 'ann@there.invalid' });
  await until(() => world.mx[0]!.connections > 0, { what: 'a host to hang' });
  // It takes 2.5 s. The SMTP client itself would wait for the greeting.
  await world.stop();
  t.is(world.mx[0]!.messages.length, 0);
});

test('a part that cannot stop, because its statement fails, is logged, and the others stop', async (t) => {
  const errors: string[] = [];
  const log = createLog(loadConfig({ POSTERN_LOG_LEVEL: 'silent' }));
  log.error = (_error: object, text?: string) => void errors.push(text!);
  const config = loadConfig({ POSTERN_HTTP_PORT: '0', POSTERN_DATA_DIR: await temporaryDirectory(t) });
  const running = await start(config, { log });
  const db = await openDatabase(config);
  await db.raw('alter table webhook_messages rename to elsewhere');
  await db.destroy();
  await running.stop();
  t.true(errors.includes('a part of the service did not stop in order'), errors.join('\n'));
  // The ports and the database are free: it can start again at once, once its table is back.
  const again = await openDatabase(config);
  await again.raw('alter table elsewhere rename to webhook_messages');
  await again.destroy();
  await (await start(config, { log })).stop();
});
