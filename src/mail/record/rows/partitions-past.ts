/**
 * Drops partitions in which all rows are old, which takes no time and frees their space. Partly old ones stay. An empty
 * partition takes the place of the dropped ones, for rows with older keys, such as those of a move from another database.
 */

import { settledPosition } from '#mail/record/rows/read-events.ts';
import type { Db } from '#platform/database/engine/open.ts';
import {
  boundName,
  createPartition,
  type Partition,
  type PartitionedTable,
  partitionColumn,
  partitionsOf,
  withStablePartitions,
  withTableLock,
} from '#platform/database/schema/partitions.ts';
import { timeOfId } from '#platform/database/tables/time-of-id.ts';

/** The column with the time of the row's event, which is never after the row was inserted. */
const times: Record<PartitionedTable, string> = { attempts: 'ended_at', emails: 'created_at', events: 'at' };

/** The clocks of nodes differ, and a row is committed a moment after its id was created. */
const slackMs = 60 * 60_000;

/** The youngest row is among the last of a partition, because only rows inserted at the same time are out of order. */
const lastRows = 100;

const restMs = 60_000;

/** Drops partitions without rows from after `until`; null: only empty partitions. Returns how many it dropped. */
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
    // Stable, because reading a partition that another node has dropped is an error.
    const seen = await withStablePartitions(db, (trx) => pastOf(trx, terms));
    if (seen === null || seen.length === 0) return 0;
    const dropped = await withTableLock(db, table, async (trx) => {
      // Read again, now that nothing can be inserted.
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

/** The first partitions in which all rows are old; none if that is only the empty one that replaced dropped ones. */
async function pastOf(db: Db, { table, now, until }: Terms): Promise<Partition[]> {
  const closed = table === 'events' ? await settledPosition(db) : now - slackMs;
  const past: Partition[] = [];
  let isWorthIt = false;
  for (const partition of await partitionsOf(db, table)) {
    // The partition is closed: no row can be added to it.
    if (partition.to === null || partition.to > closed) break;
    const youngest = await youngestOf(db, table, partition.name);
    if (youngest !== null && youngest >= until - slackMs) break;
    isWorthIt ||= youngest !== null || partition.from !== null;
    past.push(partition);
  }
  return isWorthIt ? past : [];
}

/** The time of its last row; null if it is empty. */
async function youngestOf(db: Db, table: PartitionedTable, name: string): Promise<number | null> {
  const rows: { id: string; time: number }[] = await db(name)
    .orderBy(partitionColumn(table), 'desc')
    .limit(lastRows)
    .select('id', { time: times[table] });
  return rows.length === 0 ? null : Math.max(...rows.flatMap(({ id, time }) => [timeOfId(id), time]));
}
