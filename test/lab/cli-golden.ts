/**
 * The golden output of commands, on a terminal of 80 columns and in a pipe: test/fixtures/cli/NAME.txt. Ids, times and
 * durations are replaced by others of the same width. `UPDATE_GOLDEN=1` writes the files anew.
 */
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { stripVTControlCharacters } from 'node:util';
import type { ExecutionContext } from 'ava';
import type { createCli } from './cli.ts';

const folder = join(import.meta.dirname, '../fixtures/cli');

type Cli = Pick<ReturnType<typeof createCli>, 'cli' | 'onTerminal'>;

/** Each element is a command; one that changes something is run on the terminal first, so its second run shows that too. */
export async function golden(
  t: ExecutionContext,
  { cli, onTerminal }: Cli,
  name: string,
  commands: string[],
  replace: [RegExp, string][] = [],
): Promise<void> {
  const shown: string[] = [];
  for (const command of commands) {
    for (const [where, run] of [
      ['on a terminal', onTerminal],
      ['in a pipe', cli],
    ] as const) {
      const { code, stdout, stderr } = await run('', ...argsOf(command));
      const parts = [stdout.toString(), stderr].map(withoutProgress).filter((part) => part !== '');
      const command80 = command.replace(/\s+/g, ' ');
      shown.push(`$ postern ${command80}  # ${where}, exit code ${code}\n${parts.join('--\n')}`);
    }
  }
  const text = fixed(shown.join('\n'), replace);
  const file = join(folder, `${name}.txt`);
  if (process.env.UPDATE_GOLDEN || !existsSync(file)) {
    mkdirSync(folder, { recursive: true });
    writeFileSync(file, text);
  }
  t.is(text, readFileSync(file, 'utf8'), name);
}

/** Split at spaces, except in double quotes. */
function argsOf(command: string): string[] {
  return [...command.matchAll(/"([^"]*)"|(\S+)/g)].map(([, quoted, plain]) => quoted ?? plain!);
}

/** What is left on the terminal: a line of progress is erased by what comes after it. */
function withoutProgress(text: string): string {
  return text.replace(/[^\n]*\x1b\[K/g, '');
}

/** Without what differs from run to run, such as the widths of columns with times. */
function fixed(text: string, replace: [RegExp, string][]): string {
  let plain = stripVTControlCharacters(text).replaceAll('\r', '');
  for (const [from, to] of replace) plain = plain.replaceAll(from, to);
  return plain
    .replace(/\b[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{12}\b/g, (id) =>
      id.replace(/[0-9a-f]/g, 'x'),
    )
    .replace(/\b(?=[0-9a-f]*\d)[0-9a-f]{12}\b/g, 'x'.repeat(12))
    .replace(/\b[\w-]{32}@mail\.postern\.invalid/g, `${'x'.repeat(32)}@mail.postern.invalid`)
    .replace(/\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z/g, '2026-01-01T00:00:00.000Z')
    .replace(/\d{4}-\d\d-\d\d \d\d:\d\d:\d\d/g, '2026-01-01 00:00:00')
    .replace(/\b\d\d:\d\d:\d\d\.\d{3}\b/g, '00:00:00.000')
    .replace(/\b(due|since|at|until) \d\d:\d\d\b/g, '$1 00:00')
    .replace(/\b(now|\d+(\.\d)? (ms|s|m) ago)(?=\)|\s|;|$)/gm, 'AGO')
    .replace(/\bin \d+ [smhd]( \d+ [smh])?\b/g, 'in TIME')
    .replace(/ {2,}/g, '  ');
}
