/** The files that operators install name only settings that exist, and the image contains what it needs. */
import { execFile } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { chmod, mkdir, readdir, readFile, stat, writeFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { promisify } from 'node:util';
import test from 'ava';
import { insertOrganization } from '#accounts/rows/organizations.ts';
import { createCli, run as runCommand } from '#lab/cli.ts';
import { createMigrated } from '#lab/database/databases.ts';
import { temporaryDirectory } from '#lab/evidence.ts';
import { openDatabase } from '#platform/database/engine/open.ts';
import { loadConfig, settings } from '#platform/settings/config.ts';

const root = join(import.meta.dirname, '../..');
const read = (path: string) => readFile(join(root, path), 'utf8');
const run = promisify(execFile);

for (const path of [
  'Dockerfile',
  'config/compose.yaml',
  'config/postern.env',
  'config/postern.service',
  'config/postern-command',
]) {
  test(`${path} names only settings that exist`, async (t) => {
    const names = [...(await read(path)).matchAll(/\bPOSTERN_\w+/g)].map(([name]) => name);
    t.true(names.length > 0);
    const known = [...settings.map(({ name }) => name), 'POSTERN_ENV_FILE', 'POSTERN_ENV_FD'];
    t.deepEqual(
      names.filter((name) => !known.includes(name)),
      [],
    );
  });
}

test('postern.env is valid as shipped and with its commented lines enabled, also for a shell', async (t) => {
  const text = await read('config/postern.env');
  const { stdout } = await run('sh', ['-c', 'set -a; . "$1"; env', 'sh', join(root, 'config/postern.env')], {
    env: { PATH: process.env.PATH },
  });
  const sourced = Object.fromEntries(stdout.split('\n').map((line) => line.split('=', 2)));
  t.is(loadConfig(sourced).hostname, 'mail.example.org');
  t.is(loadConfig(sourced).inboundPort, 25);
  const offered = [...text.matchAll(/^#?(POSTERN_\w+)=(.*)$/gm)];
  t.true(offered.length > 8);
  for (const [, name, value] of offered) t.notThrows(() => loadConfig({ [name!]: value! }), name);
});

const asRoot = process.getuid?.() === 0 ? test : test.skip;

asRoot(
  'the installed `postern` opens FILE arguments as the caller and runs as the service user',
  async (t) => {
    const [service, callers] = [await temporaryDirectory(t), await temporaryDirectory(t)];
    await chmod(service, 0o711);
    const dataDir = join(service, 'data');
    await mkdir(dataDir);
    const { url } = await createMigrated('sqlite', dataDir);
    const db = await openDatabase({ dataDir, databaseUrl: url });
    await insertOrganization(db, 'Acme', Date.now());
    await db.destroy();
    await writeFile(join(dataDir, 'secret'), `${'s'.repeat(43)}\n`);
    await run('chown', ['-R', 'nobody', dataDir]);
    const env = { PATH: process.env.PATH };
    await writeFile(
      join(service, 'postern.env'),
      `POSTERN_HOSTNAME=mail.postern.invalid\nPOSTERN_DATA_DIR=${dataDir}\n`,
    );
    const installed = (await read('config/postern-command'))
      .replaceAll('/var/lib/postern', dataDir)
      .replaceAll('/etc/postern', service)
      .replaceAll('/opt/postern', root)
      .replaceAll('-u postern', '-u nobody');
    const command = join(service, 'postern');
    await writeFile(command, installed, { mode: 0o755 });
    const postern = (...args: string[]) => runCommand(command, args, env);

    // Only the caller can read this directory.
    const list = join(callers, 'list.csv');
    await writeFile(list, 'ann@there.invalid\nben@there.invalid\n', { mode: 0o600 });
    const imported = await postern('suppression', 'import', '--org', 'Acme', list);
    t.is(imported.code, 0, imported.stderr);
    t.regex(imported.stdout.toString(), /^added\t2\n/);
    const missing = await postern('suppression', 'import', join(callers, 'none.csv'), '--org', 'Acme');
    t.is(missing.code, 1);
    t.regex(missing.stderr, /^postern: \S+none\.csv cannot be read; give a readable file\n$/);

    const file = join(callers, 'backup.sqlite');
    const made = await postern('backup', file);
    t.is(made.code, 0, made.stderr);
    const { size, uid, mode } = await stat(file);
    t.is(made.stdout.toString(), `backup\t${file}\nbytes\t${size}\nsecret\t${file}.secret\n`);
    t.deepEqual([uid, mode & 0o777], [0, 0o600]);
    t.is(await readFile(`${file}.secret`, 'utf8'), `${'s'.repeat(43)}\n`);
    const again = await postern('backup', file);
    t.deepEqual([again.code, /already exists; --force replaces it/.test(again.stderr)], [1, true]);
    t.is((await postern('backup', '--force', '--no-secret', file)).code, 0);
    t.is((await postern('backup', join(callers, 'no/such'))).code, 1);
    t.deepEqual((await readdir(callers)).sort(), ['backup.sqlite', 'backup.sqlite.secret', 'list.csv']);
    t.deepEqual(
      (await readdir(dataDir)).filter((name) => name.startsWith('backup')),
      [],
    );

    // The backup is complete.
    const copy = await temporaryDirectory(t);
    await run('cp', [file, join(copy, 'postern.sqlite')]);
    const { json, refusal } = createCli(t, { POSTERN_DATA_DIR: copy });
    t.is((await json('suppression list --org Acme')).length, 2);
    t.regex(await refusal(2, 'backup - --json'), /the backup itself goes to standard output/);
  },
);

test('the image runs as an unprivileged user, with the settings that its volume and its health check need', async (t) => {
  const [, image = ''] = (await read('Dockerfile')).split(/^FROM \$BASE_IMAGE/m);
  t.regex(image, /^USER postern$/m);
  const env = Object.fromEntries(
    [...image.matchAll(/(POSTERN_\w+)=(\S+)/g)].map(([, name, value]) => [name, value]),
  );
  const { dataDir, httpHost, httpPort } = loadConfig(env);
  t.deepEqual([dataDir, httpHost, httpPort], [/^VOLUME (.*)$/m.exec(image)![1], '0.0.0.0', 8080]);
  t.regex(image, /^HEALTHCHECK .* CMD \["\/postern\/scripts\/healthy"\]$/m);
  t.regex(image, /^EXPOSE 8080 80 443 25 465 587$/m);
});

test('the health check of the image says whether the server accepts mail', async (t) => {
  let status = 200;
  const server = createServer((_, response) => void response.writeHead(status).end('{}'));
  await once(server.listen(0, '127.0.0.1'), 'listening');
  const { port } = server.address() as AddressInfo;
  const check = () =>
    runCommand(join(root, 'scripts/healthy'), [], {
      PATH: process.env.PATH,
      POSTERN_HTTP_PORT: String(port),
    });
  t.is((await check()).code, 0);
  status = 503;
  t.is((await check()).code, 1);
  server.close();
  server.closeAllConnections();
  t.is((await check()).code, 1);
});

test('the image can be built with Docker 20.10 and buildah 1.28, which Debian 12 has', async (t) => {
  const dockerfile = await read('Dockerfile');
  t.notRegex(dockerfile, /^#\s*syntax\s*=/m);
  t.notRegex(dockerfile, /<<-?["']?\w/, 'here-documents need BuildKit');
  t.notRegex(dockerfile, /^(?:COPY|RUN|ADD)\s+--(?!chown=|from=)/m);
});

test('the build context has every file that the image copies', async (t) => {
  const [dockerfile, context] = [await read('Dockerfile'), await read('.dockerignore')];
  const copied = [...dockerfile.matchAll(/^COPY (?:--chown=\S+ )?(?!--from)(.*) \S+$/gm)].flatMap(
    ([, files]) => files!.split(' '),
  );
  t.true(copied.length > 10);
  for (const file of copied) {
    t.true(existsSync(join(root, file)), file);
    t.true(context.split('\n').includes(`!${file}`), file);
  }
});
