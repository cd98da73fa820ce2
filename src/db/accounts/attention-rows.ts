/**
 * The facts that an organization's overview shows besides statistics: which setup steps are done, and what keeps its mail from being
 * sent. Each answer comes from a few rows of an index, however much mail there is.
 */
import type { Db } from '../engine/open.ts';
import { number, orNull, records, text } from '../engine/records.ts';
import { inPool } from '../queue/unfinished-deliveries.ts';
import { maxFailures } from './domain-checks.ts';

export async function progressOf(db: Db, orgId: string) {
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

/** Verified domains whose DKIM record is missing or wrong. */
export async function failingDomains(db: Db, orgId: string, limit: number): Promise<string[]> {
  const failing = db('domains')
    .where({ org_id: orgId, status: 'verified' })
    .where('failures', '>=', maxFailures);
  return failing.orderBy('name').limit(limit).pluck('name');
}

const troubled = records({
  id: text,
  url: text,
  isDisabled: { column: 'status', read: (status) => status === 'disabled' },
  reason: orNull(text),
  failingSince: orNull(number),
});

export type TroubledWebhook = ReturnType<typeof troubled.read>;

export async function troubledWebhooks(db: Db, orgId: string, limit: number): Promise<TroubledWebhook[]> {
  const rows = await db('webhooks')
    .where({ org_id: orgId })
    .where((either) => either.where({ status: 'disabled' }).orWhereNotNull('failing_since'))
    .orderBy('id')
    .limit(limit)
    .select(troubled.columns);
  return rows.map(troubled.read);
}

const waitingMail = records({
  domain: text,
  oldestAt: number,
  /** The first next attempt. */
  dueAt: number,
});

export type WaitingMail = ReturnType<typeof waitingMail.read>;

const maxScanned = 2000;

/**
 * The organization's waiting mail by recipient domain, the oldest first. Only the mails of the server that have waited
 * longest are searched: if none of them is the organization's, other organizations' mail has waited longer.
 */
export async function longestWaiting(db: Db, orgId: string): Promise<WaitingMail[]> {
  const oldest = db('deliveries')
    .where(inPool('waiting'))
    .orderBy('expires_at')
    .limit(maxScanned)
    .select('org_id', 'domain', 'created_at', 'due_at');
  const rows = await db(oldest.as('oldest'))
    .where({ org_id: orgId })
    .groupBy('domain')
    .select('domain')
    .min('created_at as oldest_at')
    .min('due_at as due_at')
    .orderBy('oldest_at');
  return rows.map(waitingMail.read);
}
