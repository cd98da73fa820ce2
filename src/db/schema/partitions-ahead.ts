/**
 * Cuts the partitions that are to come, before anything is written to them. All nodes do it, one at a time, each a step
 * after a look at what is there; so it does not matter who dies in between.
 *
 * The last partition has no end and should be empty: it is given one, and a new last one follows it. Where it has rows
 * (all that there was before an upgrade; what came while nobody cut for very long) they would have to be looked at while
 * everybody waits, to prove that none is beyond the end. So that is proven before, by a constraint which is first held
 * to and then validated beside those who write, however long it takes. Its end is so far off that the constraint never
 * refuses a row; were it ever near, it would be given up.
 */
import type { Db, Trx } from '../engine/open.ts';
import { timeOfId } from '../events/time-of-id.ts';
import {
  boundFrom,
  boundName,
  boundText,
  createPartition,
  keyOf,
  type Partition,
  type PartitionedTable,
  partitionsOf,
  whileAlone,
} from './partitions.ts';

export interface AheadParts {
  db: Db;
  /** A connection that waits for as long as a statement takes. */
  openPatient(): Promise<Db>;
  now(): number;
  /** How much time a partition is for. */
  periods: Record<PartitionedTable, number>;
}

const dayMs = 86_400_000;
const restMs = 60_000;

/** At least so far ahead there are partitions that end. */
const minAheadMs = 3 * dayMs;
/** Events of a partition: some 40 MB. */
const minWidth = 100_000;
/** So much more is left before the end of a partition that has rows. */
const marginMs = 7 * dayMs;
const marginEvents = 5_000_000;

/** Answers 1 where there may be more to do. */
export function cutAhead(parts: AheadParts): () => Promise<number> {
  let restUntil = Number.NEGATIVE_INFINITY;
  return async () => {
    if (parts.now() < restUntil) return 0;
    for (const table of Object.keys(parts.periods) as PartitionedTable[])
      if (await step(parts, table)) return 1;
    restUntil = parts.now() + restMs;
    return 0;
  };
}

/** True: something was done, and the next step can be. */
async function step(
  { db, openPatient, now, periods }: AheadParts,
  table: PartitionedTable,
): Promise<boolean> {
  const last = (await partitionsOf(db, table)).at(-1)!;
  const reach = await reachOf(db, table, now(), periods[table]);
  const { reached, ahead } = reach;
  if (last.from !== null && last.from >= reached + ahead) return false;
  const end = await endOf(db, table, last);
  if (end && end.bound - reached < reach.margin / 2)
    return !!(await whileAlone(db, table, (trx) => dropEnd(trx, last)));
  if (end && !end.isValid) {
    await validate(openPatient, last);
    return true;
  }
  return !!(await whileAlone(db, table, (trx) => cut(trx, table, last.name, reach)));
}

interface Reach {
  /** Where the keys of new rows are now. */
  reached: number;
  /** What a partition spans. */
  width: number;
  ahead: number;
  margin: number;
}

async function reachOf(db: Db, table: PartitionedTable, now: number, periodMs: number): Promise<Reach> {
  if (table !== 'events')
    return { reached: now, width: periodMs, ahead: Math.max(periodMs, minAheadMs), margin: marginMs };
  const { rows } = await db.raw('select last_value from events_position_seq');
  const reached: number = rows[0].last_value;
  const width = Math.max(Math.ceil((await eventsAMs(db, reached, now, periodMs)) * periodMs), minWidth);
  return { reached, width, ahead: width, margin: marginEvents + width };
}

/** As events came since the beginning of a partition that is half a period or more in the past. */
async function eventsAMs(db: Db, reached: number, now: number, periodMs: number): Promise<number> {
  for (const { from } of (await partitionsOf(db, 'events')).reverse()) {
    const first = await db('events')
      .where('position', '>=', from ?? 0)
      .orderBy('position')
      .first('position', 'at');
    if (first && first.at <= now - periodMs / 2) return (reached - first.position) / (now - first.at);
  }
  return 0;
}

const endName = ({ name }: Partition) => `${name}_end`;

/** The constraint that gives it an end; null: it has none. */
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

/** Looks again, for another node may have been first. */
async function cut(trx: Trx, table: PartitionedTable, name: string, reach: Reach): Promise<boolean> {
  const last = (await partitionsOf(trx, table)).at(-1)!;
  if (last.name !== name) return true;
  const end = await endOf(trx, table, last);
  const key = keyOf(table);
  const newest = await trx(name).orderBy(key, 'desc').first(key);
  if (end ? !end.isValid : newest) {
    if (!end) await giveEnd(trx, table, last, reach, newest[key]);
    return true;
  }
  const bound = end?.bound ?? rounded(table, Math.max(last.from ?? 0, reach.reached) + reach.width);
  const from = last.from === null ? 'minvalue' : boundText(table, last.from);
  await trx.raw(`alter table ${table} detach partition ${name}`);
  await trx.raw(
    `alter table ${table} attach partition ${name} for values from (${from}) to (${boundText(table, bound)})`,
  );
  if (end) await dropEnd(trx, last);
  await createPartition(trx, table, {
    name: `${table}_${boundName(table, bound)}`,
    from: bound,
    to: null,
  });
  return true;
}

async function giveEnd(
  trx: Trx,
  table: PartitionedTable,
  last: Partition,
  reach: Reach,
  newest: string | number,
) {
  const reached = Math.max(reach.reached, typeof newest === 'number' ? newest : timeOfId(newest));
  const bound = rounded(table, reached + reach.width + reach.margin);
  await trx.raw(
    `alter table ${last.name} add constraint ${endName(last)} check (${keyOf(table)} < ${boundText(table, bound)}) not valid`,
  );
}

async function dropEnd(trx: Trx, last: Partition): Promise<boolean> {
  await trx.raw(`alter table ${last.name} drop constraint if exists ${endName(last)}`);
  return true;
}

const undefinedObject = '42704';

/** Another node may be at the same: it is waited for, and when it has cut there, the constraint is gone. */
async function validate(openPatient: AheadParts['openPatient'], last: Partition): Promise<void> {
  const patient = await openPatient();
  try {
    await patient.raw(`alter table ${last.name} validate constraint ${endName(last)}`);
  } catch (error) {
    if ((error as { code?: string }).code !== undefinedObject) throw error;
  } finally {
    await patient.destroy();
  }
}

/** Days are cut at midnight (UTC). */
function rounded(table: PartitionedTable, bound: number): number {
  return table === 'events' ? bound : Math.ceil(bound / dayMs) * dayMs;
}
