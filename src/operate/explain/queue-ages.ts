/** The queue by destination and age, in the age groups of Postfix's qshape, for the command line and the dashboard. */
import type { Db } from '../../db/engine/open.ts';
import { readDestinationStatuses } from '../../db/queue/destination-status-rows.ts';
import { summarizeQueue } from '../../db/queue/queue-view.ts';
import { type QueueRow, queueRows } from './queue-rows-by-destination.ts';

/** In minutes. */
const ages = [5, 10, 20, 40, 80, 160, 320];
export const ageNames = [...ages.map((minutes) => `${minutes}m`), 'older'];

/** The destination whose mail has waited longest comes first. */
export async function readSummary(
  db: Db,
  { now, isByDomain = false, served }: { now: number; isByDomain?: boolean; served?: boolean },
): Promise<QueueRow[]> {
  const bounds = ages.map((minutes) => minutes * 60_000);
  const queues = await summarizeQueue(db, { now, bounds });
  return queueRows(queues, await readDestinationStatuses(db, now, served), isByDomain, now);
}
