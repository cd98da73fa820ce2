/**
 * `postern backup FILE`: copies the SQLite database, also while a server runs, and its secret. FILE appears only when it
 * is complete: copied, on disk, checked, its keys decrypted. The schema is not upgraded, so that a new version of the
 * program can back up the database before it changes it.
 */
import { createReadStream, existsSync, readFileSync, writeFileSync } from 'node:fs';
import { chmod, mkdtemp, open, rename, rm, stat } from 'node:fs/promises';
import { dirname, join, resolve } from 'node:path';
import { pipeline } from 'node:stream/promises';
import type { Command } from 'commander';
import { createSeal } from '../../accounts/seal.ts';
import { secretFile } from '../../base/secrets.ts';
import { countSealed } from '../../db/accounts/sealed-columns.ts';
import { noteBackup } from '../../db/admin/last-backup.ts';
import { copyDatabase, problemOf } from '../../db/admin/sqlite-backup.ts';
import { openDatabase } from '../../db/engine/open.ts';
import type { Config } from '../../settings/config.ts';
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
      const isWanted = !context.out.json && !context.out.terminal;
      if (!isWanted) command.error('error: the backup itself goes to standard output', { exitCode: 2 });
      return writeBackup(context, options);
    });
}

/** Writes to standard output, once the copy is complete. */
async function writeBackup(context: CommandContext, { secret }: Options): Promise<void> {
  const { dataDir } = requireSqlite(context);
  const temporary = await temporaryDirectory(join(dataDir, 'backup'));
  try {
    await pipeline(createReadStream(await copyTo(temporary, context)), context.process.stdout);
    noteBackup(dataDir, { at: context.now(), file: null });
    if (secret) context.out.warn(advice(null, context.config().secret !== null));
  } finally {
    await rm(temporary, { recursive: true, force: true });
  }
}

function requireSqlite({ config }: CommandContext): Config {
  if (config().databaseUrl === null) return config();
  throw new Failure(
    'the database is PostgreSQL; back it up with `pg_dump --format=custom --file=FILE "$POSTERN_DATABASE_URL"`, and keep the secret as well',
  );
}

/** Makes a copy and checks it. */
async function copyTo(temporary: string, context: CommandContext): Promise<string> {
  const { out, config } = context;
  const copy = join(temporary, 'postern.sqlite');
  await copyDatabase(join(config().dataDir, 'postern.sqlite'), copy, {
    onProgress: (share) => out.progress(`${Math.floor(share * 100)} % copied`),
    signal: interrupted(context),
  });
  out.progress('checking the copy');
  await examine(context, temporary);
  await chmod(copy, 0o600);
  return copy;
}

async function backUp(context: CommandContext, file: string, { force, secret }: Options): Promise<void> {
  const { out, config } = context;
  const { dataDir } = requireSqlite(context);
  const savedSecret = secret && config().secret === null ? `${file}.secret` : null;
  for (const each of [file, savedSecret]) {
    if (each !== null && existsSync(each) && !force)
      throw new Failure(`${each} already exists; --force replaces it`);
  }
  const temporary = await temporaryDirectory(file);
  try {
    const copy = await copyTo(temporary, context);
    const { size: bytes } = await stat(copy);
    if (savedSecret) await copySecret(secretFile(dataDir), savedSecret, temporary);
    await rename(copy, file);
    await sync(dirname(file));
    noteBackup(dataDir, { at: context.now(), file });
    out.print({ file, bytes, secret: savedSecret }, { fields: { backup: file, bytes, secret: savedSecret } });
    out.warn(advice(savedSecret, config().secret !== null));
  } finally {
    await rm(temporary, { recursive: true, force: true });
  }
}

/** A directory for the unfinished copy: on the same file system, and readable by its owner only. */
async function temporaryDirectory(file: string): Promise<string> {
  try {
    return await mkdtemp(`${file}.partial-`);
  } catch (error) {
    throw new Failure(
      `${dirname(file)} cannot be written to: ${(error as Error).message}; choose another FILE`,
    );
  }
}

/** A backup is of no use if the database is damaged or its keys cannot be decrypted. */
async function examine({ secrets }: CommandContext, temporary: string): Promise<void> {
  const db = await openDatabase({ dataDir: temporary, databaseUrl: null });
  try {
    const problem = await problemOf(db);
    if (problem) throw new Failure(`the database is damaged: ${problem}; restore it from an earlier backup`);
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

async function copySecret(from: string, to: string, temporary: string): Promise<void> {
  const copy = join(temporary, 'secret');
  writeFileSync(copy, readFileSync(from), { mode: 0o600, flush: true });
  await rename(copy, to);
}

function advice(savedSecret: string | null, isFromSetting: boolean): string {
  if (savedSecret)
    return `${savedSecret} decrypts the keys in the backup: keep both, preferably in different places`;
  const secret = isFromSetting ? 'POSTERN_SECRET' : 'the file "secret" of the data directory';
  return `keep ${secret} as well: without it the DKIM keys of the backup cannot be used`;
}

function interrupted({ abortOn }: CommandContext): AbortSignal {
  const controller = new AbortController();
  abortOn('SIGINT', 'SIGTERM').onabort = () => {
    controller.abort(new Failure('interrupted; there is no backup'));
  };
  return controller.signal;
}

/** Writes a file to disk, or the names in a directory. */
export async function sync(path: string): Promise<void> {
  await using handle = await open(path);
  await handle.sync();
}
