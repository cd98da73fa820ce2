/**
 * `postern backup FILE`: the SQLite database as it is, also while a server runs, and beside it the secret that unlocks it.
 * FILE appears when it is whole: copied, on disk, looked through, its keys opened. The database is not brought up to date
 * for it: the program of an upgrade can back up what it is about to change.
 */
import { createReadStream, existsSync, readFileSync, writeFileSync } from 'node:fs';
import { chmod, mkdtemp, open, rename, rm, stat } from 'node:fs/promises';
import { dirname, join, resolve } from 'node:path';
import { pipeline } from 'node:stream/promises';
import type { Command } from 'commander';
import { createSeal } from '../../accounts/seal.ts';
import { secretFile } from '../../base/secrets.ts';
import type { Config } from '../../config.ts';
import { countSealed } from '../../db/accounts/sealed-columns.ts';
import { copyDatabase, faultOf } from '../../db/admin/sqlite-backup.ts';
import { openDatabase } from '../../db/engine/open.ts';
import type { CommandContext } from '../command-context.ts';
import { Failure } from '../failure.ts';

interface Options {
  force?: true;
  secret: boolean;
}

export function backupCommands(program: Command, context: CommandContext): void {
  program
    .command('backup')
    .description('Back up the SQLite database and the secret; the server may keep running.')
    .argument(
      '<FILE>',
      'file to write; the secret goes to FILE.secret. With -, the database goes to standard output, without the secret',
    )
    .option('--force', 'replace FILE if it exists')
    .option('--no-secret', 'do not copy the secret; DKIM keys in the backup cannot be used without it')
    .action((file: string, options: Options, command: Command) => {
      if (file !== '-') return backUp(context, resolve(file), options);
      const isWanted = !context.out.json && !process.stdout.isTTY;
      if (!isWanted) command.error('error: the backup itself goes to standard output', { exitCode: 2 });
      return writeBackup(context, options);
    });
}

/** To standard output, once it is whole. */
async function writeBackup(context: CommandContext, { secret }: Options): Promise<void> {
  const { dataDir } = requireSqlite(context);
  const workshop = await workshopFor(join(dataDir, 'backup'));
  try {
    await pipeline(createReadStream(await copyTo(workshop, context)), process.stdout);
    if (secret) context.out.warn(advice(null, context.config().secret !== null));
  } finally {
    context.out.progress('');
    await rm(workshop, { recursive: true, force: true });
  }
}

function requireSqlite({ config }: CommandContext): Config {
  if (config().databaseUrl === null) return config();
  throw new Failure(
    'the database is PostgreSQL; back it up with `pg_dump --format=custom --file=FILE "$POSTERN_DATABASE_URL"`, and keep the secret as well',
  );
}

/** The copy, looked through. */
async function copyTo(workshop: string, context: CommandContext): Promise<string> {
  const { out, config } = context;
  const made = join(workshop, 'postern.sqlite');
  await copyDatabase(join(config().dataDir, 'postern.sqlite'), made, {
    onProgress: (share) => out.progress(`${Math.floor(share * 100)} % copied`),
    signal: interrupted(),
  });
  out.progress('checking the copy');
  await examine(context, workshop);
  await chmod(made, 0o600);
  return made;
}

async function backUp(context: CommandContext, file: string, { force, secret }: Options): Promise<void> {
  const { out, config } = context;
  const { dataDir } = requireSqlite(context);
  const beside = secret && config().secret === null ? `${file}.secret` : null;
  for (const each of [file, ...(beside === null ? [] : [beside])]) {
    if (existsSync(each) && !force) throw new Failure(`${each} already exists; --force replaces it`);
  }
  const workshop = await workshopFor(file);
  try {
    const made = await copyTo(workshop, context);
    const { size } = await stat(made);
    if (beside) await copySecret(secretFile(dataDir), beside, workshop);
    await rename(made, file);
    await syncDirectory(dirname(file));
    out.progress('');
    out.print(
      { file, bytes: size, secret: beside },
      {
        facts: [
          ['backup', file],
          ['bytes', size],
          ['secret', beside],
        ],
      },
    );
    out.warn(advice(beside, config().secret !== null));
  } finally {
    out.progress('');
    await rm(workshop, { recursive: true, force: true });
  }
}

/** A directory for the copy while it is not whole: on the same file system, readable by its owner alone. */
async function workshopFor(file: string): Promise<string> {
  try {
    return await mkdtemp(`${file}.partial-`);
  } catch (error) {
    throw new Failure(
      `${dirname(file)} cannot be written to: ${(error as Error).message}; choose another FILE`,
    );
  }
}

/** A copy that nobody could use is no backup. */
async function examine({ secrets }: CommandContext, workshop: string): Promise<void> {
  const db = await openDatabase({ dataDir: workshop, databaseUrl: null });
  try {
    const fault = await faultOf(db);
    if (fault) throw new Failure(`the database is damaged: ${fault}; restore it from an earlier backup`);
    const { all, closed } = await countSealed(db, createSeal(secrets()).opens);
    if (closed > 0) {
      throw new Failure(
        `the secret cannot decrypt ${closed} of ${all} keys in the database; check POSTERN_SECRET`,
      );
    }
  } finally {
    await db.destroy();
  }
}

async function copySecret(from: string, to: string, workshop: string): Promise<void> {
  const made = join(workshop, 'secret');
  writeFileSync(made, readFileSync(from), { mode: 0o600, flush: true });
  await rename(made, to);
}

function advice(beside: string | null, isFromSetting: boolean): string {
  if (beside) return `${beside} decrypts the keys in the backup: keep both, preferably in different places`;
  const what = isFromSetting ? 'POSTERN_SECRET' : 'the file "secret" of the data directory';
  return `keep ${what} as well: without it the DKIM keys of the backup cannot be used`;
}

function interrupted(): AbortSignal {
  const controller = new AbortController();
  for (const signal of ['SIGINT', 'SIGTERM'] as const) {
    process.once(signal, () => controller.abort(new Failure('interrupted; there is no backup')));
  }
  return controller.signal;
}

/** So that the name is on disk as well. */
export async function syncDirectory(path: string): Promise<void> {
  const directory = await open(path);
  try {
    await directory.sync();
  } finally {
    await directory.close();
  }
}
