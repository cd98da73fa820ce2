/**
 * The queue's statements: lease what is due or park it, lease what is parked, give leases back, keep them alive, find
 * what a dead process left. queue/README.md has the states.
 *
 * A delivery that is being sent, and no other, has a lease: `lease_owner` names the node, and `due_at` is when the
 * lease ends. Parked mail has been due since `parked_at`, and stands in the lane of its domain and organization until
 * its destination has room; `due_at` is then its maximum age, so that it is looked at once more when that has come.
 * On PostgreSQL any number of nodes claim side by side (SKIP LOCKED); on SQLite there is one writer anyway.
 */
import type { Delivery } from '../nouns.ts';
import { type Db, isPostgres, type Trx } from './open.ts';

export interface Lease {
  node: string;
  now: number;
  leaseMs: number;
}

interface Lane {
  domain: string;
  orgId: string;
}

export interface DueClaim extends Lease {
  limit: number;
  place(row: { domain: string; expiresAt: number }): 'take' | 'park';
}

interface DueRow extends Lane {
  id: string;
  expiresAt: number;
}

/** What is due, oldest first: leased or parked, as `place` says of each. `isMore`: `limit` did not reach to the end. */
export async function claimDue(
  db: Db,
  claim: DueClaim,
): Promise<{ taken: Delivery[]; parked: Lane[]; isMore: boolean }> {
  return db.transaction(async (trx) => {
    const due = waiting(trx)
      .where('due_at', '<=', claim.now)
      .orderBy('due_at')
      .limit(claim.limit)
      .select('id', 'domain', 'org_id as orgId', 'expires_at as expiresAt');
    const rows: DueRow[] = await locked(trx, due);
    const placed = rows.map((row) => ({ row, place: claim.place(row) }));
    const full = placed.filter(({ place }) => place === 'park').map(({ row }) => row);
    const fullIds = full.map(({ id }) => id);
    if (fullIds.length > 0) await trx('deliveries').whereIn('id', fullIds).update(parked(trx, claim.now));
    const ids = placed.filter(({ place }) => place === 'take').map(({ row }) => row.id);
    return { taken: await lease(trx, ids, claim), parked: full, isMore: rows.length === claim.limit };
  });
}

/** Parked mail of these lanes, the longest parked first, `limit` of each. */
export async function claimLanes(
  db: Db,
  picks: (Lane & { limit: number })[],
  terms: Lease,
): Promise<Delivery[]> {
  return db.transaction(async (trx) => {
    const ids: string[] = [];
    for (const { domain, orgId, limit } of picks) {
      const lane = waiting(trx)
        .where({ domain, org_id: orgId })
        .whereNotNull('parked_at')
        .orderBy('parked_at')
        .limit(limit)
        .select('id');
      const rows: { id: string }[] = await locked(trx, lane);
      ids.push(...rows.map(({ id }) => id));
    }
    return lease(trx, ids, terms);
  });
}

/**
 * The lanes that hold parked mail: one seek of the index for each, however much is parked there (a loose index scan,
 * which neither database does of its own accord).
 */
export async function listLanes(db: Db): Promise<Lane[]> {
  const next = (after: string) =>
    `select id from deliveries where parked_at is not null ${after} order by domain, org_id limit 1`;
  const found = await db.raw(
    `with recursive lanes(domain, org_id) as (
       select domain, org_id from deliveries where id = (${next('')})
       union all
       select following.domain, following.org_id from lanes join deliveries as following
         on following.id = (${next('and (domain, org_id) > (lanes.domain, lanes.org_id)')})
     ) select domain, org_id as "orgId" from lanes`,
  );
  return isPostgres(db) ? found.rows : found;
}

const waiting = (trx: Trx) => trx('deliveries').whereIn('status', ['queued', 'deferred']);

// biome-ignore lint/suspicious/noExplicitAny: knex gives a query's rows no type
function locked(trx: Trx, query: any): Promise<any[]> {
  return isPostgres(trx) ? query.forUpdate().skipLocked() : query;
}

async function lease(trx: Trx, ids: string[], { node, now, leaseMs }: Lease): Promise<Delivery[]> {
  if (ids.length === 0) return [];
  await trx('deliveries')
    .whereIn('id', ids)
    .update({
      status: 'sending',
      lease_owner: node,
      due_at: now + leaseMs,
      parked_at: null,
      updated_at: now,
    });
  return readDeliveries(trx, ids);
}

const parked = (trx: Trx, now: number) => ({ parked_at: now, due_at: trx.ref('expires_at') });

/** Deliveries that this node had leased and has not tried go back as they were: to be parked, or due at once. */
export async function giveBack(
  db: Db,
  deliveries: Delivery[],
  how: 'parked' | 'due',
  { node, now }: Omit<Lease, 'leaseMs'>,
): Promise<void> {
  await db.transaction(async (trx) => {
    for (const tried of [false, true]) {
      const ids = deliveries.filter(({ attempts }) => attempts > 0 === tried).map(({ id }) => id);
      if (ids.length === 0) continue;
      await trx('deliveries')
        .whereIn('id', ids)
        .where({ lease_owner: node, status: 'sending' })
        .update({
          status: tried ? 'deferred' : 'queued',
          lease_owner: null,
          ...(how === 'parked' ? parked(trx, now) : { due_at: now }),
        });
    }
  });
}

async function readDeliveries(trx: Trx, ids: string[]): Promise<Delivery[]> {
  const rows = await trx('deliveries')
    .join('emails', 'emails.id', 'deliveries.email_id')
    .whereIn('deliveries.id', ids)
    .orderBy('deliveries.id')
    .select('deliveries.*', 'emails.sender', 'emails.tags', 'emails.tls as tls_floor');
  return rows.map((row) => ({
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
    expiresAt: row.expires_at,
    tls: row.tls_floor,
  }));
}

/** Keeps this node's leases alive. */
export async function renewLeases(db: Db, node: string, until: number): Promise<void> {
  await db('deliveries').where({ lease_owner: node }).update({ due_at: until });
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
    const abandoned = trx('deliveries').whereNotNull('lease_owner').limit(500).select('id');
    if (which === 'own') abandoned.where({ lease_owner: node });
    else abandoned.where('due_at', '<=', now).whereNot({ lease_owner: node });
    const rows = await (isPostgres(trx) ? abandoned.forUpdate().skipLocked() : abandoned);
    const ids = rows.map((row) => row.id);
    if (ids.length === 0) return [];
    await trx('deliveries')
      .whereIn('id', ids)
      .update({ lease_owner: node, due_at: now + leaseMs });
    return readDeliveries(trx, ids);
  });
}

/** The message's bytes, exactly as they go on the wire. */
export async function readMessage(db: Db, messageId: string): Promise<Buffer> {
  const row = await db('messages').where({ id: messageId }).select('raw').first();
  if (!row) throw new Error(`message ${messageId} is not in the database`);
  return row.raw;
}
