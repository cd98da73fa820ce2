/**
 * The queue actions of the operator (retry, hold, release, cancel) and of the sender (cancel). Each delivery changes its
 * state separately (transitions: mail/queue/README.md), whether a server runs or not; a running server notices within a second.
 *
 * A delivery being sent has a lease and is left alone, so no action can lose, duplicate or revive a mail. The selection is
 * read in pages, outside of any transaction; each page is changed in a short transaction that checks every row again, so that
 * a million rows block no other work. An interrupted action has changed some rows, and can be repeated.
 */

import { setTimeout as pause } from 'node:timers/promises';
import type { Knex } from 'knex';
import { refund } from '#accounts/rows/credit-ledger.ts';
import { insertRows } from '#platform/database/engine/insert-rows.ts';
import { countOf } from '#platform/database/engine/json-rows.ts';
import type { Db, Trx } from '#platform/database/engine/open.ts';
import { bumpUpdatedAt } from '#platform/database/tables/bump-updated-at.ts';
import { eventRow } from '#platform/database/tables/event-row.ts';
import type { Grouped } from '#platform/database/tables/mail-group.ts';
import { emails } from '#platform/database/tables/mail-tables.ts';
import { emptyServerMessages } from '#platform/database/tables/messages.ts';
import { everyStage, inStage, type Stage } from '#platform/database/tables/unfinished-deliveries.ts';
import { compareKey, domainOf } from '#platform/values/address.ts';
import type { DeliveryStatus } from '#platform/values/glossary.ts';
import { ofDestination } from './queue-view.ts';

export type QueueAction = 'retry' | 'hold' | 'release' | 'cancel';

/** A delivery must match all of the given members. */
export interface Selection {
  emailId?: string;
  /** A recipient's address, in any spelling. */
  to?: string;
  domain?: string;
  destination?: string;
  orgId?: string;
  status?: DeliveryStatus;
}

export interface QueueActionRequest {
  action: QueueAction;
  reason: string;
  /** The sender, not the operator, wants it. */
  bySender?: boolean;
  /** An auto-pause wants it (mail/record/auto-pause/): it releases only what an auto-pause holds. */
  forPause?: ForPause;
  now: number;
  /** Called between pages with the number of changed deliveries. */
  onProgress?(changed: number): void;
  /** Stops the action between pages. */
  signal?: AbortSignal;
}

interface ForPause {
  id: string;
  isMeant(mail: Grouped): boolean;
  /** Asked in the transaction of each page, until whose end the answer holds; false: nothing more is changed. */
  isCurrent(trx: Trx): Promise<boolean>;
}

export interface QueueActionResult {
  changed: number;
  /** Unchanged, because they were being sent. */
  sending: number;
  /** Unchanged, because the action does not apply to their state; of a whole queue, only unfinished deliveries. */
  left: Partial<Record<DeliveryStatus, number>>;
}

/** The states that an action applies to. */
export const changeable: Record<QueueAction, readonly DeliveryStatus[]> = {
  retry: ['queued', 'deferred'],
  hold: ['queued', 'deferred', 'scheduled'],
  release: ['held'],
  cancel: ['queued', 'deferred', 'held', 'scheduled'],
};

const pageSize = 1000;

/** SQLite has one writer at a time; another writer that waits for it retries after this long or a little more. */
const writerPauseMs = 20;

export async function applyQueueAction(
  db: Db,
  selection: Selection,
  request: QueueActionRequest,
): Promise<QueueActionResult> {
  const { action } = request;
  const matching = await matchingOf(db, selection);
  const left = await countOthers(db, selection, matching, action);
  let changed = 0;
  for (const stage of stagesOf(selection, sourceStages[action])) {
    for (let after: Position | null = null; ; await pause(writerPauseMs)) {
      request.signal?.throwIfAborted();
      const rows: Position[] = await readPage(db, matching, request, { stage, after });
      changed += rows.length === 0 ? 0 : await db.transaction((trx) => changePage(trx, rows, request));
      if (rows.length < pageSize) break;
      request.onProgress?.(changed);
      after = rows.at(-1)!;
    }
  }
  return { changed, sending: await countOf(db('deliveries').where(matching).where(inStage('leased'))), left };
}

