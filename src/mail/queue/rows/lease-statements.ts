/**
 * The queue's statements: find due deliveries, lease them, renew and release leases, recover those of a dead process.
 * mail/queue/README.md has the states, unfinished-deliveries.ts the indexes.
 *
 * Exactly the deliveries being sent have a lease: `lease_owner` names the node, and `due_at` is the end of the lease. Every
 * waiting delivery is in the backlog of its domain and organization, in order of its due time; falling due writes nothing.
 * So no statement costs more if more mail waits: each reads its answer from an index, and a bounded number of rows.
 * On PostgreSQL any number of nodes claim in parallel (SKIP LOCKED); SQLite has one writer.
 */

import { pausedOrganizations } from '#accounts/rows/pauses.ts';
import { idList, jsonRows, query } from '#platform/database/engine/json-rows.ts';
import { type Db, isPostgres, type Trx } from '#platform/database/engine/open.ts';
import { partsOf } from '#platform/database/engine/parts-of.ts';
import { inSharedCommit } from '#platform/database/engine/shared-commit.ts';
import { deliveries, emails } from '#platform/database/tables/mail-tables.ts';
import {
  bytesOf,
  type OpenSealed,
  type StoredMessage,
  storedMessage,
} from '#platform/database/tables/messages.ts';
import { firstId } from '#platform/database/tables/time-of-id.ts';
import { inStage, stages } from '#platform/database/tables/unfinished-deliveries.ts';
import { type Backlog, type Delivery, maxPreloadedBytes } from '#platform/values/glossary.ts';
import { isSealed, unpackMessage } from '#platform/values/packed-message.ts';
import { sendersOf } from './ip-pools.ts';

export interface Lease {
  node: string;
  now: number;
  leaseMs: number;
}

export interface DueBacklog extends Backlog {
  /** When the last of its retries became due; null if there were none. */
  retryAt: number | null;
}

/** Returns the backlogs with deliveries that became due after `after` and until `now`; null if these are more than `max`. */
export async function findDue(
  db: Db,
  { after, now, max }: { after: number; now: number; max: number },
): Promise<DueBacklog[] | null> {
  const due = db('deliveries')
    .where(inStage('waiting'))
    .where('due_at', '>', after)
    .where('due_at', '<=', now)
    .orderBy('due_at')
    .limit(max + 1)
    .select('domain', 'org_id', 'attempts', 'due_at')
    .as('due');
  const backlogs = await db
    .from(due)
    .groupBy('domain', 'org_id')
    .select('domain', 'org_id as orgId')
    .select(db.raw('max(case when attempts > 0 then due_at end) as "retryAt", count(*) as count'));
  const count = backlogs.reduce((sum, backlog) => sum + Number(backlog.count), 0);
  return count > max ? null : backlogs.map(({ domain, orgId, retryAt }) => ({ domain, orgId, retryAt }));
}

/** Returns those of these backlogs that have due mail: an index seek for each. */
export function dueAmong(db: Db, backlogs: Backlog[], now: number): Promise<Backlog[]> {
  const { from, column } = jsonRows(db, { domain: 'text', org_id: 'uuid' });
  const rows = backlogs.map(({ domain, orgId }) => ({ domain, org_id: orgId }));
  return query(
    db,
    `select ${column('domain')} as domain, ${column('org_id')} as "orgId" from ${from}
     where exists (select 1 from deliveries where ${stages.waiting}
       and deliveries.domain = ${column('domain')} and deliveries.org_id = ${column('org_id')} and due_at <= ?)`,
    [JSON.stringify(rows), now],
  );
}

/**
 * Returns a page of the backlogs, in their order, from after `after`. `due`: those with a due delivery; `last`: the next page
 * starts after it; null: there is none.
 *
 * Takes two index seeks for each backlog, however long it is: one for the domain's next organization, one for the next domain.
 * This is a loose index scan, which neither database does by itself; and SQLite would scan a whole backlog to compare pairs.
 */
