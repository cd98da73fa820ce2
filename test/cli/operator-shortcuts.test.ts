/** What an operator types every day: `open`, `use`, `bugreport`, `status --watch` and `top`. */
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import test from 'ava';
import { startCli } from '#lab/cli.ts';
import { temporaryDirectory } from '#lab/evidence.ts';
import { until } from '#lab/until.ts';

test('open makes a link for the operator; one without a password gets an invitation', async (t) => {
  const { json, refusal } = await startCli(t);
  t.regex(
    await refusal(1, 'open'),
    /there is no operator; `postern user create --operator --email E` makes one/,
  );
  await json('user create --operator --email ann@example.org');
  t.regex((await json('open')).url, /\/dashboard\/welcome\/\S+$/);
  t.regex(await refusal(1, 'open --email bob@example.org'), /no user with bob@example\.org can sign in/);
});

test('use chooses the organization of later commands, until it chooses none', async (t) => {
  const { json, refusal, acme } = await startCli(t);
  await json('org create --name Other');
  t.regex(
    await refusal(2, 'key list'),
    /there are 2 organizations; give --org ORG, or choose one of .*postern use ORG/,
  );
  t.deepEqual(await json('use Acme'), { organization: { id: acme.id, name: 'Acme' } });
  t.deepEqual(await json('key list'), []);
  t.deepEqual(await json('use --none'), { organization: null });
  await refusal(2, 'key list');
});

test('bugreport is one file with everything but secrets, for its owner only', async (t) => {
  const secret = 'a'.repeat(64);
  const { cli, refusal } = await startCli(t, {
    POSTERN_SECRET: secret,
    POSTERN_DNS_SERVERS: '127.0.0.1:9',
  });
  const file = join(await temporaryDirectory(t), 'report.json');
  t.is((await cli('bugreport', file)).code, 0);
  const text = await readFile(file, 'utf8');
  const report = JSON.parse(text);
  t.truthy(report.doctor.findings.length);
  t.is(report.status.isServed, false);
  t.true(report.settings.some(({ name }: { name: string }) => name === 'POSTERN_HOSTNAME'));
  t.false(text.includes(secret));
  t.regex(await refusal(1, `bugreport ${file}`), /already exists; give another name/);
});

test('status --watch and top print a line each time with --json and --every', async (t) => {
  const { start } = await startCli(t);
  for (const command of [['status', '--watch'], ['top']]) {
    const watch = start(...command, '--every', '1s', '--json');
    const lines = () => watch.stdout().split('\n').slice(0, -1);
    await until(() => lines().length >= 2, { what: () => watch.stdout() + watch.stderr() });
    for (const line of lines()) t.is(JSON.parse(line).isServed, false);
  }
});
