/**
 * `postern backup FILE`: copies the SQLite database and its secret, also while a server runs (operate/backup/make-backup.ts).
 * FILE appears only when it is complete.
 */
import { createReadStream, existsSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { pipeline } from 'node:stream/promises';
import type { Command } from 'commander';
import type { CommandContext } from '#cli/command-context.ts';
import { Failure } from '#cli/failure.ts';
import { type Backing, makeBackup, withCopy } from '#operate/backup/make-backup.ts';
import { noteBackup } from '#platform/database/admin/last-backup.ts';
import type { Config } from '#platform/settings/config.ts';

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
  await withCopy(backingOf(context), join(dataDir, 'backup'), (copy) =>
    pipeline(createReadStream(copy), context.process.stdout),
  );
  noteBackup(dataDir, { at: context.now(), file: null });
  if (secret) context.out.warn(advice(null, context.config().secret !== null));
}

function requireSqlite({ config }: CommandContext): Config {
  if (config().databaseUrl === null) return config();
  throw new Failure(
    'the database is PostgreSQL; back it up with `pg_dump --format=custom --file=FILE "$POSTERN_DATABASE_URL"`, and keep the secret as well',
  );
}

function backingOf(context: CommandContext): Backing {
  const { out, config, secrets, now } = context;
  return {
    dataDir: config().dataDir,
    secrets,
    now,
    onProgress: (share) => out.progress(`${Math.floor(share * 100)} % copied`),
    onChecking: () => out.progress('checking the copy'),
    signal: interrupted(context),
  };
}

async function backUp(context: CommandContext, file: string, { force, secret }: Options): Promise<void> {
  const { out, config } = context;
  requireSqlite(context);
  const savedSecret = secret && config().secret === null ? `${file}.secret` : null;
  for (const each of [file, savedSecret]) {
    if (each !== null && existsSync(each) && !force)
      throw new Failure(`${each} already exists; --force replaces it`);
  }
  const bytes = await makeBackup(backingOf(context), { file, secret: savedSecret });
  out.print({ file, bytes, secret: savedSecret }, { fields: { backup: file, bytes, secret: savedSecret } });
  out.warn(advice(savedSecret, config().secret !== null));
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