export async function listBacklogs(
  db: Db,
  { after, now, limit }: { after: Backlog | null; now: number; limit: number },
): Promise<{ due: Backlog[]; last: Backlog | null }> {
  const head = (past: string) =>
    `select id from deliveries where ${stages.waiting} and ${past} order by domain, org_id, due_at limit 1`;
  const next = (domain: string, orgId: string) =>
    `coalesce((${head(`domain = ${domain} and org_id > ${orgId}`)}), (${head(`domain > ${domain}`)}))`;
  const { domain, orgId } = after ?? beforeAll;
  const found = await db.raw(
    `with recursive backlogs(domain, org_id, due_at) as (
       select domain, org_id, due_at from deliveries where id = ${next('?', '?')}
       union all
       select following.domain, following.org_id, following.due_at from backlogs join deliveries as following
         on following.id = ${next('backlogs.domain', 'backlogs.org_id')}
     ) select domain, org_id as "orgId", due_at as "dueAt" from backlogs limit ?`,
    [domain, orgId, domain, limit],
  );
  const backlogs: (Backlog & { dueAt: number })[] = isPostgres(db) ? found.rows : found;
  return {
    due: backlogs.filter(({ dueAt }) => dueAt <= now).map(({ domain, orgId }) => ({ domain, orgId })),
    last: backlogs.length < limit ? null : backlogs.at(-1)!,
  };
}

const beforeAll: Backlog = { domain: '', orgId: firstId };

/** Leases `limit` due deliveries of each backlog, the longest due first. */
export async function claimBacklogs(
  db: Db,
  picks: (Backlog & { limit: number })[],
  terms: Lease,
): Promise<Delivery[]> {
  return inSharedCommit(db, async (trx) => lease(trx, await readBacklogs(trx, picks, terms.now), terms));
}

/**
 * Leases deliveries that have reached their maximum age, regardless of capacity. `otherPools`: IP pools of other nodes, which
 * make the last attempt for their mail themselves. `anyPaused`: some organizations are paused; a pause does not count towards
 * the age of their mail.
 *
 * BUGS: mail of paused organizations that would have reached its maximum age by now is scanned once a second.
 */
export async function claimExpired(
  db: Db,
  limit: number,
  terms: Lease,
  otherPools: string[] = [],
  anyPaused = false,
): Promise<Delivery[]> {
  const expired = (on: Db) => {
    const rows = on('deliveries')
      .where(inStage('waiting'))
      .where('expires_at', '<=', terms.now)
      .orderBy('expires_at')
      .limit(limit)
      .select('id', 'due_at');
    if (otherPools.length > 0) rows.whereNotIn('org_id', sendersOf(on, otherPools));
    if (anyPaused) rows.whereNotIn('org_id', pausedOrganizations(on));
    return rows;
  };
  // It is asked once a second, and seldom is there any.
  if ((await expired(db).limit(1)).length === 0) return [];
  return db.transaction(async (trx) =>
    lease(trx, await (isPostgres(trx) ? expired(trx).forUpdate().skipLocked() : expired(trx)), terms),
  );
}

/** Leases waiting mail to a domain, whenever it is due, except that of paused organizations. */
export async function claimOfDomain(
  db: Db,
  domain: string,
  limit: number,
  terms: Lease,
): Promise<Delivery[]> {
  if (limit < 1 || !(await hasWaiting(db, domain))) return [];
  return db.transaction(async (trx) => {
    const waiting = trx('deliveries')
      .where(inStage('waiting'))
      .where({ domain })
      .whereNotIn('org_id', pausedOrganizations(trx))
      .limit(limit)
      .select('id', 'due_at');
    return lease(trx, await (isPostgres(trx) ? waiting.forUpdate().skipLocked() : waiting), terms);
  });
}

export async function hasWaiting(db: Db, domain: string): Promise<boolean> {
  return (await db('deliveries').where(inStage('waiting')).where({ domain }).first('id')) !== undefined;
}

