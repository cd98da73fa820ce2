/**
 * Creates partitions ahead, before rows are inserted into them. All nodes do this, one at a time, and each step starts from the
 * partitions that exist, so a crash between two steps does no harm.
 *
 * The last partition is open-ended and should be empty: it gets an end, and a new last one follows it. If it has rows (from
 * a move, or because this job has not run for long), PostgreSQL would have to scan them under an exclusive lock to
 * prove that none is after the end. A CHECK constraint proves it beforehand: it is added without validation and then validated
 * while others write. Its bound is so far ahead that it never refuses a row; if it comes near, the constraint is dropped.
 */
import type { Db, Trx } from '#platform/database/engine/open.ts';
import { timeOfId } from '#platform/database/tables/time-of-id.ts';
import {
  boundFrom,
  boundName,
  boundText,
  createPartition,
  type Partition,
  type PartitionedTable,
  partitionColumn,
  partitionsOf,
  withTableLock,
} from './partitions.ts';

export interface AheadParts {
  db: Db;
  /** Opens a connection without a statement timeout. */
  openWithoutTimeout(): Promise<Db>;
  now(): number;
  /** The time span of a partition. */
  periods: Record<PartitionedTable, number>;
}

const dayMs = 86_400_000;
const restMs = 60_000;

/** Partitions with an end exist at least this far ahead. */
const minAheadMs = 3 * dayMs;
/** Minimum number of events in a partition: some 40 MB. */
const minWidth = 100_000;
/** Additional distance to the end of a partition that has rows. */
const marginMs = 7 * dayMs;
const marginEvents = 5_000_000;

/** Each call does one step; it returns 1 if there may be more to do. */
export function createAhead(parts: AheadParts): () => Promise<number> {
  let restUntil = Number.NEGATIVE_INFINITY;
  return async () => {
    if (parts.now() < restUntil) return 0;
    for (const table of Object.keys(parts.periods) as PartitionedTable[])
      if (await step(parts, table)) return 1;
    restUntil = parts.now() + restMs;
    return 0;
  };
}

/** True if something was done, so that the next step may follow. */
async function step(
  { db, openWithoutTimeout, now, periods }: AheadParts,
  table: PartitionedTable,
): Promise<boolean> {
  const plan = await planOf(db, table, now(), periods[table]);
  const last = await lastPartition(db, table);
  if (last.from !== null && last.from >= plan.newestKey + plan.ahead) return false;
  const next = await nextStep(db, table, last, plan);
  if (next === 'validate the end') {
    await validateEnd(openWithoutTimeout, last);
    return true;
  }
  const done = await withTableLock(db, table, async (trx) => {
    // Another node may have done a step meanwhile.
    const isStillLast = (await lastPartition(trx, table)).name === last.name;
    if (isStillLast && (await nextStep(trx, table, last, plan)) === next)
      await steps[next](trx, table, last, plan);
    return true;
  });
  return done === true;
}

type Step = 'give an end' | 'validate the end' | 'drop the end' | 'split';

/** The step that the last partition needs so that another one can follow it. */
async function nextStep(db: Db, table: PartitionedTable, last: Partition, plan: Plan): Promise<Step> {
  const end = await endOf(db, table, last);
  if (!end) return (await newestIn(db, table, last)) === null ? 'split' : 'give an end';
  if (end.bound - plan.newestKey < plan.margin / 2) return 'drop the end';
  return end.isValid ? 'split' : 'validate the end';
}

const steps: Record<
  Exclude<Step, 'validate the end'>,
  (trx: Trx, table: PartitionedTable, last: Partition, plan: Plan) => Promise<void>
> = { 'give an end': giveEnd, 'drop the end': dropEnd, split };

async function lastPartition(db: Db, table: PartitionedTable): Promise<Partition> {
  return (await partitionsOf(db, table)).at(-1)!;
}

/** How far the partitions must reach. */
interface Plan {
  /** The key of new rows now. */
  newestKey: number;
  /** The span of a partition. */
  width: number;
  ahead: number;
  margin: number;
}

