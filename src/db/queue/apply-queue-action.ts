/**
 * The operator's queue actions: retry, hold, release, cancel. Each delivery changes its state separately (transitions:
 * queue/README.md), whether a server runs or not; a running server notices within a second.
 *
 * A delivery being sent has a lease and is left alone, so no action can lose, duplicate or revive a mail. The selection is
 * read in pages, outside of any transaction; each page is changed in a short transaction that checks every row again, so
 * that a million rows block nobody. An interrupted action has changed some rows, and can be repeated.
 */

import { setTimeout as pause } from 'node:timers/promises';
import type { Knex } from 'knex';
import { newId } from '../../base/id.ts';
import type { DeliveryStatus, EventType } from '../../glossary.ts';
import { compareKey, domainOf } from '../../mail/address.ts';
import { insertRows } from '../engine/insert-rows.ts';
import type { Db, Trx } from '../engine/open.ts';
import { bumpUpdatedAt } from '../events/bump-updated-at.ts';
import { ofDestination } from './queue-view.ts';
import { everyPool, inPool, type Pool } from './unfinished-deliveries.ts';

export type QueueAction = 'retry' | 'hold' | 'release' | 'cancel';

/** A delivery must match all of the given members. */
export interface Selection {
  emailId?: string;
  /** A recipient's address, however it is written. */
  to?: string;
  domain?: string;
  destination?: string;
  orgId?: string;
  status?: DeliveryStatus;
}

export interface QueueActionRequest {
  order: QueueAction;
  reason: string;
  now: number;
  /** Called between pages with the number of changed deliveries. */
  onProgress?(moved: number): void;
  /** Stops the action between pages. */
  signal?: AbortSignal;
}

export interface QueueActionResult {
  moved: number;
  /** Left alone, because they were being sent. */
  sending: number;
  /** Left alone, because the order is not for their state; of a whole queue only those that wait. */
  left: Partial<Record<DeliveryStatus, number>>;
}

/** Which states an order is for. */
export const movable: Record<QueueAction, readonly DeliveryStatus[]> = {
  retry: ['queued', 'deferred'],
  hold: ['queued', 'deferred'],
  release: ['held'],
  cancel: ['queued', 'deferred', 'held'],
};

const pageSize = 1000;

/** SQLite has one writer at a time, and who waits for it asks again after this long or a little more. */
const breathMs = 20;

export async function applyQueueAction(
  db: Db,
  selection: Selection,
  given: QueueActionRequest,
): Promise<QueueActionResult> {
  const { order } = given;
  const matching = await matchingOf(db, selection);
  const left = await countOthers(db, selection, matching, order);
  let moved = 0;
  for (const pool of selection.emailId === undefined ? poolsOf[order] : [null]) {
    for (let after: Place | null = null; ; await pause(breathMs)) {
      given.signal?.throwIfAborted();
      const rows: Place[] = await readPage(db, matching, order, { pool, after });
      moved += rows.length === 0 ? 0 : await db.transaction((trx) => movePage(trx, rows, given));
      if (rows.length < pageSize) break;
      given.onProgress?.(moved);
      after = rows.at(-1)!;
    }
  }
  const [row] = await db('deliveries').where(matching).where(inPool('leased')).count('* as count');
  return { moved, sending: Number(row!.count), left };
}

/** What an order would move if it were given now, and what it would leave alone. */
export async function dryRunQueueAction(
  db: Db,
  selection: Selection,
  order: QueueAction,
): Promise<QueueActionResult> {
  const matching = await matchingOf(db, selection);
  const left = await countOthers(db, selection, matching, order);
  const count = async (pool: Pool | null, which: Matching) => {
    const query = db('deliveries').where(matching).where(which);
    if (pool) query.where(inPool(pool));
    const [row] = await query.count('* as count');
    return Number(row!.count);
  };
  const pools = selection.emailId === undefined ? poolsOf[order] : [null];
  const counts = await Promise.all(pools.map((pool) => count(pool, movableBy(order))));
  const moved = counts.reduce((all, each) => all + each, 0);
  return { moved, sending: await count(null, inPool('leased')), left };
}

type Matching = (query: Knex.QueryBuilder) => void;

/** Where the order finds what it is for; of a single email in a look at all that it has. */
const poolsOf: Record<QueueAction, Pool[]> = {
  ...{ retry: ['waiting'], hold: ['waiting'], release: ['held'], cancel: ['waiting', 'held'] },
};

