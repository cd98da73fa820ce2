/**
 * The settings file of a service: the program reads it as systemd and Docker do, or refuses it; and a command without any
 * setting acts on the service of its machine, whatever directory it is given in.
 */
import { execFileSync } from 'node:child_process';
import { chown, cp, mkdir, readdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { parseEnv } from 'node:util';
import test from 'ava';
import { createCli, makeInstallation, root, run } from '#lab/cli.ts';
import { temporaryDirectory } from '#lab/evidence.ts';
import { parseEnvFile } from '#platform/settings/env-file.ts';

const read = (text: string) => {
  const { variables, problems } = parseEnvFile(text);
  return { ...Object.fromEntries([...variables].map(([name, { text }]) => [name, text])), faults: problems };
};

test('what is read is what Node reads too; what others read differently is a fault, and no value is told', (t) => {
  const same = [
    '# a comment; and "quotes\nA=1\r\nB=\n\n  C = no name',
    'A=postgres://u:p@h/d?x=1&sslmode=require;(y)|*~\nB=30s 2m  5m   \nC=\'$HOME `x` #no "comment"\'',
    'A="two words"\nB="a # b"\nA=again',
  ];
  const [first, ...others] = same;
  t.deepEqual(read(first!), {
    A: '1',
    B: '',
    faults: [{ line: 5, message: 'this line is not NAME=VALUE; correct it, or put a # before it' }],
  });
  for (const text of others) t.deepEqual(read(text), { ...parseEnv(text), faults: [] } as never);
  for (const [line, why] of [
    ['A=se\\cret', /^A: .* a \\ differently; put the value in single quotes$/],
    ['A=se$cret', /^A: .* a \$ differently/],
    ['A=sec"ret"', /^A: .* a " differently/],
    ['A=secret # of mine', /^A: .*Docker as the start of a comment/],
    ['A="se$cret"', /^A: Docker expands a \$ as a variable/],
    ["A='se\\cret'", /^A: .* use a value without/],
    ["A='secret", /^A: the quote ' is not closed/],
    ['A="sec"ret', /^A: there is text after the quoted value/],
    ['export A=secret', /not NAME=VALUE/],
    ['; secret', /not NAME=VALUE/],
    ['# secret \\', /a comment ends in \\/],
  ] as const) {
    const { faults, ...rest } = read(`B=1\n${line}`);
    t.deepEqual(rest, { B: '1' }, line);
    t.is(faults.length, 1, line);
    t.is(faults[0]!.line, 2);
    t.regex(faults[0]!.message, why);
    t.notRegex(faults[0]!.message, /cret/);
  }
});

test('by POSTERN_ENV_FILE: with an & in it, told by its place, under the environment, over POSTERN_CONFIG', async (t) => {
  const place = await temporaryDirectory(t);
  const file = join(place, 'postern.env');
  const config = join(place, 'postern.jsonc');
  await writeFile(
    config,
    '{ "POSTERN_MTA_PORT": 26, "POSTERN_HTTP_PORT": 81, "POSTERN_SMTP_CONNECTIONS": 7 }',
  );
  const url = 'postgres://u:pass@127.0.0.1:1/wanted?sslmode=disable&application_name=x';
  await writeFile(
    file,
    `POSTERN_DATABASE_URL=${url}\nPOSTERN_HTTP_PORT=82\nPOSTERN_MTA_PORT=27\nPGPASSWORD=x\nPOSTERN_CONFIG=${config}\n`,
  );
  const { json } = createCli(t, { POSTERN_ENV_FILE: file, POSTERN_MTA_PORT: '28' });
  const shown: { name: string; value: string | number; source: string }[] = await json('config');
  const given = shown.filter(({ source }) => source !== 'default');
  t.deepEqual(
    given.map(({ name, value, source }) => [name, value, source]),
    [
      ['POSTERN_DATABASE_URL', url.replace('pass', '***'), `file ${file}`],
      ['POSTERN_HOSTNAME', 'mail.postern.invalid', 'environment'],
      ['POSTERN_HTTP_PORT', 82, `file ${file}`],
      ['POSTERN_MTA_PORT', 28, 'environment'],
      ['POSTERN_SMTP_CONNECTIONS', 7, `file ${config}`],
    ],
  );
  await writeFile(file, 'POSTERN_DATA_DIR="$HOME"\nPOSTERN_HTP_PORT=1\nPOSTERN_MTA_PORT=smtp\n');
  const bad = await createCli(t, { POSTERN_ENV_FILE: file }).cli('org list');
  t.is(bad.code, 1);
  t.deepEqual(
    bad.stderr
      .trimEnd()
      .split('\n')
      .map((line) => line.match(/^postern: (\w+): .*, line (\d)\)$/)?.slice(1)),
    [
      ['POSTERN_DATA_DIR', '1'],
      ['POSTERN_HTP_PORT', '2'],
      ['POSTERN_MTA_PORT', '3'],
    ],
    bad.stderr,
  );
});

test('config/postern.env is read as it stands, and with all that it offers', async (t) => {
  const text = await readFile(join(root, 'config/postern.env'), 'utf8');
  for (const each of [text, text.replaceAll(/^#(?=[A-Z_]+=)/gm, '')])
    t.deepEqual(read(each), { ...parseEnv(each), faults: [] } as never);
});

/** Mounts over /etc, /opt and /var/lib that nobody else sees: for root, where a container allows it. */
const inPlaceOf = ['/etc', '/opt', '/var/lib'];
const setUp = `for place in ${inPlaceOf.join(' ')}; do mount --bind "$1$place" $place || exit 99; done
  mount --bind "$2" /opt/postern || exit 99; shift 2`;

function canMount(): boolean {
  try {
    execFileSync('unshare', ['-m', 'sh', '-c', 'mount --bind /tmp /opt && runuser --version'], {
      stdio: 'ignore',
    });
    return process.getuid?.() === 0;
  } catch {
    return false;
  }
}

(canMount() ? test : test.skip)(
  'a command without a setting acts on the service of its machine, as its user, or says how',
  async (t) => {
    const place = await temporaryDirectory(t);
    for (const each of inPlaceOf) await mkdir(join(place, each), { recursive: true });
    await mkdir(join(place, 'opt/postern'));
    for (const each of ['passwd', 'group', 'pam.d', 'security', 'ld.so.cache', 'login.defs', 'nsswitch.conf'])
      await cp(join('/etc', each), join(place, 'etc', each), { recursive: true }).catch(() => {});
    await writeFile(join(place, 'etc/passwd'), 'postern:x:4321:4321::/:/bin/sh\n', { flag: 'a' });
    await writeFile(join(place, 'etc/group'), 'postern:x:4321:\n', { flag: 'a' });
    await mkdir(join(place, 'etc/postern'));
    const settings = 'POSTERN_SHAPING_FILE=/etc/a&b.jsonc\n';
    await writeFile(join(place, 'etc/postern/postern.env'), settings, { mode: 0o600 });
    const dataDir = join(place, 'var/lib/postern');
    await makeInstallation(dataDir);
    for (const name of ['', ...(await readdir(dataDir))]) await chown(join(dataDir, name), 4321, 4321);
    const there = async (...command: string[]) => {
      const args = ['-m', 'sh', '-c', `${setUp}; cd /; exec "$@"`, 'sh', place, root, ...command];
      const { code, stdout, stderr } = await run('unshare', args, { PATH: process.env.PATH });
      return { code, stdout: stdout.toString(), stderr };
    };
    const command = ['sh', '/opt/postern/config/postern-command'];

    const made = await there(...command, 'org', 'create', '--name', 'Acme', '--json');
    t.like(made, { code: 0, stderr: '' });
    const shown = JSON.parse((await there(...command, 'config', '--json')).stdout);
    const shownOf = (wanted: string) => shown.find(({ name }: { name: string }) => name === wanted).value;
    t.is(shownOf('POSTERN_DATA_DIR'), '/var/lib/postern');
    t.is(shownOf('POSTERN_SHAPING_FILE'), '/etc/a&b.jsonc');

    const direct = '/opt/postern/scripts/postern';
    const asOther =
      /^postern: \/etc\/postern\/postern\.env has the settings of the service .*: run the command as `.*postern/;
    for (const prefix of [[], ['runuser', '-u', 'postern', '--']]) {
      const { code, stdout, stderr } = await there(...prefix, direct, 'org', 'list');
      t.deepEqual([code, stdout], [1, '']);
      t.regex(stderr, asOther);
    }
    await chown(join(place, 'etc/postern/postern.env'), 4321, 4321);
    const own = await there('runuser', '-u', 'postern', '--', direct, 'org', 'list', '--json');
    t.deepEqual(
      JSON.parse(own.stdout).map(({ name }: { name: string }) => name),
      ['Acme'],
      own.stderr,
    );
  },
);