/** Counts what an action would change now, and what it would leave unchanged. */
export async function dryRunQueueAction(
  db: Db,
  selection: Selection,
  action: QueueAction,
): Promise<QueueActionResult> {
  const matching = await matchingOf(db, selection);
  const left = await countOthers(db, selection, matching, action);
  const counts = stagesOf(selection, sourceStages[action]).map((stage) =>
    countOf(db('deliveries').where(matching).where(inStage(stage)).where(changeableBy({ action }))),
  );
  const changed = (await Promise.all(counts)).reduce((sum, count) => sum + count, 0);
  return { changed, sending: await countOf(db('deliveries').where(matching).where(inStage('leased'))), left };
}

type Matching = (query: Knex.QueryBuilder) => void;

/** The stages with the deliveries that an action applies to. */
const sourceStages: Record<QueueAction, Stage[]> = {
  retry: ['waiting'],
  hold: ['waiting', 'scheduled'],
  release: ['held'],
  cancel: ['waiting', 'held', 'scheduled'],
};

/** The deliveries of a single email are few, so they are searched without a stage. */
const stagesOf = ({ emailId }: Selection, stages: Stage[]) => (emailId === undefined ? stages : [null]);

async function matchingOf(db: Db, selection: Selection): Promise<Matching> {
  const { to, destination, emailId, domain, orgId, status } = selection;
  // An expression, so that the index by domain is not used: each page of a long queue would read it from its beginning.
  const itsDomain = "coalesce(domain, '')";
  const plain: Matching = (query) => {
    if (emailId !== undefined) query.where('email_id', emailId);
    if (domain !== undefined) query.whereRaw(`${itsDomain} = ?`, [domain]);
    if (orgId !== undefined) query.where('org_id', orgId);
    if (status !== undefined) query.where('status', status);
    if (destination !== undefined) query.where(ofDestination(destination, itsDomain));
  };
  if (to === undefined) return plain;
  // The databases cannot compare normalized addresses, so all spellings of this one are looked up first.
  const recipients = new Set<string>();
  for (const stage of stagesOf(selection, everyStage)) {
    const query = db('deliveries')
      .where({ domain: domainOf(to) })
      .where(plain)
      .where(inStage(stage));
    for (const recipient of await query.distinct('recipient').pluck('recipient')) recipients.add(recipient);
  }
  const spellings = [...recipients].filter((recipient) => compareKey(recipient) === compareKey(to));
  return (query) => {
    plain(query);
    query.whereIn('recipient', spellings);
  };
}

/** If the selection is the whole queue, final deliveries are neither counted nor read. */
async function countOthers(
  db: Db,
  selection: Selection,
  matching: Matching,
  action: QueueAction,
): Promise<QueueActionResult['left']> {
  const others = everyStage.filter((stage) => stage !== 'leased' && !sourceStages[action].includes(stage));
  const counts: QueueActionResult['left'] = {};
  for (const stage of stagesOf(selection, others)) {
    const query = db('deliveries')
      .where(matching)
      .where(inStage(stage))
      .whereNotIn('status', ['sending', ...changeable[action]])
      .groupBy('status')
      .select('status')
      .count('* as count');
    for (const { status, count } of await query) counts[status as DeliveryStatus] = Number(count);
  }
  return counts;
}

interface Position {
  id: string;
  expires_at: number;
  due_at: number | null;
}

/** The column that the index of the stage begins with, besides the id. */
const orderOf: Partial<Record<Stage, 'expires_at' | 'due_at'>> = {
  waiting: 'expires_at',
  scheduled: 'due_at',
};

/** In the order of the stage's index, in which no action changes the position of a row. */
function readPage(
  db: Db,
  matching: Matching,
  request: Changing,
  { stage, after }: { stage: Stage | null; after: Position | null },
): Promise<Position[]> {
  const query = db('deliveries')
    .where(matching)
    .where(changeableBy(request))
    .where(inStage(stage))
    .limit(pageSize);
  const column = stage && orderOf[stage];
  if (column) query.orderBy(column);
  if (after && column) query.whereRaw(`(${column}, id) > (?, ?)`, [after[column], after.id]);
  else if (after) query.where('id', '>', after.id);
  return query.orderBy('id').select('id', 'expires_at', 'due_at') as unknown as Promise<Position[]>;
}

type Changing = Pick<QueueActionRequest, 'action' | 'forPause'>;

/** Neither leased nor final. */
function changeableBy({ action, forPause }: Changing): Matching {
  return (query) => {
    query.whereIn('status', changeable[action]).whereNull('lease_owner');
    if (forPause && action === 'release') query.where({ auto_held: true });
  };
}

const grouped = emails.pick('id', 'keyId', 'stream', 'tags', 'isTest');

