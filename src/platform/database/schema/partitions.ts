/**
 * The partitions of the tables that grow with every mail, read from PostgreSQL's catalogs (SQLite has none). A table's
 * partitions have no gaps, the first begins at MINVALUE and the last ends at MAXVALUE: every row has a partition, so no insert
 * depends on the jobs that create and drop partitions.
 *
 * PostgreSQL has no foreign keys between the tables of mails: to drop a partition, it would have to search all rows that may refer
 * to its rows, and to lock their tables. A transaction that adds such a row has created the row that it refers to, or has locked
 * the delivery.
 *
 * A bound is a number here: the time in an id, or the position of an event.
 */
import type { Db, Trx } from '#platform/database/engine/open.ts';
import { timeOfId } from '#platform/database/tables/time-of-id.ts';

export type PartitionedTable = 'attempts' | 'emails' | 'events';

export interface Partition {
  name: string;
  /** The first key that belongs to it; null: MINVALUE. */
  from: number | null;
  /** The first key after it; null: MAXVALUE. */
  to: number | null;
}

export const partitionColumn = (table: PartitionedTable) => (table === 'events' ? 'position' : 'id');

/** Lists partitions in the order of their bounds. One that another node is dropping has no bounds and is left out. */
export async function partitionsOf(db: Db, table: PartitionedTable): Promise<Partition[]> {
  const { rows } = await db.raw(
    `select relname as name, pg_get_expr(relpartbound, pg_class.oid) as bounds
     from pg_inherits join pg_class on pg_class.oid = inhrelid where inhparent = ?::regclass`,
    [table],
  );
  const found: Partition[] = (rows as { name: string; bounds: string | null }[]).flatMap(
    ({ name, bounds }) => {
      if (bounds === null) return [];
      const [, from, to] = /^FOR VALUES FROM \((.+)\) TO \((.+)\)$/.exec(bounds)!;
      return { name, from: boundFrom(table, from!), to: boundFrom(table, to!) };
    },
  );
  const min = Number.NEGATIVE_INFINITY;
  return found.sort((a, b) => ((a.from ?? min) < (b.from ?? min) ? -1 : 1));
}

/** Parses a bound as PostgreSQL writes it. */
export function boundFrom(table: PartitionedTable, text: string): number | null {
  if (text === 'MINVALUE' || text === 'MAXVALUE') return null;
  const plain = text.replaceAll("'", '');
  return table === 'events' ? Number(plain) : timeOfId(plain);
}

/** Writes a bound for PostgreSQL. A time becomes an id that is smaller than all ids created then or later. */
export function boundText(table: PartitionedTable, bound: number): string {
  if (table === 'events') return `'${bound}'`;
  const digits = bound.toString(16).padStart(12, '0');
  return `'${digits.slice(0, 8)}-${digits.slice(8)}-0000-0000-000000000000'`;
}

/** The part of a partition's name for its bound: a day or a position. */
export function boundName(table: PartitionedTable, bound: number): string {
  return table === 'events' ? String(bound) : new Date(bound).toISOString().slice(0, 10).replaceAll('-', '');
}

/** Event ids are unique per partition, because a unique index over all partitions would need the position. */
export async function createPartition(
  trx: Trx,
  table: PartitionedTable,
  partition: Partition,
): Promise<void> {
  const { name, from, to } = partition;
  const bounds = [
    from === null ? 'minvalue' : boundText(table, from),
    to === null ? 'maxvalue' : boundText(table, to),
  ];
  await trx.raw(
    `create table ${name} partition of ${table} for values from (${bounds[0]}) to (${bounds[1]})`,
  );
  if (table === 'events') await trx.raw(`create unique index ${name}_id_unique on ${name} (id)`);
}

/** "part" in ASCII: the advisory lock's key. */
const advisoryLock = 0x70617274;

/** Other statements queue behind our request for the table lock, so it waits only this long. */
const lockTimeoutMs = 200;

const lockNotAvailable = '55P03';

/** Calls `read` while no other node creates or drops partitions. Null if another node does; try again later. */
export async function withStablePartitions<T>(db: Db, read: (trx: Trx) => Promise<T>): Promise<T | null> {
  return db.transaction(async (trx) => {
    const { rows } = await trx.raw('select pg_try_advisory_xact_lock(?) as is_ours', [advisoryLock]);
    return rows[0].is_ours ? read(trx) : null;
  });
}

/**
 * Changes the table's partitions in a short transaction with an exclusive lock on the table. Null if something else has the
 * table (another node with the same job, a vacuum, a long query or backup); try again later.
 */
export async function withTableLock<T>(
  db: Db,
  table: PartitionedTable,
  change: (trx: Trx) => Promise<T>,
): Promise<T | null> {
  try {
    return await withStablePartitions(db, async (trx) => {
      await trx.raw(`set local lock_timeout = ${lockTimeoutMs}`);
      // Every statement on the table locks it before its partitions.
      await trx.raw(`lock table only ${table} in access exclusive mode`);
      return change(trx);
    });
  } catch (error) {
    if ((error as { code?: string }).code === lockNotAvailable) return null;
    throw error;
  }
}