interface Claimed {
  id: string;
  due_at: number;
}

/** SQLite's limit for the SELECTs of one statement. */
const maxCompoundTerms = 500;

/** Reads all backlogs in one statement. */
async function readBacklogs(
  trx: Trx,
  picks: (Backlog & { limit: number })[],
  now: number,
): Promise<Claimed[]> {
  const oldest = (domain: string, orgId: string, limit: string) =>
    `select id, due_at from deliveries where ${stages.waiting}
     and domain = ${domain} and org_id = ${orgId} and due_at <= ? order by due_at limit ${limit}`;
  if (isPostgres(trx)) {
    const each = oldest('pick.domain', 'pick."orgId"', 'pick."limit"');
    const { rows } = await trx.raw(
      `select due.id, due.due_at
       from json_to_recordset(?::json) as pick(domain text, "orgId" uuid, "limit" integer)
       cross join lateral (${each} for update skip locked) as due`,
      [JSON.stringify(picks), now],
    );
    return rows;
  }
  const rows: Claimed[] = [];
  const each = `select * from (${oldest('?', '?', '?')})`;
  for (const part of partsOf(picks, maxCompoundTerms)) {
    const values = part.flatMap(({ domain, orgId, limit }) => [domain, orgId, now, limit]);
    rows.push(...(await trx.raw(part.map(() => each).join(' union all '), values)));
  }
  return rows;
}

async function lease(trx: Trx, rows: Claimed[], { node, now, leaseMs }: Lease): Promise<Delivery[]> {
  if (rows.length === 0) return [];
  const dueAt = new Map(rows.map((row) => [row.id, row.due_at]));
  const ids = [...dueAt.keys()];
  const { select, value } = idList(trx, ids);
  await query(
    trx,
    `update deliveries set status = 'sending', lease_owner = ?, due_at = ?, updated_at = ? where id in (${select})`,
    [node, now + leaseMs, now, value],
  );
  return readDeliveries(trx, ids, (id) => dueAt.get(id)!);
}

/**
 * An expression, so that the index of leases is not used: it would read all leases of this node to find a few, and on
 * PostgreSQL also all that it had since the last vacuum.
 */
export const isOurs = "coalesce(deliveries.lease_owner, '') = ? and deliveries.status = 'sending'";

const untried = "case when deliveries.attempts = 0 then 'queued' else 'deferred' end";

/** Releases deliveries that this node has leased but not tried; they return to their old position in the backlog. */
export async function releaseLeases(db: Db, node: string, deliveries: Delivery[]): Promise<void> {
  const { from, column } = jsonRows(db, { id: 'uuid', due_at: 'bigint', attempts: 'integer' });
  await query(
    db,
    `update deliveries set due_at = ${column('due_at')}, lease_owner = null, status = ${untried}
     from ${from} where deliveries.id = ${column('id')} and deliveries.attempts = ${column('attempts')}
       and ${isOurs}`,
    [JSON.stringify(deliveries.map(({ id, dueAt, attempts }) => ({ id, due_at: dueAt, attempts }))), node],
  );
}

const leased = deliveries.pick(
  'id',
  'emailId',
  'orgId',
  'recipient',
  'domain',
  'attempts',
  'createdAt',
  'expiresAt',
  'hasDeadline',
);
const ofEmail = emails.pick('from', 'tags', 'stream', 'tls');

async function readDeliveries(trx: Trx, ids: string[], dueAt: (id: string) => number): Promise<Delivery[]> {
  const { from, column } = jsonRows(trx, { id: 'uuid' });
  const rows = await query<{ id: string; message_id: string; raw: Buffer | null }>(
    trx,
    `select ${leased.columnsOf('deliveries')}, deliveries.message_id, ${ofEmail.columnsOf('emails')}, messages.raw
     from ${from} cross join deliveries join emails on emails.id = deliveries.email_id
       left join messages on messages.id = deliveries.message_id and messages.size <= ${maxPreloadedBytes}
         and not messages.is_patch
     where deliveries.id = ${column('id')} order by deliveries.id`,
    [JSON.stringify(ids.map((id) => ({ id })))],
  );
  return rows.map((row) => ({
    ...leased.read(row),
    ...ofEmail.read(row),
    // A delivery that is queued has a message.
    messageId: row.message_id,
    ...(row.raw && !isSealed(row.raw) && { message: unpackMessage(row.raw) }),
    dueAt: dueAt(row.id),
  }));
}

