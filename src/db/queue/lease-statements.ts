/**
 * The queue's statements: find due deliveries, lease them, renew and release leases, recover those of a dead process.
 * queue/README.md has the states, unfinished-deliveries.ts the indexes.
 *
 * Exactly the deliveries being sent have a lease: `lease_owner` names the node, and `due_at` is the end of the lease. Every
 * waiting delivery is in the backlog of its domain and organization, in order of its due time; falling due writes nothing.
 * So no statement costs more if more mail waits: each reads its answer from an index, and a bounded number of rows.
 * On PostgreSQL any number of nodes claim in parallel (SKIP LOCKED); SQLite has one writer.
 */
import { type Delivery, maxPreloadedBytes, type TlsFloor } from '../../glossary.ts';
import { pausedOrganizations } from '../accounts/pauses.ts';
import { jsonRows, query } from '../engine/json-rows.ts';
import { type Db, isPostgres, type Trx } from '../engine/open.ts';
import { inSharedCommit } from '../engine/shared-commit.ts';
import { sendersOf } from './ip-pools.ts';
import { bytesOf, type StoredMessage, storedMessage } from './messages.ts';
import { inPool, pools } from './unfinished-deliveries.ts';

export interface Lease {
  node: string;
  now: number;
  leaseMs: number;
}

interface Lane {
  domain: string;
  orgId: string;
}

export interface DueBacklog extends Lane {
  /** When the last of its retries fell due; null where there were none. */
  retryAt: number | null;
}

/** The lanes of what has fallen due after `after` and until `now`; null where it is more than `most`. */
export async function findDue(
  db: Db,
  { after, now, max }: { after: number; now: number; max: number },
): Promise<DueBacklog[] | null> {
  const due = db('deliveries')
    .where(inPool('waiting'))
    .where('due_at', '>', after)
    .where('due_at', '<=', now)
    .orderBy('due_at')
    .limit(max + 1)
    .select('domain', 'org_id', 'attempts', 'due_at')
    .as('due');
  const lanes = await db
    .from(due)
    .groupBy('domain', 'org_id')
    .select('domain', 'org_id as orgId')
    .select(db.raw('max(case when attempts > 0 then due_at end) as "retryAt", count(*) as count'));
  const count = lanes.reduce((sum, lane) => sum + Number(lane.count), 0);
  return count > max ? null : lanes.map(({ domain, orgId, retryAt }) => ({ domain, orgId, retryAt }));
}

/**
 * A page of the lanes that something waits in, in their order, from after `after`. `due`: those in which something is
 * due; `last`: where the next page begins, null where there is none.
 *
 * Two seeks of the index for each, however much waits there: for the domain's next organization, else for the next
 * domain (a loose index scan, which neither database does of its own accord; and SQLite would go through all of a lane
 * to find what is greater than a pair).
 */
export async function listBacklogs(
  db: Db,
  { after, now, limit }: { after: Lane | null; now: number; limit: number },
): Promise<{ due: Lane[]; last: Lane | null }> {
  const head = (past: string) =>
    `select id from deliveries where ${pools.waiting} and ${past} order by domain, org_id, due_at limit 1`;
  const next = (domain: string, orgId: string) =>
    `coalesce((${head(`domain = ${domain} and org_id > ${orgId}`)}), (${head(`domain > ${domain}`)}))`;
  const { domain, orgId } = after ?? beforeAll;
  const found = await db.raw(
    `with recursive lanes(domain, org_id, due_at) as (
       select domain, org_id, due_at from deliveries where id = ${next('?', '?')}
       union all
       select following.domain, following.org_id, following.due_at from lanes join deliveries as following
         on following.id = ${next('lanes.domain', 'lanes.org_id')}
     ) select domain, org_id as "orgId", due_at as "dueAt" from lanes limit ?`,
    [domain, orgId, domain, limit],
  );
  const lanes: (Lane & { dueAt: number })[] = isPostgres(db) ? found.rows : found;
  return {
    due: lanes.filter(({ dueAt }) => dueAt <= now).map(({ domain, orgId }) => ({ domain, orgId })),
    last: lanes.length < limit ? null : lanes.at(-1)!,
  };
}

const beforeAll: Lane = { domain: '', orgId: '00000000-0000-0000-0000-000000000000' };