async function matchingOf(db: Db, { to, destination, ...columns }: Selection): Promise<Matching> {
  const { emailId, domain, orgId, status } = columns;
  // For the pages of a long queue, the index by domain would be read from its beginning for each of them.
  const itsDomain = "coalesce(domain, '')";
  const plain: Matching = (query) => {
    if (emailId !== undefined) query.where('email_id', emailId);
    if (domain !== undefined) query.whereRaw(`${itsDomain} = ?`, [domain]);
    if (orgId !== undefined) query.where('org_id', orgId);
    if (status !== undefined) query.where('status', status);
    if (destination !== undefined) query.where(ofDestination(destination, itsDomain));
  };
  if (to === undefined) return plain;
  // No database compares addresses as we do, so it is asked how this one is written.
  const written = new Set<string>();
  for (const pool of emailId === undefined ? everyPool : [null]) {
    const query = db('deliveries')
      .where({ domain: domainOf(to) })
      .where(plain);
    if (pool) query.where(inPool(pool));
    for (const recipient of await query.distinct('recipient').pluck('recipient')) written.add(recipient);
  }
  const spellings = [...written].filter((recipient) => compareKey(recipient) === compareKey(to));
  return (query) => {
    plain(query);
    query.whereIn('recipient', spellings);
  };
}

/** Of a whole queue, what is final is neither counted nor read. */
async function countOthers(
  db: Db,
  { emailId }: Selection,
  matching: Matching,
  order: QueueAction,
): Promise<QueueActionResult['left']> {
  const others = everyPool.filter((pool) => pool !== 'leased' && !poolsOf[order].includes(pool));
  const counts: QueueActionResult['left'] = {};
  for (const pool of emailId === undefined ? others : [null]) {
    const query = db('deliveries')
      .where(matching)
      .whereNotIn('status', ['sending', ...movable[order]])
      .groupBy('status')
      .select('status')
      .count('* as count');
    if (pool) query.where(inPool(pool));
    for (const { status, count } of await query) counts[status as DeliveryStatus] = Number(count);
  }
  return counts;
}

interface Place {
  id: string;
  expires_at: number;
}

/** In the order of the index that leads through the pool, which no order moves rows within. */
function readPage(
  db: Db,
  matching: Matching,
  order: QueueAction,
  { pool, after }: { pool: Pool | null; after: Place | null },
): Promise<Place[]> {
  const query = db('deliveries').where(matching).where(movableBy(order)).limit(pageSize);
  if (pool) query.where(inPool(pool));
  const isWaiting = pool === 'waiting';
  if (isWaiting) query.orderBy('expires_at');
  if (after && isWaiting) query.whereRaw('(expires_at, id) > (?, ?)', [after.expires_at, after.id]);
  else if (after) query.where('id', '>', after.id);
  return query.orderBy('id').select('id', 'expires_at') as unknown as Promise<Place[]>;
}

/** Neither leased nor final. */
function movableBy(order: QueueAction): Matching {
  return (query) => {
    query.whereIn('status', movable[order]).whereNull('lease_owner');
  };
}

async function movePage(
  trx: Trx,
  page: Place[],
  { order, reason, now }: QueueActionRequest,
): Promise<number> {
  // What a server claims at this moment is its own: this waits for the claim, then finds the row leased.
  const rows = await trx('deliveries')
    .whereIn(
      'id',
      page.map(({ id }) => id),
    )
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
    .update({ ...changes[order](trx, now), updated_at: now });
  await bumpUpdatedAt(
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
      return { id: newId(), org_id, email_id, type, recipient, at: now, data };
    }),
  );
  return rows.length;
}

/** How long a row has waited in a pause since it was last changed. */
const inPause = `select case when paused_at > deliveries.updated_at then ? - paused_at else ? - deliveries.updated_at end
  from organizations where organizations.id = deliveries.org_id and paused_at is not null`;

/** What the moved rows become; an expression sees the row as it was. */
const changes: Record<QueueAction, (trx: Trx, now: number) => object> = {
  // What is due is due, and does not lose its place. Mail of a paused organization is as old as it was (db/accounts/pauses.ts).
  retry: (trx, now) => ({
    due_at: trx.raw('case when due_at < ? then due_at else ? end', [now, now]),
    expires_at: trx.raw(`expires_at + coalesce((${inPause}), 0)`, [now, now]),
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

const events: Record<QueueAction, EventType | null> = {
  retry: null,
  hold: 'email.held',
  release: null,
  cancel: 'email.canceled',
};
