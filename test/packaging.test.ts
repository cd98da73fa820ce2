/** What an operator copies says nothing that the program does not know, and the image is made of what it needs. */
import { execFile } from 'node:child_process';
import { existsSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import test from 'ava';
import { inContext, readEnv, readStages } from '../scripts/peers/dockerfile.ts';
import { loadConfig, settings } from '../src/config.ts';

const root = join(import.meta.dirname, '..');
const read = (path: string) => readFile(join(root, path), 'utf8');
const run = promisify(execFile);

for (const path of [
  'Dockerfile',
  'config/compose.yaml',
  'config/postern.env',
  'config/postern.service',
  'config/postern-command',
]) {
  test(`${path}: settings are called as they are`, async (t) => {
    const names = [...(await read(path)).matchAll(/\bPOSTERN_\w+/g)].map(([name]) => name);
    t.true(names.length > 0);
    const known = [...settings.map(({ name }) => name), 'POSTERN_ENV_FILE', 'POSTERN_ENV_FD'];
    t.deepEqual(
      names.filter((name) => !known.includes(name)),
      [],
    );
  });
}

test('postern.env can be read as it stands, with and without its comments, by a shell too', async (t) => {
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

test('the image runs as a user without rights, and asks itself whether it is well', async (t) => {
  const last = readStages(await read('Dockerfile')).at(-1)!;
  const given = (instruction: string) => last.steps.filter((step) => step.instruction === instruction);
  t.is(given('USER').at(-1)!.rest, 'node');
  t.regex(String(given('HEALTHCHECK')[0]!.rest), /\/health\/ready/);
  const env = readEnv(String(given('ENV')[0]!.rest), { PATH: '/usr/bin' });
  t.is(env.PATH, '/postern/scripts:/usr/bin');
  const { dataDir, httpHost } = loadConfig(env);
  t.deepEqual([dataDir, httpHost], [given('VOLUME')[0]!.rest, '0.0.0.0']);
});

test('what the image is made of is there, and goes into it; secrets and data do not', async (t) => {
  const goes = inContext(await read('.dockerignore'));
  for (const { steps } of readStages(await read('Dockerfile'))) {
    for (const { instruction, flags, rest } of steps) {
      if (instruction !== 'COPY' || flags.from) continue;
      for (const source of String(rest).split(' ').slice(0, -1)) {
        t.true(existsSync(join(root, source)), source);
        t.true(goes(source), source);
      }
    }
  }
  for (const path of ['config/postern.env', 'src/main.ts', 'scripts']) t.true(goes(path), path);
  for (const path of ['config/.env', 'data', 'node_modules', '.git', 'test', 'scripts/bench.ts'])
    t.false(goes(path), path);
});

test('a Dockerfile is read as stages of steps; what is not understood is refused', (t) => {
  const text =
    '# one\nFROM a AS b\nENV A=1 \\\n    PATH=/c:$PATH\n\nFROM d\nCOPY --from=b --chown=x:y e f\nCMD ["g", "h"]\n';
  t.deepEqual(readStages(text), [
    { image: 'a', name: 'b', steps: [{ instruction: 'ENV', flags: {}, rest: 'A=1      PATH=/c:$PATH' }] },
    {
      image: 'd',
      name: null,
      steps: [
        { instruction: 'COPY', flags: { from: 'b', chown: 'x:y' }, rest: 'e f' },
        { instruction: 'CMD', flags: {}, rest: ['g', 'h'] },
      ],
    },
  ]);
  t.deepEqual(readEnv('A=1      PATH=/c:$PATH', { PATH: '/d' }), { A: '1', PATH: '/c:/d' });
  t.throws(() => readStages('FROM a\nONBUILD RUN b'), { message: /ONBUILD/ });
  t.throws(() => readStages('RUN a'), { message: /before its first FROM/ });
});
