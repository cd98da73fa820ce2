/**
 * The partitions of the tables that every mail adds to, as PostgreSQL's catalogs tell of them (SQLite has none). Those of
 * a table follow each other without a gap, the first from MINVALUE and the last to MAXVALUE: whatever its key, a row
 * finds its place, so nothing that is written depends on the chores that cut and drop.
 *
 * A bound is a number here: of ids the time in them, of events the position.
 */
import type { Db, Trx } from '../engine/open.ts';
import { timeOfId } from '../events/time-of-id.ts';

export type PartitionedTable = 'attempts' | 'emails' | 'events';

export interface Partition {
  name: string;
  /** The first key that belongs to it; null: it has no beginning. */
  from: number | null;
  /** The first key that does not; null: it has no end. */
  to: number | null;
}

export const keyOf = (table: PartitionedTable) => (table === 'events' ? 'position' : 'id');

/** In the order of their bounds. One that another node drops at this moment is left out, as its bounds are. */
export async function partitionsOf(db: Db, table: PartitionedTable): Promise<Partition[]> {
  const { rows } = await db.raw(
    `select relname as name, pg_get_expr(relpartbound, pg_class.oid) as bounds
     from pg_inherits join pg_class on pg_class.oid = inhrelid where inhparent = ?::regclass`,
    [table],
  );
  const there: { name: string; bounds: string | null }[] = rows;
  const found: Partition[] = there.flatMap(({ name, bounds }) => {
    if (bounds === null) return [];
    const [, from, to] = /^FOR VALUES FROM \((.+)\) TO \((.+)\)$/.exec(bounds)!;
    return { name, from: boundFrom(table, from!), to: boundFrom(table, to!) };
  });
  const min = Number.NEGATIVE_INFINITY;
  return found.sort((a, b) => ((a.from ?? min) < (b.from ?? min) ? -1 : 1));
}

/** As PostgreSQL writes it. */
export function boundFrom(table: PartitionedTable, text: string): number | null {
  if (text === 'MINVALUE' || text === 'MAXVALUE') return null;
  const plain = text.replaceAll("'", '');
  return table === 'events' ? Number(plain) : timeOfId(plain);
}

/** As PostgreSQL reads it: of a time what all ids made then or later are greater than. */
export function boundText(table: PartitionedTable, bound: number): string {
  if (table === 'events') return `'${bound}'`;
  const digits = bound.toString(16).padStart(12, '0');
  return `'${digits.slice(0, 8)}-${digits.slice(8)}-0000-0000-000000000000'`;
}

/** A partition's name says where it begins, or where what it takes ends: a day, or a position. */
export function boundName(table: PartitionedTable, bound: number): string {
  return table === 'events' ? String(bound) : new Date(bound).toISOString().slice(0, 10).replaceAll('-', '');
}

/** Each event has an id of its own, which no index of all partitions can see to (010-partitions). */
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

/** "part" in ASCII: the advisory lock's name. */
const advisoryLock = 0x70617274;

/** Behind us everybody waits who wants the table, so we wait for those before us no longer than this. */
const lockTimeoutMs = 200;

const lockNotAvailable = '55P03';

/**
 * While no other node cuts or drops partitions, so that those that `look` finds are there for as long as it looks. Null:
 * another node is at it, and it is to be tried later.
 */
export async function whileTheyStay<T>(db: Db, look: (trx: Trx) => Promise<T>): Promise<T | null> {
  return db.transaction(async (trx) => {
    const { rows } = await trx.raw('select pg_try_advisory_xact_lock(?) as is_ours', [advisoryLock]);
    return rows[0].is_ours ? look(trx) : null;
  });
}

/**
 * Changes the table's partitions while nobody else reads or writes the table, in a short transaction. Null: somebody was
 * in the way (another node at the same, a vacuum, a long query or backup), and it is to be tried later.
 */
export async function whileAlone<T>(
  db: Db,
  table: PartitionedTable,
  change: (trx: Trx) => Promise<T>,
): Promise<T | null> {
  try {
    return await whileTheyStay(db, async (trx) => {
      await trx.raw(`set local lock_timeout = ${lockTimeoutMs}`);
      // Whoever goes through the table locks it before any partition.
      await trx.raw(`lock table only ${table} in access exclusive mode`);
      return change(trx);
    });
  } catch (error) {
    if ((error as { code?: string }).code === lockNotAvailable) return null;
    throw error;
  }
}