async function planOf(db: Db, table: PartitionedTable, now: number, periodMs: number): Promise<Plan> {
  if (table !== 'events')
    return { newestKey: now, width: periodMs, ahead: Math.max(periodMs, minAheadMs), margin: marginMs };
  const { rows } = await db.raw('select last_value from events_position_seq');
  const newestKey: number = rows[0].last_value;
  const width = Math.max(Math.ceil((await eventsAMs(db, newestKey, now, periodMs)) * periodMs), minWidth);
  return { newestKey, width, ahead: width, margin: marginEvents + width };
}

/** The rate of events since the start of a partition that began at least half a period ago. */
async function eventsAMs(db: Db, newestKey: number, now: number, periodMs: number): Promise<number> {
  for (const { from } of (await partitionsOf(db, 'events')).reverse()) {
    const first = await db('events')
      .where('position', '>=', from ?? 0)
      .orderBy('position')
      .first('position', 'at');
    if (first && first.at <= now - periodMs / 2) return (newestKey - first.position) / (now - first.at);
  }
  return 0;
}

const endName = ({ name }: Partition) => `${name}_end`;

/** The constraint that gives the partition an end; null if there is none. */
async function endOf(
  db: Db,
  table: PartitionedTable,
  last: Partition,
): Promise<{ bound: number; isValid: boolean } | null> {
  const row = await db('pg_constraint')
    .where({ conname: endName(last) })
    .whereRaw('conrelid = ?::regclass', [last.name])
    .first('convalidated', db.raw('pg_get_constraintdef(oid) as def'));
  if (!row) return null;
  return { bound: boundFrom(table, /< '?([\da-f-]+)/.exec(row.def)![1]!)!, isValid: row.convalidated };
}

/** The partition gets its end as its bound, and a new last one begins there. */
async function split(trx: Trx, table: PartitionedTable, last: Partition, plan: Plan): Promise<void> {
  const end = await endOf(trx, table, last);
  const bound = end?.bound ?? rounded(table, Math.max(last.from ?? 0, plan.newestKey) + plan.width);
  const from = last.from === null ? 'minvalue' : boundText(table, last.from);
  await trx.raw(`alter table ${table} detach partition ${last.name}`);
  await trx.raw(
    `alter table ${table} attach partition ${last.name} for values from (${from}) to (${boundText(table, bound)})`,
  );
  await dropEnd(trx, table, last);
  await createPartition(trx, table, {
    name: `${table}_${boundName(table, bound)}`,
    from: bound,
    to: null,
  });
}

async function giveEnd(trx: Trx, table: PartitionedTable, last: Partition, plan: Plan): Promise<void> {
  const newest = (await newestIn(trx, table, last))!;
  const newestKey = Math.max(plan.newestKey, typeof newest === 'number' ? newest : timeOfId(newest));
  const bound = rounded(table, newestKey + plan.width + plan.margin);
  await trx.raw(
    `alter table ${last.name} add constraint ${endName(last)} check (${partitionColumn(table)} < ${boundText(table, bound)}) not valid`,
  );
}

async function dropEnd(trx: Trx, _table: PartitionedTable, last: Partition): Promise<void> {
  await trx.raw(`alter table ${last.name} drop constraint if exists ${endName(last)}`);
}

/** The greatest position or id in a partition; null: it has no rows. */
async function newestIn(
  db: Db,
  table: PartitionedTable,
  { name }: Partition,
): Promise<string | number | null> {
  const key = partitionColumn(table);
  const row = await db(name).orderBy(key, 'desc').first(key);
  return row ? row[key] : null;
}

const undefinedObject = '42704';

/** Waits if another node does the same. If that node has then set the partition's end, the constraint does not exist. */
async function validateEnd(
  openWithoutTimeout: AheadParts['openWithoutTimeout'],
  last: Partition,
): Promise<void> {
  const patient = await openWithoutTimeout();
  try {
    await patient.raw(`alter table ${last.name} validate constraint ${endName(last)}`);
  } catch (error) {
    if ((error as { code?: string }).code !== undefinedObject) throw error;
  } finally {
    await patient.destroy();
  }
}

/** Bounds by time are at midnight (UTC). */
function rounded(table: PartitionedTable, bound: number): number {
  return table === 'events' ? bound : Math.ceil(bound / dayMs) * dayMs;
}
