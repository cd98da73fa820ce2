/**
 * Drops the partitions in which all is old: at once, whatever there was in them, and the space is free. What is partly
 * old stays until all is. The first partition that is left then begins where the dropped ended; what is written with
 * a key from before that, as a move from another database does, finds an empty partition in their place.
 */

import type { Db } from '../engine/open.ts';
import { settledPosition } from '../events/read-events.ts';
import { timeOfId } from '../events/time-of-id.ts';
import {
  boundName,
  createPartition,
  keyOf,
  type Partition,
  type PartitionedTable,
  partitionsOf,
  whileAlone,
  whileTheyStay,
} from './partitions.ts';

/** When what a row tells of happened; never after the row was made. */
const times: Record<PartitionedTable, string> = { attempts: 'ended_at', emails: 'created_at', events: 'at' };

/** The clocks of nodes differ, and a row is committed a moment after it was made. */
const slackMs = 60 * 60_000;

/** The last rows of a partition, of which the youngest is taken: they are in order but for what was written at once. */
const looksAt = 100;

const restMs = 60_000;

/** How many partitions it has dropped in which nothing is younger than `until` says; null: only what is empty goes. */
export function dropPast(
  db: Db,
  table: PartitionedTable,
  now: () => number,
  until: () => number | null,
): () => Promise<number> {
  let restUntil = Number.NEGATIVE_INFINITY;
  return async () => {
    if (now() < restUntil) return 0;
    restUntil = now() + restMs;
    const terms = { table, now: now(), until: until() ?? Number.NEGATIVE_INFINITY };
    // Each partition is read by its name, which is an error once another node has dropped it.
    const seen = await whileTheyStay(db, (trx) => pastOf(trx, terms));
    if (seen === null || seen.length === 0) return 0;
    const dropped = await whileAlone(db, table, async (trx) => {
      // Nobody adds to them now.
      const past = await pastOf(trx, terms);
      if (past.length === 0) return 0;
      for (const { name } of past) await trx.raw(`drop table ${name}`);
      const { to } = past.at(-1)!;
      await createPartition(trx, table, { name: `${table}_before_${boundName(table, to!)}`, from: null, to });
      return past.length;
    });
    return dropped ?? 0;
  };
}

interface Terms {
  table: PartitionedTable;
  now: number;
  until: number;
}

/** From the first on, those in which all is old. The empty one that takes the place of what was dropped is none by itself. */
async function pastOf(db: Db, { table, now, until }: Terms): Promise<Partition[]> {
  const closed = table === 'events' ? await settledPosition(db) : now - slackMs;
  const past: Partition[] = [];
  let isWorthIt = false;
  for (const partition of await partitionsOf(db, table)) {
    // Another bound says when the rows were made; this one, that none is to come.
    if (partition.to === null || partition.to > closed) break;
    const youngest = await youngestOf(db, table, partition.name);
    if (youngest !== null && youngest >= until - slackMs) break;
    isWorthIt ||= youngest !== null || partition.from !== null;
    past.push(partition);
  }
  return isWorthIt ? past : [];
}

/** When the last of its rows was made; null: it has none. */
async function youngestOf(db: Db, table: PartitionedTable, name: string): Promise<number | null> {
  const rows: { id: string; time: number }[] = await db(name)
    .orderBy(keyOf(table), 'desc')
    .limit(looksAt)
    .select('id', { time: times[table] });
  return rows.length === 0 ? null : Math.max(...rows.flatMap(({ id, time }) => [timeOfId(id), time]));
}
