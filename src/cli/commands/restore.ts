/**
 * `postern restore`: makes a database from a backup and prepares it for a server (operate/backup/rows/restored.ts), while no server
 * runs. The data directory is changed last, once everything else has succeeded; an existing database is renamed.
 *
 * With PostgreSQL there is no file: pg_restore has already restored the data.
 */
import { existsSync } from 'node:fs';
import { chmod, copyFile, mkdtemp, rename, rm } from 'node:fs/promises';
import { dirname, join, resolve } from 'node:path';
import type { Command } from 'commander';
import { countSealed } from '#accounts/rows/sealed-columns.ts';
import { createSeal } from '#accounts/seal.ts';
import type { CommandContext } from '#cli/command-context.ts';
import { Failure } from '#cli/failure.ts';
import { sync } from '#operate/backup/make-backup.ts';
import { holdQueue, skipPastEvents } from '#operate/backup/rows/restored.ts';
import { loadSecrets, readSecrets, secretFile, writeSecrets } from '#platform/base/secrets.ts';
import { refuseMoved } from '#platform/database/admin/moved-marker.ts';
import { problemOf } from '#platform/database/admin/sqlite-backup.ts';
import { lockDataDir } from '#platform/database/engine/data-dir-lock.ts';
import { type Db, openDatabase } from '#platform/database/engine/open.ts';
import { migrate } from '#platform/database/schema/migrate.ts';

interface Options {
  force?: true;
  hold: boolean;
}

const reason = 'the database was restored from a backup; this may have been sent since it was made';

export function restoreCommands(program: Command, context: CommandContext): void {
  const command = program.command('restore');
  command
    .description('Restore a backup while no server runs; its queued mail is held.')
    .argument('[FILE]', 'backup made by `postern backup`; on PostgreSQL none, after pg_restore')
    .option('--force', 'rename the existing database and restore in its place')
    .option('--no-hold', 'do not hold the queue: mail that was sent after the backup is sent again')
    .action(async (file: string | undefined, options: Options) => {
      const isPostgres = context.config().databaseUrl !== null;
      if (isPostgres === (file === undefined)) {
        return restore(context, file === undefined ? null : resolve(file), options);
      }
      const problem = isPostgres
        ? 'PostgreSQL is restored by `pg_restore --dbname="$POSTERN_DATABASE_URL" FILE`; then `postern restore` without a file'
        : 'no backup is given; give the FILE that `postern backup` made';
      command.error(`error: ${problem}`, { exitCode: 2 });
    });
}

async function restore(context: CommandContext, file: string | null, options: Options): Promise<void> {
  const { out } = context;
  const { replaced, held } =
    file === null
      ? { replaced: null, held: await prepare(context, await context.db(), options.hold) }
      : await restoreFile(context, file, options);
  out.print(
    { file, replaced, held },
    {
      fields: {
        ...(file !== null && { restored: file }),
        ...(replaced !== null && { 'set aside': replaced }),
        held,
      },
    },
  );
  if (replaced !== null) out.note('`postern leftovers --remove` removes the database that was set aside');
  if (!held) return;
  const advice = '`postern queue release --status held --reason R` sends it, `queue cancel` gives it up';
  out.warn(`${held} mails waited when the backup was made, and may have been sent since: ${advice}`);
}

/** Returns the number of held deliveries, or null with --no-hold. */
async function prepare({ out, now }: CommandContext, db: Db, hold: boolean): Promise<number | null> {
  await skipPastEvents(db);
  if (!hold) return null;
  const onProgress = (held: number) => out.progress(`${held} held so far`);
  return (await holdQueue(db, { reason, now: now(), onProgress })).changed;
}

async function restoreFile(context: CommandContext, file: string, { force, hold }: Options) {
  if (!existsSync(file))
    throw new Failure(`${file} does not exist; give the FILE that \`postern backup\` made`);
  const { dataDir } = context.config();
  makeDataDir(context);
  refuseMoved({ dataDir, databaseUrl: null });
  const target = join(dataDir, 'postern.sqlite');
  const unlock = await lockDataDir(dataDir);
  const temporary = await mkdtemp(join(dataDir, 'restore-'));
  try {
    if (existsSync(target) && !force) {
      throw new Failure(`${target} already exists; --force renames it and restores in its place`);
    }
    const copy = join(temporary, 'postern.sqlite');
    await copyFile(file, copy);
    await chmod(copy, 0o600);
    const held = await upgradeCopy(context, temporary, file, hold);
    await sync(copy);
    const replaced = await renameExisting(target, context.now());
    await rename(copy, target);
    await sync(dirname(target));
    return { replaced, held };
  } finally {
    await rm(temporary, { recursive: true, force: true });
    await unlock();
  }
}

/** Checks the copy in `temporary`, and makes it the database of this installation. */
async function upgradeCopy(
  context: CommandContext,
  temporary: string,
  file: string,
  hold: boolean,
): Promise<number | null> {
  const db = await openDatabase({ dataDir: temporary, databaseUrl: null });
  try {
    const problem = await problemOf(db);
    if (problem) throw new Failure(`${file} is damaged: ${problem}; take another backup`);
    await migrate(db);
    await addSecret(context, db, `${file}.secret`);
    return await prepare(context, db, hold);
  } finally {
    // Closing the last connection writes the WAL into the file.
    await db.destroy();
  }
}

/** Creates the secret too. Mentions a new directory: if its path is a mistake, it would look like an empty service. */
function makeDataDir({ config, out }: CommandContext): void {
  const isNew = !existsSync(config().dataDir);
  loadSecrets(config());
  if (isNew)
    out.note(`${resolve(config().dataDir)} did not exist and has been created as a new data directory`);
}

/** If the backup needs them, adds its secrets after those of this installation, which stay in use. */
async function addSecret({ config, secrets }: CommandContext, db: Db, saved: string): Promise<void> {
  const { all, closed } = await countSealed(db, createSeal(secrets()).opens);
  if (closed === 0) return;
  const problem = `the secret of this installation cannot decrypt ${closed} of the ${all} keys in the backup`;
  if (config().secret !== null) {
    throw new Failure(`${problem}; add the secret that belongs to the backup to POSTERN_SECRET_OTHERS`);
  }
  if (!existsSync(saved))
    throw new Failure(`${problem}; put the secret that was saved with the backup at ${saved}`);
  const file = secretFile(config().dataDir);
  const [current, ...others] = readSecrets(file);
  writeSecrets(file, [current, ...new Set([...others, ...readSecrets(saved)])]);
  const still = await countSealed(db, createSeal(secrets()).opens);
  if (still.closed > 0)
    throw new Failure(
      `${saved} cannot decrypt ${still.closed} of them either; find the secret that was saved with the backup`,
    );
}

/** Renames the database; its WAL too if the database cannot be opened, because the WAL then holds the last commits. */
async function renameExisting(target: string, now: number): Promise<string | null> {
  if (!existsSync(target)) return null;
  try {
    // Closing the last connection writes the WAL into the file and deletes it.
    await (await openDatabase({ dataDir: dirname(target), databaseUrl: null })).destroy();
  } catch {}
  const renamed = `${target}.replaced-${new Date(now).toISOString().replaceAll(/[:.]/g, '-')}`;
  for (const ending of ['', '-wal', '-shm']) {
    if (existsSync(target + ending)) await rename(target + ending, renamed + ending);
  }
  return renamed;
}