/** Renews these leases; returns the ids that this node still held. */
export async function renewLeases(db: Db, node: string, ids: string[], until: number): Promise<Set<string>> {
  const { select, value } = idList(db, ids);
  const renewed = await query<{ id: string }>(
    db,
    `update deliveries set due_at = ? where id in (${select}) and ${isOurs} returning id`,
    [until, value, node],
  );
  return new Set(renewed.map(({ id }) => id));
}

/**
 * Releases leases of this node that would have ended by `before` and have not been renewed: the node does not know of them,
 * because the answer to their commit was lost, so they have not been tried.
 */
export async function freeOrphans(db: Db, node: string, now: number, before: number): Promise<void> {
  await db('deliveries')
    .where(inStage('leased'))
    .where({ lease_owner: node })
    .where('due_at', '<=', before)
    .update({ due_at: now, lease_owner: null, status: db.raw(untried) });
}

/**
 * Takes over deliveries that a dead process was sending: this node's own leases when it starts, or expired leases of other
 * nodes. This node then records that their attempt was interrupted.
 */
export async function takeBack(
  db: Db,
  node: string,
  now: number,
  leaseMs: number,
  which: 'own' | 'expired',
): Promise<Delivery[]> {
  const abandoned = (on: Db) => {
    const rows = on('deliveries').where(inStage('leased')).select('id');
    return which === 'own'
      ? rows.where({ lease_owner: node })
      : rows.where('due_at', '<=', now).whereNot({ lease_owner: node });
  };
  // It is asked twice a minute, and seldom is there any.
  if ((await abandoned(db).limit(1)).length === 0) return [];
  return db.transaction(async (trx) => {
    const some = abandoned(trx).limit(500);
    const rows = await (isPostgres(trx) ? some.forUpdate().skipLocked() : some);
    const ids = rows.map((row) => row.id);
    if (ids.length === 0) return [];
    await trx('deliveries')
      .whereIn('id', ids)
      .update({ lease_owner: node, due_at: now + leaseMs });
    return readDeliveries(trx, ids, () => now);
  });
}

/** Returns the bytes of the messages exactly as they are sent. */
export async function readMessages(db: Db, ids: string[], open: OpenSealed): Promise<Buffer[]> {
  const found = await readStored(db, ids, '', open);
  return ids.map((id) => {
    const raw = found.get(id);
    if (!raw) throw new Error(`message ${id} is not in the database`);
    return raw;
  });
}

/** Null if the bytes have been deleted, or are of the server's own mail. */
export async function findMessage(db: Db, id: string): Promise<Buffer | null> {
  const raw = (await readStored(db, [id], '')).get(id);
  return raw && raw.length > 0 ? raw : null;
}

/** Null for large messages. */
export async function readSmallMessages(db: Db, ids: string[], open: OpenSealed): Promise<(Buffer | null)[]> {
  const found = await readStored(db, ids, `and size <= ${maxPreloadedBytes}`, open);
  return ids.map((id) => found.get(id) ?? null);
}

async function readStored(
  db: Db,
  ids: string[],
  which: string,
  open?: OpenSealed,
): Promise<Map<string, Buffer>> {
  const { select, value } = idList(db, ids);
  const rows = await query<{ id: string } & StoredMessage>(
    db,
    `select messages.id, ${storedMessage} where messages.id in (${select}) ${which}`,
    [value],
  );
  return new Map(rows.map((row) => [row.id, bytesOf(row, open)]));
}
