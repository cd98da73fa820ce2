/** `postern leftovers`: what `upgrade` and `restore` keep so that a person can go back, named and removed on request. */
import { existsSync, readdirSync, rmSync, statSync } from 'node:fs';
import { join } from 'node:path';
import type { Command } from 'commander';
import { addConsent, type Consent, isWanted } from '#cli/args/consent.ts';
import type { CommandContext } from '#cli/command-context.ts';
import { replacedPrograms } from '#cli/upgrade/installed-program.ts';
import { iso } from '#platform/base/clock.ts';

interface Leftover {
  path: string;
  what: string;
  bytes: number;
  at: number;
}

/** Files of the data directory, by their names. A restore that runs has a directory too; one that was killed has left it. */
const kinds: [pattern: RegExp, what: string, minAgeMs: number][] = [
  [/^before-.+\.sqlite(\.secret)?$/, 'the database before an upgrade', 0],
  [/^postern\.sqlite\.replaced-/, 'the database that a restore set aside', 0],
  [/^restore-\w{6}$/, 'an interrupted restore', 86_400_000],
];

export function leftoversCommand(program: Command, context: CommandContext): void {
  addConsent(
    program
      .command('leftovers')
      .description('List what `upgrade` and `restore` keep so that you can go back, or remove it.')
      .option('--remove', 'remove all of it'),
  ).action((options: Consent & { remove?: true }) => leftovers(context, options));
}

async function leftovers(context: CommandContext, { remove, ...consent }: Consent & { remove?: true }) {
  const { out, config, now } = context;
  const found = [...programs(), ...filesIn(config().dataDir, now())];
  if (!remove) {
    out.print(
      found.map(({ at, ...one }) => ({ ...one, at: iso(at) })),
      {
        head: ['PATH', 'MB', 'SINCE', 'WHAT'],
        rows: found.map(({ path, bytes, at, what }) => [
          path,
          megabytes(bytes),
          { time: at, past: true },
          what,
        ]),
        empty: 'Neither upgrade nor restore has left anything.',
      },
    );
    return;
  }
  const paths = found.map(({ path }) => path);
  const bytes = found.reduce((sum, one) => sum + one.bytes, 0);
  const fields = { remove: paths.join(' ') || null, MB: megabytes(bytes) };
  const question = `remove ${paths.length} files and directories (${megabytes(bytes)} MB)`;
  const effect = { question, fields, document: { remove: paths, bytes }, isForGood: true };
  if (paths.length > 0 && !(await isWanted(context, effect, consent))) return;
  for (const path of paths) rmSync(path, { recursive: true, force: true });
  out.print(
    { removed: paths, bytes },
    { fields: { removed: paths.join(' ') || null, MB: megabytes(bytes) } },
  );
}

const megabytes = (bytes: number) => Math.ceil(bytes / 2 ** 20);

function programs(): Leftover[] {
  return replacedPrograms
    .filter(({ path }) => existsSync(path))
    .map(({ path, what }) => described(path, what));
}

function filesIn(dataDir: string, now: number): Leftover[] {
  if (!existsSync(dataDir)) return [];
  return readdirSync(dataDir).flatMap((name) => {
    const kind = kinds.find(([pattern]) => pattern.test(name));
    if (!kind) return [];
    const [, what, minAgeMs] = kind;
    const one = described(join(dataDir, name), what);
    const age = now - one.at;
    return age >= minAgeMs || age < 0 ? [one] : [];
  });
}

function described(path: string, what: string): Leftover {
  const found = statSync(path);
  const bytes = found.isDirectory() ? sizeOf(path) : found.size;
  return { path, what, bytes, at: Math.round(found.mtimeMs) };
}

function sizeOf(directory: string): number {
  return readdirSync(directory, { withFileTypes: true, recursive: true })
    .filter((entry) => entry.isFile())
    .reduce((sum, { parentPath, name }) => sum + statSync(join(parentPath, name)).size, 0);
}
