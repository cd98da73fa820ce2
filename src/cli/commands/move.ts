/**
 * `postern move --to URL`: moves the database of this data directory from SQLite to PostgreSQL, while no server runs. This
 * file has the checks before, the progress and the advice after; the move itself is in
 * platform/database/admin/move/move-database.ts.
 */
import type { Command } from 'commander';
import { postgresUrl } from '#cli/args/arguments.ts';
import type { CommandContext } from '#cli/command-context.ts';
import { Failure } from '#cli/failure.ts';
import { grouped } from '#cli/render/cells.ts';
import type { Output } from '#cli/render/output.ts';
import { countUnfinished } from '#mail/queue/rows/queue-counts.ts';
import { span } from '#platform/base/span.ts';
import {
  type MoveProgress,
  type MoveResult,
  moveDatabase,
} from '#platform/database/admin/move/move-database.ts';
import { readMarker } from '#platform/database/admin/moved-marker.ts';
import { lockDataDir } from '#platform/database/engine/data-dir-lock.ts';
import { type Db, openDatabase, openExisting } from '#platform/database/engine/open.ts';
import { upgradeNotice } from '#platform/database/schema/migrate.ts';
import { postgresUrl as postgresGrammar } from '#platform/settings/grammar.ts';
import type { Environment } from '#platform/settings/setting-sources.ts';

export function moveCommands(program: Command, context: CommandContext): void {
  program
    .command('move')
    .description(
      'Move the database from SQLite to an empty PostgreSQL while no server runs; if it fails, nothing has changed.',
    )
    .option('--to <URL>', 'postgres://USER:PASSWORD@HOST:PORT/DATABASE (env: POSTERN_MOVE_TO)', postgresUrl)
    .action(({ to }: { to?: string }, command: Command) =>
      run(context, to ?? urlFrom(context.process.env, command)),
    );
}

/** Every user of the machine can read the arguments of a process, but not its environment. */
function urlFrom({ POSTERN_MOVE_TO: to }: Environment, command: Command): string {
  if (to === undefined) command.error("error: required option '--to <URL>' not specified");
  try {
    return postgresUrl(to);
  } catch (error) {
    command.error(`error: POSTERN_MOVE_TO: ${(error as Error).message}`);
  }
}

async function run(context: CommandContext, url: string): Promise<void> {
  const { config, out, now } = context;
  const { dataDir, databaseUrl } = config();
  if (databaseUrl !== null) {
    throw new Failure(
      'POSTERN_DATABASE_URL is set, so this installation already uses PostgreSQL; to move a SQLite database, remove the ' +
        'setting until the move is done; to move from one PostgreSQL to another, use pg_dump and pg_restore',
    );
  }
  const to = postgresGrammar.print(url);
  const begun = performance.now();
  const unlock = await lockFor(dataDir);
  const open: Db[] = [];
  try {
    const source = await openExisting({ dataDir, databaseUrl: null });
    if (!source) throw new Failure(`there is no SQLite database in ${dataDir}; check POSTERN_DATA_DIR`);
    open.push(source);
    const target = await openDatabase({ dataDir, databaseUrl: url, givenBy: '--to' });
    open.push(target);
    const moved = await moveDatabase({
      source,
      target,
      to,
      dataDir,
      now,
      onUpgrade: (upgrade) => out.warn(upgradeNotice(upgrade)),
      onProgress: createProgress(context),
      onError: (what) => out.warn(what),
    });
    const waiting = await countUnfinished(target);
    report(out, { to, dataDir, waiting, ms: performance.now() - begun }, moved);
  } catch (error) {
    if (readMarker(dataDir)?.finishedAt === null)
      out.warn('PostgreSQL may have the move, or not: run the same command again to finish it');
    throw error;
  } finally {
    for (const db of open) await db.destroy();
    await unlock();
  }
}

async function lockFor(dataDir: string): Promise<() => Promise<void>> {
  try {
    return await lockDataDir(dataDir, 'move');
  } catch (error) {
    throw new Failure((error as Error).message);
  }
}

/** Between two progress lines, if standard error is not a terminal. */
const lineIntervalMs = 10_000;

function createProgress({ out, process }: CommandContext): (progress: MoveProgress) => void {
  let [begun, printedAt, last] = [performance.now(), performance.now(), 0];
  return ({ table, done, all }) => {
    // The move has started again.
    if (done < last) begun = performance.now();
    last = done;
    const seconds = (performance.now() - begun) / 1000;
    const rate = seconds > 0.5 ? done / seconds : 0;
    const progress =
      rate > 0 ? `, ${grouped(Math.round(rate))} a second, ${span(((all - done) / rate) * 1000)} left` : '';
    const line = `${grouped(done)} of ${grouped(all)} rows copied${progress} (${table})`;
    if (process.stderr.isTTY) out.progress(line);
    else if (!out.json && performance.now() - printedAt > lineIntervalMs) {
      printedAt = performance.now();
      out.warn(line);
    }
  };
}

interface Summary {
  to: string;
  dataDir: string;
  waiting: Record<string, number>;
  ms: number;
}

function report(out: Output, { to, dataDir, waiting, ms }: Summary, { tables, replaced }: MoveResult): void {
  const rows = tables.reduce((sum, table) => sum + table.rows, 0);
  const left = Object.entries(waiting).map(([status, number]) => `${grouped(number)} ${status}`);
  out.print(
    { to, rows, waiting, seconds: Math.round(ms / 100) / 10, tables },
    {
      fields: { 'moved to': to, rows, waiting: left.join(', ') || 'nothing', took: span(ms) },
    },
    {
      head: ['TABLE', 'ROWS'],
      rows: tables.filter((table) => table.rows > 0).map((table) => [table.table, table.rows]),
      empty: 'The database was empty.',
    },
  );
  if (replaced > 0) {
    out.warn(
      `${replaced} rows contained NUL characters, which PostgreSQL cannot store; they were replaced with U+FFFD`,
    );
  }
  if (out.json) return;
  out.warn(
    `set POSTERN_DATABASE_URL to the new database and start the server with the same data directory (${dataDir}): the ` +
      'secret, node-id, mail log and certificates stay there; postern.sqlite is not used any more',
  );
}
