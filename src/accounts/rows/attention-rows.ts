/**
 * The facts that an organization's overview shows besides statistics: which setup steps are done, and which mail waits. Each
 * answer comes from a few rows of an index, however much mail there is.
 */
import { countOf } from '#platform/database/engine/json-rows.ts';
import type { Db } from '#platform/database/engine/open.ts';
import { number, records, text } from '#platform/database/engine/records.ts';
import { inStage } from '#platform/database/tables/unfinished-deliveries.ts';

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

const maxCounted = 20_000;

/** The organization's waiting mail, among so many of the server. */
export async function countWaiting(db: Db, orgId: string): Promise<number> {
  const some = db('deliveries').where(inStage('waiting')).limit(maxCounted).select('org_id');
  return countOf(db(some.as('some')).where({ org_id: orgId }));
}

const waitingMail = records({
  domain: text,
  oldestAt: number,
});

export type WaitingMail = ReturnType<typeof waitingMail.read>;

const maxScanned = 2000;

/**
 * The organization's waiting mail by recipient domain, the oldest first. Only the mails of the server that have waited
 * longest are searched: if none of them is the organization's, other organizations' mail has waited longer.
 */
export async function longestWaiting(db: Db, orgId: string): Promise<WaitingMail[]> {
  const oldest = db('deliveries')
    .where(inStage('waiting'))
    .orderBy('expires_at')
    .limit(maxScanned)
    .select('org_id', 'domain', 'created_at');
  const rows = await db(oldest.as('oldest'))
    .where({ org_id: orgId })
    .groupBy('domain')
    .select('domain')
    .min('created_at as oldest_at')
    .orderBy('oldest_at');
  return rows.map(waitingMail.read);
}
