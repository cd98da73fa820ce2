/**
 * Upgrades the schema; there are no downgrades. The migrations are listed here in order; a released migration is never edited.
 * A database that a newer program has upgraded is refused and stays unchanged.
 *
 * Everything runs in one transaction, under a lock that the database releases when the process ends: two nodes may start at
 * the same time, and a start that is killed leaves the schema unchanged.
 */
import type { Knex } from 'knex';
import { DatabaseError, type Db, isPostgres, type Trx } from '../engine/open.ts';
import { first } from './migrations/001-first.ts';
import { engine } from './migrations/002-engine.ts';
import { returned } from './migrations/003-returned.ts';
import { flat } from './migrations/004-flat.ts';
import { events } from './migrations/005-events.ts';
import { webhooks } from './migrations/006-webhooks.ts';
import { rotation } from './migrations/007-rotation.ts';
import { users } from './migrations/008-users.ts';
import { statistics } from './migrations/009-statistics.ts';
import { partitions } from './migrations/010-partitions.ts';
import { nodes } from './migrations/011-nodes.ts';
import { sourcePools } from './migrations/012-source-pools.ts';
import { messageBases } from './migrations/013-message-bases.ts';
import { nodeVersions } from './migrations/014-node-versions.ts';
import { pause } from './migrations/015-pause.ts';
import { names, plannedRenames, type Rename } from './migrations/016-names.ts';
import { softBounces } from './migrations/017-soft-bounces.ts';
import { domainWatch } from './migrations/018-domain-watch.ts';
import { recipientKinds } from './migrations/019-recipient-kinds.ts';
import { scheduled } from './migrations/020-scheduled.ts';
import { strictKeys } from './migrations/021-strict-keys.ts';
import { tlsResults } from './migrations/022-tls-results.ts';
import { webhookFormats } from './migrations/023-webhook-formats.ts';
import { packed } from './migrations/024-packed.ts';
import { dialect } from './migrations/025-dialect.ts';
import { testKeys } from './migrations/026-test-keys.ts';
import { destinationRules } from './migrations/027-destination-rules.ts';
import { suppressionReply } from './migrations/028-suppression-reply.ts';

const migrations: Record<string, Knex.Migration> = {
  '001-first': first,
  '002-engine': engine,
  '003-returned': returned,
  '004-flat': flat,
  '005-events': events,
  '006-webhooks': webhooks,
  '007-rotation': rotation,
  '008-users': users,
  '009-statistics': statistics,
  '010-partitions': partitions,
  '011-nodes': nodes,
  '012-source-pools': sourcePools,
  '013-message-bases': messageBases,
  '014-node-versions': nodeVersions,
  '015-pause': pause,
  '016-names': names,
  '017-soft-bounces': softBounces,
  '018-domain-watch': domainWatch,
  '019-recipient-kinds': recipientKinds,
  '020-scheduled': scheduled,
  '021-strict-keys': strictKeys,
  '022-tls-results': tlsResults,
  '023-webhook-formats': webhookFormats,
  '024-packed': packed,
  '025-dialect': dialect,
  '026-test-keys': testKeys,
  '027-destination-rules': destinationRules,
  '028-suppression-reply': suppressionReply,
};

const source: Knex.MigrationSource<string> = {
  getMigrations: async () => Object.keys(migrations),
  getMigrationName: (name) => name,
  getMigration: async (name) => migrations[name]!,
};

/** "post" in ASCII, as a 32-bit number: the advisory lock's key. */
const advisoryLock = 0x706f7374;

export interface Upgrade {
  from: string;
  to: string;
  steps: number;
  /** Organizations that get a new name, because older ones have theirs. */
  renames: Rename[];
}

/** The message to the operator before an upgrade. */
export function upgradeNotice({ from, to, steps, renames }: Upgrade): string {
  const by = steps === 1 ? '1 step' : `${steps} steps`;
  const notice = `the database is upgraded from ${from} to ${to} in ${by}, in one transaction: if it fails, nothing is changed. Afterwards, only a backup from before can undo it`;
  if (renames.length === 0) return notice;
  const renamed = renames.map((each) => `"${each.from}" (id ${each.id}) becomes "${each.to}"`);
  return `${notice}. The names of organizations are unique from now on: ${renamed.join(', ')}`;
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
    await trx.migrate.latest({ migrationSource: source, disableTransactions: true });
    await onDone(trx);
    return upgrade;
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

/** Changes nothing. */
export async function migrationsOf(
  db: Db,
): Promise<{ done: string[]; pending: string[]; unknown: string[] }> {
  const isMade = await db.schema.hasTable('knex_migrations');
  const done: string[] = isMade ? await db('knex_migrations').orderBy('id').pluck('name') : [];
  const names = Object.keys(migrations);
  return {
    done,
    pending: names.filter((name) => !done.includes(name)),
    unknown: done.filter((name) => !names.includes(name)),
  };
}

/** Null for a current or a new database. */
async function upgradeOf(db: Db): Promise<Upgrade | null> {
  const { done, pending, unknown } = await migrationsOf(db);
  const [from, to] = [done.at(-1), Object.keys(migrations).at(-1)!];
  if (unknown.length > 0) {
    throw new DatabaseError(
      `the database is from a newer Postern: it has been upgraded to ${unknown.at(-1)}, and this program supports only ${to}; start the newer program, or restore the backup from before the upgrade. Nothing was changed`,
    );
  }
  if (from === undefined || pending.length === 0) return null;
  const renames = pending.includes('016-names') ? await plannedRenames(db) : [];
  return { from, to, steps: pending.length, renames };
}
