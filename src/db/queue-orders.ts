/**
 * The operator's orders to the queue: retry, hold, release, cancel. Each delivery is moved for itself (the moves are in
 * queue/README.md), whether a server runs or not; a running one sees them when it next looks, within a second.
 *
 * What is being sent has a lease and is left alone: no order takes a mail out of a server's hands, so none can make it
 * lose, double or revive one. A selection is read in pages by id, outside of any transaction, and each page is moved
 * in a short transaction of its own that looks at every row again; so a million rows hold nobody up. An order that
 * breaks off has moved some rows and not others, and can be given again.
 */
import { setTimeout as pause } from 'node:timers/promises';
import type { Knex } from 'knex';
import { v7 as uuid } from 'uuid';
import { compareKey, domainOf } from '../address.ts';
import type { DeliveryStatus, EventType } from '../nouns.ts';
import { insertRows } from './insert.ts';
import type { Db, Trx } from './open.ts';
import { ofDestination } from './queue-view.ts';
import { touchEmails } from './touch.ts';

export type Order = 'retry' | 'hold' | 'release' | 'cancel';

/** All that is given must hold. */
export interface Selection {
  emailId?: string;
  /** A recipient's address, however it is written. */
  to?: string;
  domain?: string;
  destination?: string;
  orgId?: string;
  status?: DeliveryStatus;
}

export interface Given {
  order: Order;
  reason: string;
  now: number;
  /** Told between pages how many have been moved so far. */
  onProgress?(moved: number): void;
}

export interface Done {
  moved: number;
  /** Left alone, because they were being sent. */
  sending: number;
  /** Left alone, because the order is not for their state; of a whole queue only those that wait. */
  left: Partial<Record<DeliveryStatus, number>>;
}

/** Which states an order is for. */
export const movable: Record<Order, readonly DeliveryStatus[]> = {
  retry: ['queued', 'deferred'],
  hold: ['queued', 'deferred'],
  release: ['held'],
  cancel: ['queued', 'deferred', 'held'],
};

const pageSize = 1000;

/** SQLite has one writer at a time, and who waits for it asks again after this long or a little more. */
const breathMs = 20;

export async function giveOrder(db: Db, selection: Selection, given: Given): Promise<Done> {
  const matching = await matchingOf(db, selection);
  const left = await countOthers(db, matching, given.order);
  let moved = 0;
  for (let after: string | null = null; ; await pause(breathMs)) {
    const ids = await readPage(db, matching, given.order, after);
    moved += ids.length === 0 ? 0 : await db.transaction((trx) => movePage(trx, ids, given));
    if (ids.length < pageSize) break;
    given.onProgress?.(moved);
    after = ids.at(-1)!;
  }
  const [row] = await db('deliveries').where(matching).where({ status: 'sending' }).count('* as count');
  return { moved, sending: Number(row!.count), left };
}

type Matching = (query: Knex.QueryBuilder) => void;

async function matchingOf(db: Db, { to, destination, ...columns }: Selection): Promise<Matching> {
  const { emailId, domain, orgId, status } = columns;
  const plain: Matching = (query) => {
    if (emailId !== undefined) query.where('email_id', emailId);
    if (domain !== undefined) query.where('domain', domain);
    if (orgId !== undefined) query.where('org_id', orgId);
    if (status !== undefined) query.where('status', status);
    if (destination !== undefined) query.where(ofDestination(destination));
    // Of all mail there ever was, what is final is neither counted nor read.
    if (emailId === undefined) query.where(waits);
  };
  if (to === undefined) return plain;
  // No database compares addresses as we do, so it is asked how this one is written.
  const written: string[] = await db('deliveries')
    .where({ domain: domainOf(to) })
    .where(plain)
    .distinct('recipient')
    .pluck('recipient');
  const spellings = written.filter((recipient) => compareKey(recipient) === compareKey(to));
  return (query) => {
    plain(query);
    query.whereIn('recipient', spellings);
  };
}

async function countOthers(db: Db, matching: Matching, order: Order): Promise<Done['left']> {
  const rows = await db('deliveries')
    .where(matching)
    .whereNotIn('status', ['sending', ...movable[order]])
    .groupBy('status')
    .select('status')
    .count('* as count');
  return Object.fromEntries(rows.map(({ status, count }) => [status, Number(count)]));
}

function waits(query: Knex.QueryBuilder): void {
  query.whereNotNull('due_at').orWhereRaw("status = 'held'");
}

async function readPage(db: Db, matching: Matching, order: Order, after: string | null): Promise<string[]> {
  const query = db('deliveries').where(matching).where(movableBy(order)).orderBy('id').limit(pageSize);
  if (after !== null) query.where('id', '>', after);
  return query.pluck('id');
}

/** Neither leased nor final. */
function movableBy(order: Order): Matching {
  return (query) => {
    query.whereIn('status', movable[order]).whereNull('lease_owner');
  };
}

async function movePage(trx: Trx, ids: string[], { order, reason, now }: Given): Promise<number> {
  // What a server claims at this moment is its own: this waits for the claim, then finds the row leased.
  const rows = await trx('deliveries')
    .whereIn('id', ids)
    .where(movableBy(order))
    .orderBy('id')
    .forUpdate()
    .select('id', 'email_id', 'org_id', 'recipient');
  if (rows.length === 0) return 0;
  await trx('deliveries')
    .whereIn(
      'id',
      rows.map(({ id }) => id),
    )
    .where(movableBy(order))
    .update({ ...changes[order](trx, now), parked_at: null, updated_at: now });
  await touchEmails(
    trx,
    rows.map((row) => row.email_id),
    now,
  );
  const type = events[order];
  if (type === null) return rows.length;
  const data = JSON.stringify({ reason });
  await insertRows(
    trx,
    'events',
    rows.map(({ email_id, org_id, recipient }) => {
      return { id: uuid(), org_id, email_id, type, recipient, at: now, data };
    }),
  );
  return rows.length;
}

/** What the moved rows become; an expression sees the row as it was. */
const changes: Record<Order, (trx: Trx, now: number) => object> = {
  // Parked mail has been due since then, and what is due is due: neither loses its place.
  retry: (trx, now) => ({
    due_at: trx.raw('case when parked_at is not null then parked_at when due_at < ? then due_at else ? end', [
      now,
      now,
    ]),
  }),
  hold: () => ({ status: 'held', due_at: null }),
  // Held mail does not grow old: it gets back the time since it was held, which is when it was last changed.
  release: (trx, now) => ({
    status: trx.raw("case when attempts = 0 then 'queued' else 'deferred' end"),
    due_at: now,
    expires_at: trx.raw('expires_at + ? - updated_at', [now]),
  }),
  cancel: () => ({ status: 'canceled', due_at: null }),
};

const events: Record<Order, EventType | null> = {
  retry: null,
  hold: 'email.held',
  release: null,
  cancel: 'email.canceled',
};