/** Leases `limit` due deliveries of each backlog, the longest due first. */
export async function claimBacklogs(
  db: Db,
  picks: (Lane & { limit: number })[],
  terms: Lease,
): Promise<Delivery[]> {
  return inSharedCommit(db, async (trx) => lease(trx, await readLanes(trx, picks, terms.now), terms));
}

/**
 * What has reached its maximum age, whatever room there is. `elsewhere`: pools of source addresses of other nodes, whose
 * mail is for them to try a last time. `anyPaused`: some organizations are paused, and their mail does not grow old.
 *
 * BUGS: mail of paused organizations that would have reached its maximum age by now is passed over once a second.
 */
export async function claimExpired(
  db: Db,
  limit: number,
  terms: Lease,
  elsewhere: string[] = [],
  anyPaused = false,
): Promise<Delivery[]> {
  return db.transaction(async (trx) => {
    const expired = trx('deliveries')
      .where(inPool('waiting'))
      .where('expires_at', '<=', terms.now)
      .orderBy('expires_at')
      .limit(limit)
      .select('id', 'due_at');
    if (elsewhere.length > 0) expired.whereNotIn('org_id', sendersOf(trx, elsewhere));
    if (anyPaused) expired.whereNotIn('org_id', pausedOrganizations(trx));
    return lease(trx, await (isPostgres(trx) ? expired.forUpdate().skipLocked() : expired), terms);
  });
}

interface Claimed {
  id: string;
  due_at: number;
}

/** All backlogs in one statement. */
async function readLanes(trx: Trx, picks: (Lane & { limit: number })[], now: number): Promise<Claimed[]> {
  const lane = (domain: string, orgId: string, limit: string) =>
    `select id, due_at from deliveries where ${pools.waiting}
     and domain = ${domain} and org_id = ${orgId} and due_at <= ? order by due_at limit ${limit}`;
  if (isPostgres(trx)) {
    const each = lane('pick.domain', 'pick."orgId"', 'pick."limit"');
    const { rows } = await trx.raw(
      `select due.id, due.due_at
       from json_to_recordset(?::json) as pick(domain text, "orgId" uuid, "limit" integer)
       cross join lateral (${each} for update skip locked) as due`,
      [JSON.stringify(picks), now],
    );
    return rows;
  }
  const rows: Claimed[] = [];
  // SQLite takes 500 selects in one.
  for (let start = 0; start < picks.length; start += 500) {
    const some = picks.slice(start, start + 500);
    const each = `select * from (${lane('?', '?', '?')})`;
    rows.push(
      ...(await trx.raw(
        some.map(() => each).join(' union all '),
        some.flatMap(({ domain, orgId, limit }) => [domain, orgId, now, limit]),
      )),
    );
  }
  return rows;
}

async function lease(trx: Trx, rows: Claimed[], { node, now, leaseMs }: Lease): Promise<Delivery[]> {
  if (rows.length === 0) return [];
  const dueAt = new Map(rows.map((row) => [row.id, row.due_at]));
  const ids = [...dueAt.keys()];
  const { from, column } = jsonRows(trx, { id: 'uuid' });
  await query(
    trx,
    `update deliveries set status = 'sending', lease_owner = ?, due_at = ?, updated_at = ?
     where id in (select ${column('id')} from ${from})`,
    [node, now + leaseMs, now, JSON.stringify(ids.map((id) => ({ id })))],
  );
  return readDeliveries(trx, ids, (id) => dueAt.get(id)!);
}

/** By ids: through the index of leases, it would read all leases of this node to find a few. */
const isOurs = "coalesce(lease_owner, '') = ? and status = 'sending'";

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

interface DeliveryRow {
  id: string;
  email_id: string;
  org_id: string;
  message_id: string;
  recipient: string;
  domain: string;
  sender: string;
  tags: string;
  attempts: number;
  created_at: number;
  expires_at: number;
  tls_floor: TlsFloor;
  raw: Buffer | null;
}

