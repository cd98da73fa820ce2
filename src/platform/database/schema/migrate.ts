/**
 * Makes the schema, or upgrades it; there are no downgrades. A new database gets schema.sqlite.sql or schema.postgres.sql, which
 * have all steps; a database of 0.9 or later gets the steps that it lacks. A released step is never edited. A database that a
 * newer program has upgraded, or one from before 0.9, is refused and stays unchanged.
 *
 * Everything runs in one transaction, under a lock that the database releases when the process ends: two nodes may start at
 * the same time, and a start that is killed leaves the schema unchanged.
 */
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { DatabaseError, type Db, isPostgres, type Trx } from '#platform/database/engine/open.ts';
import { baseline, steps } from './steps.ts';

const names = [baseline, ...Object.keys(steps)];
export const newest = names.at(-1)!;

/** Has a row for each step. Before 1.0, knex had written it. */
const stepsTable = 'knex_migrations';

/** "post" in ASCII, as a 32-bit number: the advisory lock's key. */
const advisoryLock = 0x706f7374;

export interface Upgrade {
  from: string;
  to: string;
  steps: number;
}

/** The message to the operator before an upgrade. */
export function upgradeNotice({ from, to, steps }: Upgrade): string {
  const by = steps === 1 ? '1 step' : `${steps} steps`;
  return `the database is upgraded from ${from} to ${to} in ${by}, in one transaction: if it fails, nothing is changed. Afterwards, only a backup from before can undo it`;
}

/**
 * `onUpgrade` is called before a database that has been in use is changed (a new one is no upgrade), `onDone` when the schema
 * is up to date; both in the transaction, and if one rejects, nothing has changed. Resolves with the upgrade; null: none was due.
 */
export async function migrate(
  db: Db,
  onUpgrade: (upgrade: Upgrade, trx: Trx) => void | Promise<void> = () => {},
  onDone: (trx: Trx) => Promise<void> = async () => {},
): Promise<Upgrade | null> {
  return db.transaction(async (trx) => {
    if (isPostgres(trx)) await trx.raw('select pg_advisory_xact_lock(?)', [advisoryLock]);
    const upgrade = await upgradeOf(trx);
    if (upgrade) await onUpgrade(upgrade, trx);
    const { done, pending } = await migrationsOf(trx);
    if (done.length === 0) await createSchema(trx);
    else for (const name of pending) await trx.raw(statementOf(trx, name));
    if (pending.length > 0)
      await trx(stepsTable).insert(pending.map((name) => ({ name, migration_time: new Date() })));
    await onDone(trx);
    return upgrade;
  });
}

/** The statement of a step. */
export function statementOf(db: Db, name: string): string {
  const step = steps[name]!;
  if (typeof step === 'string') return step;
  return isPostgres(db) ? step.postgres : step.sqlite;
}

export function readSchema(db: Db): Promise<string> {
  const file = `schema.${isPostgres(db) ? 'postgres' : 'sqlite'}.sql`;
  return readFile(join(import.meta.dirname, file), 'utf8');
}

async function createSchema(trx: Trx): Promise<void> {
  const sql = await readSchema(trx);
  // SQLite runs one statement at a time.
  for (const statement of isPostgres(trx) ? [sql] : sql.trim().split(';\n')) await trx.raw(statement);
  // `last_value` is a position that was given from here on (events_settled), and no event has this one.
  if (isPostgres(trx)) await trx.raw("select setval('events_position_seq', 1)");
  await trx('event_readers').insert(['statistics', 'webhooks'].map((name) => ({ name, position: 0 })));
  await trx.schema.createTable(stepsTable, (table) => {
    table.increments();
    table.string('name');
    table.timestamp('migration_time');
  });
}

/** Checks the schema for a caller that does not upgrade it. Rejects if it is not this program's; false if there is none yet. */
export async function requireSchema(db: Db): Promise<boolean> {
  const upgrade = await upgradeOf(db);
  if (upgrade) {
    throw new DatabaseError(
      `the database is from an older Postern (its schema is ${upgrade.from}, this program needs ${upgrade.to}): ` +
        'use the program that runs on it, or stop that and run `postern migrate`',
    );
  }
  return (await migrationsOf(db)).done.length > 0;
}

/** Changes nothing. `unknown`: steps of a newer program. */
export async function migrationsOf(
  db: Db,
): Promise<{ done: string[]; pending: string[]; unknown: string[] }> {
  const isMade = await db.schema.hasTable(stepsTable);
  const done: string[] = isMade ? await db(stepsTable).orderBy('id').pluck('name') : [];
  return {
    done,
    pending: names.filter((name) => !done.includes(name)),
    unknown: done.filter((name) => name > baseline && !names.includes(name)),
  };
}

/** Null for a current or a new database. */
async function upgradeOf(db: Db): Promise<Upgrade | null> {
  const { done, pending, unknown } = await migrationsOf(db);
  const from = done.at(-1);
  if (from === undefined) return null;
  if (unknown.length > 0) {
    throw new DatabaseError(
      `the database is from a newer Postern: it has been upgraded to ${unknown.at(-1)}, and this program supports only ${newest}; start the newer program, or restore the backup from before the upgrade. Nothing was changed`,
    );
  }
  if (pending.includes(baseline)) {
    throw new DatabaseError(
      `the database is from a Postern before 0.9 (its schema is ${from}), which this program cannot upgrade: upgrade it to 0.9 first, then to this version. Nothing was changed`,
    );
  }
  return pending.length === 0 ? null : { from, to: newest, steps: pending.length };
}
