/** The help, the examples and the manual pages, all from the commands themselves. */
import { spawnSync } from 'node:child_process';
import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { PassThrough } from 'node:stream';
import test from 'ava';
import { examples } from '#cli/args/examples.ts';
import { type CommandProcess, createCommandContext } from '#cli/command-context.ts';
import { commandTable, createProgram, leaves } from '#cli/commands.ts';
import { createCli, startCli } from '#lab/cli.ts';
import { golden } from '#lab/cli-golden.ts';
import { temporaryDirectory } from '#lab/evidence.ts';
import { testWithProgram } from '#lab/needing.ts';

/** The words of an example, as a shell splits them, without redirections. */
function wordsOf(line: string): string[] {
  const [command = ''] = line.split(' > ');
  return (command.match(/'[^']*'|\S+/g) ?? []).map((word) => word.replaceAll("'", ''));
}

test('every example is a command line that is understood, and every command has one', async (t) => {
  const { env } = await startCli(t);
  const quiet = {
    env,
    stdin: new PassThrough(),
    stdout: new PassThrough(),
    stderr: new PassThrough(),
    once() {},
  };
  const context = createCommandContext(quiet as unknown as CommandProcess);
  t.teardown(() => context.close());
  for (const { line } of examples) {
    const program = await createProgram(context, wordsOf(line));
    let isRun = false;
    for (const leaf of leaves(program))
      leaf.action(() => {
        isRun = true;
      });
    await t.notThrowsAsync(program.parseAsync(wordsOf(line), { from: 'user' }), line);
    t.true(isRun, line);
  }
  const commands = (await commandTable()).map(({ command }) => command.replace(/^postern /, ''));
  const without = commands.filter((command) => {
    const [path] = /^[a-z][a-z\d-]*( [a-z][a-z\d-]*)?(?= |$)/.exec(command)!;
    return !examples.some(({ line }) => line === path || line.startsWith(`${path} `));
  });
  t.deepEqual(without, []);
});

test('the help fits a terminal of 80 columns, and no word of it is broken', async (t) => {
  const { cli, onTerminal } = createCli(t, { POSTERN_DATA_DIR: await temporaryDirectory(t) });
  const table = await commandTable();
  const paths = new Set([
    '',
    ...table.map(({ command }) => /^postern ((?:[a-z][a-z\d-]* ?)+)/.exec(command)![1]!.trim()),
  ]);
  for (const { command, description } of table) {
    const path = [...paths].findLast((one) => one !== '' && command.startsWith(`postern ${one}`))!;
    const { stdout } = await onTerminal(`${path} --help`);
    const lines = stdout.toString().split('\n');
    t.deepEqual(
      lines.filter((line) => line.length > 80 && !/^\s*\S+$|^Usage:/.test(line)),
      [],
      path,
    );
    t.true(lines.join(' ').replace(/\s+/g, ' ').includes(description.replace(/\s+/g, ' ')), path);
    t.true(stdout.toString().includes('Examples:'), path);
  }
  await golden(t, { cli, onTerminal }, 'help');
});

test('man: a page for each command, with all of its options; written for everybody to read', async (t) => {
  const { cli, json, refusal } = createCli(t, { POSTERN_DATA_DIR: await temporaryDirectory(t) });
  const into = join(await temporaryDirectory(t), 'man1');
  const { written } = await json('man --write', into);
  const files = await readdir(into);
  t.is(files.length, written);
  const pages = new Map<string, string>();
  for (const file of files) pages.set(file, await readFile(join(into, file), 'utf8'));
  for (const { command } of await commandTable()) {
    const [, group] = command.split(' ') as [string, string];
    const page = pages.get(`postern-${group}.1`) ?? '';
    t.truthy(page, command);
    for (const [option] of command.matchAll(/--[a-z-]+/g))
      t.true(page.includes(option.replaceAll('-', '\\-')), command);
  }
  t.true(pages.get('postern.1')!.includes('.SH UPKEEP'));
  t.is((await cli('man queue')).stdout.toString(), pages.get('postern-queue.1') ?? '');
  t.regex(await refusal(1, 'man nonsense'), /there is no command "nonsense"/);
  t.regex(
    await refusal(1, 'man --write', join(into, 'postern.1')),
    /cannot be written to .*; give a directory/,
  );
});

const hasMan = spawnSync('man', ['--version']).status === 0 && spawnSync('groff', ['--version']).status === 0;

testWithProgram(hasMan)('man shows the pages without a warning', async (t) => {
  const { cli } = createCli(t, { POSTERN_DATA_DIR: await temporaryDirectory(t) });
  for (const name of ['', 'queue', 'send', 'logs']) {
    const source = (await cli(`man ${name}`)).stdout;
    const { stderr, stdout } = spawnSync('groff', ['-man', '-Tutf8', '-ww'], { input: source });
    t.is(stderr.toString(), '', name);
    // Bold text is written twice, with a backspace in between.
    t.true(stdout.toString().replace(/.\x08/g, '').includes('EXAMPLES'));
  }
});