async function onlyMeant<Row extends { email_id: string }>(
  trx: Trx,
  rows: Row[],
  { isMeant, isCurrent }: ForPause,
): Promise<Row[]> {
  if (!(await isCurrent(trx))) return [];
  const ids = new Set(rows.map((row) => row.email_id));
  const mails = (
    await trx('emails')
      .whereIn('id', [...ids])
      .select(grouped.columns)
  ).map(grouped.read);
  const meant = new Set(mails.filter(isMeant).map(({ id }) => id));
  return rows.filter((row) => meant.has(row.email_id));
}

async function changePage(
  trx: Trx,
  page: Position[],
  { action, reason, bySender, forPause, now }: QueueActionRequest,
): Promise<number> {
  const pageIds = page.map(({ id }) => id);
  // If a server is claiming a row now, this waits for the claim and then finds the row leased.
  const locked = await trx('deliveries')
    .whereIn('id', pageIds)
    .where(changeableBy({ action, forPause }))
    .orderBy('id')
    .forUpdate()
    .select('id', 'email_id', 'org_id', 'recipient', 'attempts');
  const rows = forPause ? await onlyMeant(trx, locked, forPause) : locked;
  if (rows.length === 0) return 0;
  const ids = rows.map(({ id }) => id);
  await trx('deliveries')
    .whereIn('id', ids)
    .where(changeableBy({ action }))
    .update({
      ...changes[action](trx, now),
      auto_held: forPause && action === 'hold' ? true : null,
      updated_at: now,
    });
  const emailIds = rows.map((row) => row.email_id);
  await bumpUpdatedAt(trx, emailIds, now);
  const type = eventTypes[action];
  if (!type) return rows.length;
  const data = { reason, ...(bySender && { bySender }), ...(forPause && { pauseId: forPause.id }) };
  const events = rows.map(({ email_id: emailId, org_id: orgId, recipient }) =>
    eventRow({ orgId, emailId, type, recipient, at: now, data }),
  );
  await insertRows(trx, 'events', events);
  if (action === 'cancel')
    await emptyServerMessages(
      trx,
      rows.map(({ org_id: orgId, email_id: emailId }) => ({ orgId, emailId })),
    );
  // Last, because it locks the organization.
  if (action === 'cancel') await refund(trx, unattempted(rows), now);
  return rows.length;
}

/** Counts by email the recipients that no attempt was made for. */
function unattempted(rows: { email_id: string; attempts: number }[]): Map<string, number> {
  const counts = new Map<string, number>();
  for (const { email_id: id, attempts } of rows) {
    if (attempts === 0) counts.set(id, (counts.get(id) ?? 0) + 1);
  }
  return counts;
}

/** How long a row has waited during a pause since it was last changed. */
const inPause = `select case when paused_at > deliveries.updated_at then ? - paused_at else ? - deliveries.updated_at end
  from organizations where organizations.id = deliveries.org_id and paused_at is not null`;

/** A deadline that the sender has set stays. */
const longer = (expiresAt: string) => `case when has_deadline then expires_at else ${expiresAt} end`;

const scheduledAt = '(select coalesce(scheduled_at, 0) from emails where emails.id = deliveries.email_id)';

/** The new values of the rows; an expression reads the old values. */
const changes: Record<QueueAction, (trx: Trx, now: number) => object> = {
  // Due mail keeps its place. A pause does not count towards the age of mail (accounts/rows/pauses.ts).
  retry: (trx, now) => ({
    due_at: trx.raw('case when due_at < ? then due_at else ? end', [now, now]),
    expires_at: trx.raw(longer(`expires_at + coalesce((${inPause}), 0)`), [now, now]),
  }),
  hold: () => ({ status: 'held', due_at: null }),
  // The time since the mail was held, which is its last change, does not count towards its age. Held before its time, mail
  // that is scheduled still waits for it.
  release: (trx, now) => ({
    status: trx.raw(
      `case when attempts > 0 then 'deferred' when ${scheduledAt} > ? then 'scheduled' else 'queued' end`,
      [now],
    ),
    due_at: trx.raw(`case when attempts = 0 and ${scheduledAt} > ? then ${scheduledAt} else ? end`, [
      now,
      now,
    ]),
    expires_at: trx.raw(
      longer(`case when ${scheduledAt} > updated_at then expires_at else expires_at + ? - updated_at end`),
      [now],
    ),
  }),
  cancel: () => ({ status: 'canceled', due_at: null }),
};

const eventTypes: Partial<Record<QueueAction, string>> = { hold: 'email.held', cancel: 'email.canceled' };
