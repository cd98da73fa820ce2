/**
 * Transcripts of commands, with what each prints and its exit code: test/fixtures/cli/NAME.txt. `$ postern org list  # in a pipe`
 * runs the command; `# on a terminal` gives it one of 80 columns. $ID1 is the first id that was printed, $ID2 the next other
 * one. Ids, times and durations are replaced by others of the same width. UPDATE_GOLDEN=1 writes anew what is below each
 * command, so a new case is a new line: read the diff.
 */
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { stripVTControlCharacters } from 'node:util';
import type { ExecutionContext } from 'ava';
import type { createCli } from './cli.ts';

const folder = join(import.meta.dirname, '../fixtures/cli');

type Cli = Pick<ReturnType<typeof createCli>, 'cli' | 'onTerminal'>;

export async function golden(
  t: ExecutionContext,
  { cli, onTerminal }: Cli,
  name: string,
  replace: [RegExp, string][] = [],
): Promise<void> {
  const file = join(folder, `${name}.txt`);
  const recorded = readFileSync(file, 'utf8');
  const shown: string[] = [];
  const ids = new Set<string>();
  for (const [, command, where] of recorded.matchAll(/^\$ postern (.*?) {2}# (on a terminal|in a pipe)/gm)) {
    const args = argsOf(command!.replace(/\$ID(\d)/g, (_, n) => [...ids][n - 1]!));
    const { code, stdout, stderr } = await (where === 'in a pipe' ? cli : onTerminal)('', ...args);
    const parts = [stdout.toString(), stderr].map(withoutProgress).filter((part) => part !== '');
    for (const [id] of parts.join().matchAll(uuid)) ids.add(id);
    shown.push(`$ postern ${command}  # ${where}, exit code ${code}\n${fixed(parts.join('--\n'), replace)}`);
  }
  const text = shown.join('\n');
  if (process.env.UPDATE_GOLDEN) writeFileSync(file, text);
  t.is(text, readFileSync(file, 'utf8'), name);
}

const uuid = /\b[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{12}\b/g;

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
    .replace(uuid, (id) => id.replace(/[0-9a-f]/g, 'x'))
    .replace(/\b(?=[0-9a-f]*\d)[0-9a-f]{12}\b/g, 'x'.repeat(12))
    .replace(/\b(em(?:_test)?_)[\w-]{43}/g, `$1${'x'.repeat(43)}`)
    .replace(/\bwhsec_[\w+/]{43}=/g, `whsec_${'x'.repeat(43)}=`)
    .replace(/\b[\w-]{32}@mail\.postern\.invalid/g, `${'x'.repeat(32)}@mail.postern.invalid`)
    .replace(/\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z/g, '2026-01-01T00:00:00.000Z')
    .replace(/\d{4}-\d\d-\d\d \d\d:\d\d:\d\d/g, '2026-01-01 00:00:00')
    .replace(/\b\d\d:\d\d:\d\d\.\d{3}\b/g, '00:00:00.000')
    .replace(/\b(due|since|at|until) \d\d:\d\d\b/g, '$1 00:00')
    .replace(/\b(just now|\d+(\.\d)? (ms|s|minutes) ago)(?=\)|\s|;|$)/gm, 'AGO')
    .replace(/\bin \d+(\.\d)? (s|minutes|hours?|days?)\b( \d+ \w+…?)?/g, 'in TIME')
    .replace(/ {2,}/g, '  ');
}