async function readDeliveries(trx: Trx, ids: string[], dueAt: (id: string) => number): Promise<Delivery[]> {
  const { from, column } = jsonRows(trx, { id: 'uuid' });
  const rows = await query<DeliveryRow>(
    trx,
    `select deliveries.id, deliveries.email_id, deliveries.org_id, deliveries.message_id, recipient, domain,
       attempts, deliveries.created_at, expires_at, sender, emails.tags, emails.tls as tls_floor, messages.raw
     from ${from} cross join deliveries join emails on emails.id = deliveries.email_id
       left join messages on messages.id = deliveries.message_id and messages.size <= ${maxPreloadedBytes}
         and not messages.is_patch
     where deliveries.id = ${column('id')} order by deliveries.id`,
    [JSON.stringify(ids.map((id) => ({ id })))],
  );
  return rows.map((row) => ({
    ...(row.raw && { message: row.raw }),
    id: row.id,
    emailId: row.email_id,
    orgId: row.org_id,
    messageId: row.message_id,
    recipient: row.recipient,
    domain: row.domain,
    from: row.sender,
    tags: JSON.parse(row.tags),
    attempts: row.attempts,
    createdAt: row.created_at,
    dueAt: dueAt(row.id),
    expiresAt: row.expires_at,
    tls: row.tls_floor,
  }));
}

/** Renews these leases; returns the ids that this node still held. */
export async function renewLeases(db: Db, node: string, ids: string[], until: number): Promise<Set<string>> {
  const { from, column } = jsonRows(db, { id: 'uuid' });
  const renewed = await query<{ id: string }>(
    db,
    `update deliveries set due_at = ? where id in (select ${column('id')} from ${from}) and ${isOurs} returning id`,
    [until, JSON.stringify(ids.map((id) => ({ id }))), node],
  );
  return new Set(renewed.map(({ id }) => id));
}

/**
 * What this node leased so long ago that its lease would have ended by `before` and has not been renewed goes back as it
 * was: it has not been tried, for the node does not know of it. The answer to the commit was lost.
 */
export async function freeOrphans(db: Db, node: string, now: number, before: number): Promise<void> {
  await db('deliveries')
    .where(inPool('leased'))
    .where({ lease_owner: node })
    .where('due_at', '<=', before)
    .update({ due_at: now, lease_owner: null, status: db.raw(untried) });
}

/**
 * What was being sent by a process that is gone: this node's own leases when it starts, others' whose time is up.
 * They are leased to this node, which is to record that their attempt was cut short.
 */
export async function takeBack(
  db: Db,
  node: string,
  now: number,
  leaseMs: number,
  which: 'own' | 'expired',
): Promise<Delivery[]> {
  return db.transaction(async (trx) => {
    const abandoned = trx('deliveries').where(inPool('leased')).limit(500).select('id');
    if (which === 'own') abandoned.where({ lease_owner: node });
    else abandoned.where('due_at', '<=', now).whereNot({ lease_owner: node });
    const rows = await (isPostgres(trx) ? abandoned.forUpdate().skipLocked() : abandoned);
    const ids = rows.map((row) => row.id);
    if (ids.length === 0) return [];
    await trx('deliveries')
      .whereIn('id', ids)
      .update({ lease_owner: node, due_at: now + leaseMs });
    return readDeliveries(trx, ids, () => now);
  });
}

/** The bytes of the messages, exactly as they are sent. */
export async function readMessages(db: Db, ids: string[]): Promise<Buffer[]> {
  const found = await readStored(db, ids, '');
  return ids.map((id) => {
    const raw = found.get(id);
    if (!raw) throw new Error(`message ${id} is not in the database`);
    return raw;
  });
}

/** Null for large messages. */
export async function readSmallMessages(db: Db, ids: string[]): Promise<(Buffer | null)[]> {
  const found = await readStored(db, ids, `and size <= ${maxPreloadedBytes}`);
  return ids.map((id) => found.get(id) ?? null);
}

async function readStored(db: Db, ids: string[], which: string): Promise<Map<string, Buffer>> {
  const { from, column } = jsonRows(db, { id: 'uuid' });
  const rows = await query<{ id: string } & StoredMessage>(
    db,
    `select messages.id, ${storedMessage} where messages.id in (select ${column('id')} from ${from}) ${which}`,
    [JSON.stringify(ids.map((id) => ({ id })))],
  );
  return new Map(rows.map((row) => [row.id, bytesOf(row)]));
}
