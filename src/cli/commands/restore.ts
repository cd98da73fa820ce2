/**
 * `postern restore`: a database out of a backup, made ready for a server (db/admin/restored.ts). No server runs meanwhile. The
 * data directory is changed when all else has gone well, and a database that was there is set aside.
 *
 * On PostgreSQL pg_restore has brought the data back, and there is no file.
 */
import { existsSync } from 'node:fs';
import { chmod, copyFile, mkdtemp, open, rename, rm } from 'node:fs/promises';
import { dirname, join, resolve } from 'node:path';
import type { Command } from 'commander';
import { createSeal } from '../../accounts/seal.ts';
import { loadSecrets, readSecrets, secretFile, writeSecrets } from '../../base/secrets.ts';
import { countSealed } from '../../db/accounts/sealed-columns.ts';
import { refuseLeft } from '../../db/admin/moved-marker.ts';
import { holdQueue, skipPastEvents } from '../../db/admin/restored.ts';
import { faultOf } from '../../db/admin/sqlite-backup.ts';
import { lockDataDir } from '../../db/engine/data-dir-lock.ts';
import { type Db, openDatabase } from '../../db/engine/open.ts';
import { migrate } from '../../db/schema/migrate.ts';
import type { CommandContext } from '../command-context.ts';
import { Failure } from '../failure.ts';
import type { Cell } from '../render/output.ts';
import { syncDirectory } from './backup.ts';

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
      const fault = isPostgres
        ? 'PostgreSQL is restored by `pg_restore --dbname="$POSTERN_DATABASE_URL" FILE`; then `postern restore` without a file'
        : 'no backup is given; give the FILE that `postern backup` made';
      command.error(`error: ${fault}`, { exitCode: 2 });
    });
}

async function restore(
  context: CommandContext,
  file: string | null,
  { force, hold }: Options,
): Promise<void> {
  const { out } = context;
  const done =
    file === null
      ? { replaced: null, held: await prepare(context, await context.db(), hold) }
      : await restoreFile(context, file, { force, hold });
  const { replaced, held } = done;
  out.print(
    { file, replaced, held },
    {
      facts: [
        ...(file === null ? [] : [['restored', file] as [string, Cell]]),
        ...(replaced === null ? [] : [['set aside', replaced] as [string, Cell]]),
        ['held', held],
      ],
    },
  );
  if (!held) return;
  const orders = '`postern queue release --status held --reason R` sends it, `queue cancel` gives it up';
  out.warn(`${held} mails waited when the backup was made, and may have been sent since: ${orders}`);
}

/** What was held; null: it was not asked for. */
async function prepare({ out, now }: CommandContext, db: Db, hold: boolean): Promise<number | null> {
  await skipPastEvents(db);
  if (!hold) return null;
  const onProgress = (held: number) => out.progress(`${held} held so far`);
  const { moved } = await holdQueue(db, { reason, now: now(), onProgress }).finally(() => out.progress(''));
  return moved;
}

async function restoreFile(context: CommandContext, file: string, { force, hold }: Options) {
  if (!existsSync(file))
    throw new Failure(`${file} does not exist; give the FILE that \`postern backup\` made`);
  const { dataDir } = context.config();
  makeDataDir(context);
  refuseLeft(dataDir);
  const target = join(dataDir, 'postern.sqlite');
  const unlock = await lockDataDir(dataDir);
  const workshop = await mkdtemp(join(dataDir, 'restore-'));
  try {
    if (existsSync(target) && !force) {
      throw new Failure(`${target} already exists; --force renames it and restores in its place`);
    }
    const made = join(workshop, 'postern.sqlite');
    await copyFile(file, made);
    await chmod(made, 0o600);
    const db = await openDatabase({ dataDir: workshop, databaseUrl: null });
    let held: number | null;
    try {
      const fault = await faultOf(db);
      if (fault) throw new Failure(`${file} is damaged: ${fault}; take another backup`);
      await migrate(db);
      await takeSecret(context, db, `${file}.secret`);
      held = await prepare(context, db, hold);
    } finally {
      // With the last connection the WAL goes into the file.
      await db.destroy();
    }
    await syncFile(made);
    const replaced = await setAside(target, context.now());
    await rename(made, target);
    await syncDirectory(dirname(target));
    return { replaced, held };
  } finally {
    await rm(workshop, { recursive: true, force: true });
    await unlock();
  }
}

/** With its secret. A directory that was made by mistake would look like an empty service, so a new one is mentioned. */
function makeDataDir({ config, out }: CommandContext): void {
  const isNew = !existsSync(config().dataDir);
  loadSecrets(config());
  if (isNew)
    out.note(`${resolve(config().dataDir)} did not exist and has been created as a new data directory`);
}

/** The secrets that are here stay in use; those of the backup come after them, where they are needed. */
async function takeSecret({ config, secrets }: CommandContext, db: Db, beside: string): Promise<void> {
  const { all, closed } = await countSealed(db, createSeal(secrets()).opens);
  if (closed === 0) return;
  const lacks = `the secret of this installation cannot decrypt ${closed} of the ${all} keys in the backup`;
  if (config().secret !== null) {
    throw new Failure(`${lacks}; add the secret that belongs to the backup to POSTERN_SECRET_OTHERS`);
  }
  if (!existsSync(beside))
    throw new Failure(`${lacks}; put the secret that was saved with the backup at ${beside}`);
  const file = secretFile(config().dataDir);
  const [current, ...others] = readSecrets(file);
  writeSecrets(file, [current, ...new Set([...others, ...readSecrets(beside)])]);
  const still = await countSealed(db, createSeal(secrets()).opens);
  if (still.closed > 0)
    throw new Failure(
      `${beside} cannot decrypt ${still.closed} of them either; find the secret that was saved with the backup`,
    );
}

async function syncFile(path: string): Promise<void> {
  const file = await open(path, 'r+');
  try {
    await file.sync();
  } finally {
    await file.close();
  }
}

/** By itself, where it can still be opened; else with its WAL, without which the last commits would be missing. */
async function setAside(target: string, now: number): Promise<string | null> {
  if (!existsSync(target)) return null;
  try {
    // The last connection brings the WAL into the file, and removes it.
    await (await openDatabase({ dataDir: dirname(target), databaseUrl: null })).destroy();
  } catch {}
  const aside = `${target}.replaced-${new Date(now).toISOString().replaceAll(/[:.]/g, '-')}`;
  for (const ending of ['', '-wal', '-shm']) {
    if (existsSync(target + ending)) await rename(target + ending, aside + ending);
  }
  return aside;
}
