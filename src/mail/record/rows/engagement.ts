/**
 * Opens and clicks: records visits to tracking links, many in one transaction. The deliveries are locked while their counts
 * change, so the counts are exact with any number of nodes. A visit to a deleted delivery is ignored.
 */

import { recordVisit, type Tally, type Visit } from '#mail/record/visit.ts';
import { insertRows } from '#platform/database/engine/insert-rows.ts';
import type { Db, Trx } from '#platform/database/engine/open.ts';
import { inSharedCommit } from '#platform/database/engine/shared-commit.ts';
import { eventRow } from '#platform/database/tables/event-row.ts';

/** Returns for each visit whether its delivery exists. */
export async function recordVisits(db: Db, visits: Visit[]): Promise<boolean[]> {
  return inSharedCommit(db, async (trx) => {
    const deliveries = await lockDeliveries(trx, [...new Set(visits.map(({ deliveryId }) => deliveryId))]);
    const events: object[] = [];
    const known = visits.map((visit) => {
      const delivery = deliveries.get(visit.deliveryId);
      if (!delivery) return false;
      const { after, event } = recordVisit(delivery.visited, visit);
      delivery.visited = after;
      const type = visit.event === 'open' ? 'email.opened' : 'email.clicked';
      if (event) events.push(eventRow({ ...delivery, type, at: visit.at, data: event }));
      return true;
    });
    for (const [id, { visited }] of deliveries) {
      await trx('deliveries')
        .where({ id })
        .update({ ...tallyColumns('open', visited.open), ...tallyColumns('click', visited.click) });
    }
    await insertRows(trx, 'events', events);
    return known;
  });
}

async function lockDeliveries(trx: Trx, ids: string[]) {
  // Ordered, so that two nodes never deadlock.
  const rows = await trx('deliveries').whereIn('id', ids).orderBy('id').forUpdate();
  const deliveries = rows.map((row) => ({
    id: row.id as string,
    orgId: row.org_id,
    emailId: row.email_id,
    recipient: row.recipient,
    visited: {
      isSending: row.status === 'sending',
      deliveredAt: row.delivered_at,
      open: tallyFrom(row, 'open'),
      click: tallyFrom(row, 'click'),
    },
  }));
  return new Map(deliveries.map((delivery) => [delivery.id, delivery]));
}

// biome-ignore lint/suspicious/noExplicitAny: the driver's rows have no type
export function tallyFrom(row: any, event: Visit['event']): Tally {
  return {
    count: row[`${event}_count`],
    firstAt: row[`${event}_first_at`],
    lastAt: row[`${event}_last_at`],
    scans: row[`${event}_scans`],
  };
}

function tallyColumns(event: Visit['event'], { count, firstAt, lastAt, scans }: Tally): object {
  return {
    [`${event}_count`]: count,
    [`${event}_first_at`]: firstAt,
    [`${event}_last_at`]: lastAt,
    [`${event}_scans`]: scans,
  };
}
