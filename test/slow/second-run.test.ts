/** The second run of failed tests, with AVA in a tree of its own; and what .ci/run makes of the output of both runs. */
import { execFile } from 'node:child_process';
import { chmod, copyFile, mkdir, symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import test, { type ExecutionContext } from 'ava';
import { temporaryDirectory } from '#lab/evidence.ts';
import { Runner, readRooms } from '../../scripts/test/rooms.ts';
import { judge } from '../../scripts/test/second-run.ts';

const root = join(import.meta.dirname, '../..');

const passes = `test('passes', (t) => t.pass());`;
const fails = (title: string) => `test('${title}', (t) => t.fail());`;
const failsOnce = (title: string, marker: string) =>
  `test('${title}', (t) => {
    const isFirst = !existsSync('${marker}');
    writeFileSync('${marker}', '');
    t.false(isFirst);
  });`;

/** Room by room, the tests of each file. */
async function judgeRooms(t: ExecutionContext, rooms: Record<string, Record<string, string>>) {
  const directory = await temporaryDirectory(t);
  await mkdir(join(directory, 'test'));
  await writeFile(join(directory, 'package.json'), '{ "type": "module" }');
  await copyFile(join(root, 'ava.config.js'), join(directory, 'ava.config.js'));
  await symlink(join(root, 'node_modules'), join(directory, 'node_modules'));
  await symlink(join(root, 'test/lab'), join(directory, 'test/lab'));
  for (const [room, files] of Object.entries(rooms)) {
    await mkdir(join(directory, 'test', room));
    for (const [name, body] of Object.entries(files)) {
      const head = `import { existsSync, writeFileSync } from 'node:fs';\nimport test from 'ava';\n`;
      await writeFile(join(directory, 'test', room, `${name}.test.ts`), head + body);
    }
  }
  const { signal } = new AbortController();
  const countsFile = join(directory, 'counts.json');
  const runner = new Runner({ root: directory, env: process.env, countsFile, interrupted: signal });
  // Without the tests of test/lab.
  const all = (await readRooms(join(directory, 'test'))).filter(({ name }) => name in rooms);
  const { counts } = await runner.runRooms(all, [], 'ignore');
  const again: string[][] = [];
  const judged = await judge(counts!, all, (some, args) => {
    if (!args.some((arg) => arg.startsWith('--match'))) again.push(some.map(({ name }) => name));
    return runner.runRooms(some, args, 'ignore');
  });
  return { ...judged, again };
}

test('a test that passes the second time is unstable; one that fails again has failed', async (t) => {
  const judged = await judgeRooms(t, {
    one: {
      calm: passes,
      shaky: `${failsOnce('shakes', 'first')}\n${passes.replace('passes', 'passes too')}`,
    },
    two: { wrong: fails('is wrong'), right: passes },
  });
  t.deepEqual(
    judged.again.map((names) => names.sort()),
    [['one-shaky', 'two-wrong']],
    'only their files ran again',
  );
  t.deepEqual(
    judged.unstable.map(({ name }) => name),
    ['one › shakes'],
  );
  t.deepEqual(judged.failedTests, ['two › is wrong']);
  t.deepEqual([judged.passed, judged.failed], [4, 1]);
});

test('three tests may be unstable, a fourth failure is a fault', async (t) => {
  const shaky = (count: number) =>
    Array.from({ length: count }, (_, at) => failsOnce(`shakes ${at}`, `m${at}`));
  const three = await judgeRooms(t, { one: { shaky: shaky(3).join('\n') } });
  t.deepEqual([three.passed, three.failed, three.unstable.length], [3, 0, 3]);
  const four = await judgeRooms(t, { one: { shaky: shaky(4).join('\n'), calm: passes } });
  t.deepEqual([four.passed, four.failed, four.unstable.length, four.again], [1, 4, 0, []]);
  t.is(four.failedTests.length, 4);
});

test('a test that fails only in the second run has failed', async (t) => {
  const failsLater = `test('fails later', (t) => {
    const isFirst = !existsSync('later');
    writeFileSync('later', '');
    t.true(isFirst);
  });`;
  const judged = await judgeRooms(t, { one: { shaky: `${failsOnce('shakes', 'first')}\n${failsLater}` } });
  t.deepEqual([judged.passed, judged.failed, judged.unstable.length], [1, 1, 1]);
  t.regex(judged.failedTests[0]!, /› fails later$/);
});

test('a process that crashes, a hook that fails and a second run that crashes are never put down to chance', async (t) => {
  const crashesOnce = `if (!existsSync('crashed')) { writeFileSync('crashed', ''); process.exit(3); }\n`;
  const inTest = `test('ends the process', () => { ${crashesOnce} });`;
  const crashesLater = `if (existsSync('first')) process.exit(3);\n${failsOnce('shakes', 'first')}`;
  const hook = `test.before(() => { if (!existsSync('hooked')) { writeFileSync('hooked', ''); throw new Error(); } });`;
  for (const body of [crashesOnce + passes, inTest + passes, crashesLater, `${hook}\n${passes}`]) {
    const judged = await judgeRooms(t, { one: { body, calm: passes.replace('passes', 'is calm') } });
    t.true(judged.failed > 0, body);
    t.deepEqual(judged.unstable, [], body);
  }
});

/** `outputs`: what `npm run test` and `npm run test:slow` print. */
async function runCi(t: ExecutionContext, outputs: [string, string]) {
  const directory = await temporaryDirectory(t);
  for (const name of ['.ci', 'bin']) await mkdir(join(directory, name));
  await copyFile(join(root, '.ci/run'), join(directory, '.ci/run'));
  await writeFile(join(directory, 'test'), outputs[0]);
  await writeFile(join(directory, 'test:slow'), outputs[1]);
  const npm = `#!/bin/sh\n[ -f "$2" ] || exit 0\ncat "$2"\n! grep -q '^failed: ' "$2" && grep -q passed, "$2"\n`;
  await writeFile(join(directory, 'bin/npm'), npm);
  await writeFile(join(directory, 'bin/apt-get'), '#!/bin/sh\n');
  for (const name of ['npm', 'apt-get']) await chmod(join(directory, 'bin', name), 0o755);
  const env = { ...process.env, PATH: `${join(directory, 'bin')}:${process.env.PATH}` };
  return new Promise<{ code: number; lines: string[] }>((resolve) => {
    execFile('bash', [join(directory, '.ci/run')], { env }, (error, stdout) => {
      const all = stdout.trimEnd().split('\n');
      resolve({
        code: Number(error?.code ?? 0),
        lines: all.slice(outputs.join('').trimEnd().split('\n').length),
      });
    });
  });
}

const unstable = (name: string) => `unstable: ${name}\n  evidence: /there/${name}\n`;

test('CI allows three unstable tests in both runs together', async (t) => {
  const three = await runCi(t, [
    `${unstable('a')}7 passed, 0 failed\n`,
    `${unstable('b') + unstable('c')}5 passed, 0 failed\n`,
  ]);
  t.is(three.code, 0);
  t.is(three.lines.at(-1), '12 passed, 0 failed');
  t.deepEqual(three.lines.slice(0, 2), ['unstable: a', '  evidence: /there/a']);

  const four = await runCi(t, [
    `${unstable('a') + unstable('b')}7 passed, 0 failed\n`,
    `${unstable('c') + unstable('d')}5 passed, 0 failed\n`,
  ]);
  t.is(four.code, 1);
  t.is(four.lines.at(-1), '8 passed, 4 failed');
  t.true(four.lines.includes('failed: d'));

  const one = await runCi(t, [`${unstable('a')}failed: b\n7 passed, 1 failed\n`, '5 passed, 0 failed\n']);
  t.is(one.code, 1);
  t.deepEqual(one.lines, ['unstable: a', '  evidence: /there/a', 'failed: b', '12 passed, 1 failed']);
});

test('CI refuses a run without a count, and passes one without failures', async (t) => {
  const cut = await runCi(t, ['nothing\n', '5 passed, 0 failed\n']);
  t.deepEqual([cut.code, cut.lines.at(-1)], [1, '5 passed, 1 failed']);
  const good = await runCi(t, ['7 passed, 0 failed\n', '5 passed, 0 failed\n']);
  t.deepEqual([good.code, good.lines], [0, ['12 passed, 0 failed']]);
});
