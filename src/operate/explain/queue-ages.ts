/** What waits where, by its age as Postfix's qshape has it: as the command line and the dashboard show it. */
import type { Db } from '../../db/engine/open.ts';
import { readDestinationStatuses } from '../../db/queue/destination-status-rows.ts';
import { summarizeQueue } from '../../db/queue/queue-view.ts';
import { type QueueRow, queueRows } from './queue-rows-by-destination.ts';

/** qshape's: each twice the one before, in minutes. */
const ages = [5, 10, 20, 40, 80, 160, 320];
export const ageNames = [...ages.map((minutes) => `${minutes}m`), 'older'];

/** What has waited longest comes first. */
export async function readSummary(
  db: Db,
  { now, isByDomain = false, served }: { now: number; isByDomain?: boolean; served?: boolean },
): Promise<QueueRow[]> {
  const bounds = ages.map((minutes) => minutes * 60_000);
  const queues = await summarizeQueue(db, { now, bounds });
  return queueRows(queues, await readDestinationStatuses(db, now, served), isByDomain, now);
}
