/**
 * What an organization's overview asks besides figures: how far it has come, and what stands in the way of its mail. Each
 * question is answered by a few rows of an index, however much mail there is.
 */
import type { Db } from '../engine/open.ts';
import { inPool } from '../queue/unfinished-deliveries.ts';

/** What it takes to send, and whether anything was. */
export interface Progress {
  hasDomain: boolean;
  isVerified: boolean;
  hasKey: boolean;
  hasSent: boolean;
}

export async function progressOf(db: Db, orgId: string): Promise<Progress> {
  const some = (table: string) => db(table).where({ org_id: orgId }).select('id').first();
  const [domain, verified, key, email] = await Promise.all([
    some('domains'),
    some('domains').where({ status: 'verified' }),
    some('api_keys').whereNull('revoked_at'),
    some('emails'),
  ]);
  return { hasDomain: !!domain, isVerified: !!verified, hasKey: !!key, hasSent: !!email };
}

export async function unverifiedDomains(db: Db, orgId: string, limit: number): Promise<string[]> {
  const pending = db('domains').where({ org_id: orgId, status: 'pending' });
  return pending.orderBy('name').limit(limit).pluck('name');
}

export interface TroubledWebhook {
  id: string;
  url: string;
  isDisabled: boolean;
  reason: string | null;
  failingSince: number | null;
}

export async function troubledWebhooks(db: Db, orgId: string, limit: number): Promise<TroubledWebhook[]> {
  const rows = await db('webhooks')
    .where({ org_id: orgId })
    .where((either) => either.where({ status: 'disabled' }).orWhereNotNull('failing_since'))
    .orderBy('id')
    .limit(limit)
    .select('id', 'url', 'status', 'reason', 'failing_since');
  return rows.map((row) => ({
    id: row.id,
    url: row.url,
    isDisabled: row.status === 'disabled',
    reason: row.reason,
    failingSince: row.failing_since,
  }));
}

export interface WaitingMail {
  domain: string;
  oldestAt: number;
  /** Its first next attempt. */
  dueAt: number;
}

const maxLookedAt = 2000;

/**
 * The organization's mail that waits, by recipient domain, the oldest first. Looked for among the server's mails that
 * have waited longest, so many at most: where it has none among them, others' mail has waited longer.
 */
export async function longestWaiting(db: Db, orgId: string): Promise<WaitingMail[]> {
  const oldest = db('deliveries')
    .where(inPool('waiting'))
    .orderBy('expires_at')
    .limit(maxLookedAt)
    .select('org_id', 'domain', 'created_at', 'due_at');
  const rows = await db(oldest.as('oldest'))
    .where({ org_id: orgId })
    .groupBy('domain')
    .select('domain')
    .min('created_at as oldest_at')
    .min('due_at as due_at')
    .orderBy('oldest_at');
  return rows.map((row) => ({ domain: row.domain, oldestAt: row.oldest_at, dueAt: row.due_at }));
}
