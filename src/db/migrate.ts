/**
 * Brings the schema up to date. Forward only. The migrations are listed here by name, in order; a landed migration
 * is never edited.
 *
 * Everything runs in one transaction, under a lock that the database itself releases when the process dies: two
 * nodes may start at once, and a start that is killed half-way leaves the schema as it was.
 */
import type { Knex } from 'knex';
import { first } from './migrations/001-first.ts';
import { engine } from './migrations/002-engine.ts';
import { returned } from './migrations/003-returned.ts';
import { flat } from './migrations/004-flat.ts';
import { events } from './migrations/005-events.ts';
import { webhooks } from './migrations/006-webhooks.ts';
import { type Db, isPostgres } from './open.ts';

const migrations: Record<string, Knex.Migration> = {
  '001-first': first,
  '002-engine': engine,
  '003-returned': returned,
  '004-flat': flat,
  '005-events': events,
  '006-webhooks': webhooks,
};

const source: Knex.MigrationSource<string> = {
  getMigrations: async () => Object.keys(migrations),
  getMigrationName: (name) => name,
  getMigration: async (name) => migrations[name]!,
};

/** "postern" in ASCII, cut to a signed 32-bit number: the advisory lock's name. */
const advisoryLock = 0x706f7374;

export async function migrate(db: Db): Promise<void> {
  await db.transaction(async (trx) => {
    if (isPostgres(trx)) await trx.raw('select pg_advisory_xact_lock(?)', [advisoryLock]);
    await trx.migrate.latest({ migrationSource: source, disableTransactions: true });
  });
}
