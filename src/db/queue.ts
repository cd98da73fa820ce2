/**
 * The queue's statements: claim what is due, give leases back, keep them alive, find what a dead process left.
 *
 * A delivery that is being sent, and no other, has a lease: `lease_owner` names the node, and `due_at` is when the
 * lease ends.
 * On PostgreSQL any number of nodes claim side by side (SKIP LOCKED); on SQLite there is one writer anyway.
 */
import type { Delivery } from '../nouns.ts';
import { type Db, isPostgres, type Trx } from './open.ts';

export interface Claim {
  node: string;
  now: number;
  leaseMs: number;
  /** How many deliveries there is room for. */
  room: number;
  /** How many more of one domain there is room for, given its name. */
  roomFor(domain: string): number;
  /** Domains without any room. */
  full: string[];
}

/**
 * Leases what is due, oldest first, with no domain over its room. A window full of one domain's backlog yields only
 * what that domain has room for; the next claim names the domain as full and sees past it.
 */
export async function claimDue(db: Db, claim: Claim): Promise<Delivery[]> {
  return db.transaction(async (trx) => {
    const due = trx('deliveries')
      .where('due_at', '<=', claim.now)
      .whereIn('status', ['queued', 'deferred'])
      .orderBy('due_at')
      .limit(claim.room)
      .select('id', 'domain');
    if (claim.full.length > 0) due.whereNotIn('domain', claim.full);
    const candidates: { id: string; domain: string }[] = await (isPostgres(trx)
      ? due.forUpdate().skipLocked()
      : due);
    const ids = withinRoom(candidates, claim.roomFor);
    if (ids.length === 0) return [];
    await trx('deliveries')
      .whereIn('id', ids)
      .update({
        status: 'sending',
        lease_owner: claim.node,
        due_at: claim.now + claim.leaseMs,
        updated_at: claim.now,
      });
    return readDeliveries(trx, ids);
  });
}

function withinRoom(
  candidates: { id: string; domain: string }[],
  roomFor: (domain: string) => number,
): string[] {
  const taken = new Map<string, number>();
  return candidates
    .filter(({ domain }) => {
      const count = (taken.get(domain) ?? 0) + 1;
      taken.set(domain, count);
      return count <= roomFor(domain);
    })
    .map(({ id }) => id);
}

async function readDeliveries(trx: Trx, ids: string[]): Promise<Delivery[]> {
  const rows = await trx('deliveries')
    .join('emails', 'emails.id', 'deliveries.email_id')
    .whereIn('deliveries.id', ids)
    .orderBy('deliveries.id')
    .select('deliveries.*', 'emails.sender', 'emails.tags');
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
  }));
}

/** When the next delivery falls due, or null where none waits. */
export async function nextDueAt(db: Db): Promise<number | null> {
  const row = await db('deliveries')
    .whereNotNull('due_at')
    .whereIn('status', ['queued', 'deferred'])
    .min('due_at as at')
    .first();
  return row?.at ?? null;
}

/** Keeps this node's leases alive. */
export async function renewLeases(db: Db, node: string, until: number): Promise<void> {
  await db('deliveries').where({ lease_owner: node }).update({ due_at: until });
}

/**
 * What was being sent by a process that is gone: this node's own leases when it starts, anybody's whose time is up.
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
    else abandoned.where('due_at', '<=', now);
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
