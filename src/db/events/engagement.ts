/**
 * Opens and clicks: writes visits to tracking links, many of them in one transaction. A delivery is locked while its
 * books move, so that the counts are exact on any number of nodes. A visit to a delivery that is gone is forgotten.
 */

import { newId } from '../../base/id.ts';
import { recordVisit, type Tally, type Visit, type Visited } from '../../tracking/visit.ts';
import { insertRows } from '../engine/insert-rows.ts';
import type { Db, Trx } from '../engine/open.ts';
import { inSharedCommit } from '../engine/shared-commit.ts';

/** For each visit whether there is such a delivery. */
export async function recordVisits(db: Db, visits: Visit[]): Promise<boolean[]> {
  return inSharedCommit(db, async (trx) => {
    const books = await openBooks(trx, [...new Set(visits.map(({ deliveryId }) => deliveryId))]);
    const events: object[] = [];
    const known = visits.map((visit) => {
      const book = books.get(visit.deliveryId);
      if (!book) return false;
      const { after, event } = recordVisit(book.visited, visit);
      book.visited = after;
      if (event) events.push(eventRow(book, visit, event));
      return true;
    });
    for (const [id, { visited }] of books) {
      await trx('deliveries')
        .where({ id })
        .update({ ...tallyColumns('open', visited.open), ...tallyColumns('click', visited.click) });
    }
    await insertRows(trx, 'events', events);
    return known;
  });
}

interface Book {
  orgId: string;
  emailId: string;
  recipient: string;
  visited: Visited;
}

async function openBooks(trx: Trx, ids: string[]): Promise<Map<string, Book>> {
  // In one order everywhere, so that two nodes never wait for each other.
  const rows = await trx('deliveries').whereIn('id', ids).orderBy('id').forUpdate();
  return new Map(
    rows.map((row) => [
      row.id,
      {
        orgId: row.org_id,
        emailId: row.email_id,
        recipient: row.recipient,
        visited: {
          isSending: row.status === 'sending',
          deliveredAt: row.delivered_at,
          open: tallyFrom(row, 'open'),
          click: tallyFrom(row, 'click'),
        },
      },
    ]),
  );
}

function eventRow({ orgId, emailId, recipient }: Book, visit: Visit, data: object): object {
  return {
    id: newId(),
    org_id: orgId,
    email_id: emailId,
    type: visit.event === 'open' ? 'email.opened' : 'email.clicked',
    recipient,
    at: visit.at,
    data: JSON.stringify(data),
  };
}

// biome-ignore lint/suspicious/noExplicitAny: a row is what the driver gives
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
