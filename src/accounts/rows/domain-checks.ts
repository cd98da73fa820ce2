/**
 * Stores the result of a look-up of a domain's records, with the event of the organization that follows from it. The row
 * is locked meanwhile, so that two checks at the same time never report the same change twice.
 */
import type { Db } from '#platform/database/engine/open.ts';
import { eventRow } from '#platform/database/tables/event-row.ts';
import { domains, takeBackHosts } from './domains-table.ts';
import { isReceivedElsewhere } from './receiving-domains.ts';
import type { ReturnPathState } from './return-paths.ts';

export interface DomainCheckResult {
  /** The DKIM record. */
  isFound: boolean;
  /** The record of the return path; null: DNS gave no answer. */
  hasReturnPath: boolean | null;
  /** The MX record of a domain that receives; null: DNS gave no answer, or it was not asked. */
  hasMx: boolean | null;
  now: number;
  /** Name of the DKIM record, for the event. */
  record: string;
  /** Whether a person asked. That verifies a pending domain, and takes nothing from a verified one. */
  isAsked: boolean;
  /** Whether a domain is pending again after too many failures of its own checks. */
  refusesUnverified: boolean;
  checkAt(state: CheckState): number | null;
}

const checkState = domains.pick('status', 'createdAt', 'failures', 'failingSince', 'returnPath');
export type CheckState = ReturnType<typeof checkState.read>;

/** Failures in a row until a verified domain counts as unverified. One may be a mistake during a change of the zone. */
export const maxFailures = 2;

type DomainEvent = 'domain.verified' | 'domain.unverified';

interface Next extends CheckState {
  event: DomainEvent | null;
}

/** The consequence of the result for a pending domain, and for a verified one. */
function afterCheck(
  before: CheckState,
  { isFound, now, isAsked, refusesUnverified }: DomainCheckResult,
  isOfAnother: boolean,
): Next {
  const { status, failures } = before;
  const isVerified = status === 'verified';
  // A domain that goes on sending while its record is missing has been reported as unverified, too.
  const isReported = !isVerified || failures >= maxFailures;
  if (isFound) {
    const event = isReported ? 'domain.verified' : null;
    return { ...before, status: 'verified', failures: 0, failingSince: null, event };
  }
  if (!isVerified) return { ...before, failures: 0, event: null };
  // A question changes nothing: only the watch counts failures, hours apart.
  if (isAsked) return { ...before, event: null };
  const count = failures + 1;
  const isUnverified = count >= maxFailures;
  const isTaken = isUnverified && (refusesUnverified || isOfAnother);
  return {
    ...before,
    status: isTaken ? 'pending' : 'verified',
    failures: count,
    failingSince: before.failingSince ?? now,
    event: isUnverified && (isTaken || !isReported) ? 'domain.unverified' : null,
  };
}

/**
 * Whether the record of another organization is there. If it is, a missing one is not a mistake: the domain has changed
 * hands, and its former organization must neither send in its name nor get its mail.
 */
async function isFoundElsewhere(db: Db, { id, name }: { id: string; name: string }): Promise<boolean> {
  const row = await db('domains')
    .where({ name, status: 'verified', failures: 0 })
    .whereNot({ id })
    .first('id');
  return row !== undefined;
}

/** One missing record is enough: receivers refuse mail whose return path does not exist, and that of the server always does. */
function returnPathAfter(before: ReturnPathState, isThere: boolean | null): ReturnPathState {
  if (isThere === null) return before;
  if (isThere) return 'used';
  return before === 'none' ? 'none' : 'former';
}

function missingSince(before: number | null, { hasMx, now }: DomainCheckResult): number | null {
  if (hasMx === null) return before;
  return hasMx ? null : (before ?? now);
}

/** Returns the event, or null if nothing changed. Of a domain that is verified now, others who have it are looked up soon. */
export async function recordDomainCheck(
  db: Db,
  id: string,
  result: DomainCheckResult,
): Promise<DomainEvent | null> {
  const event = await recordResult(db, id, result);
  if (event === 'domain.verified')
    await db('domains')
      .whereIn('name', db('domains').where({ id }).select('name'))
      .whereNot({ id })
      .where({ status: 'verified' })
      .where('check_at', '>', result.now)
      .update({ check_at: result.now });
  return event;
}

function recordResult(db: Db, id: string, result: DomainCheckResult): Promise<DomainEvent | null> {
  const { now } = result;
  return db.transaction(async (trx) => {
    const row = await trx('domains').where({ id }).forUpdate().first();
    if (!row) return null;
    const isOfAnother = await isFoundElsewhere(trx, row);
    const next = afterCheck(checkState.read(row), result, isOfAnother);
    const isVerified = next.status === 'verified';
    // Or one could put off the watch by asking.
    const isOnlyAsked = isVerified && result.isAsked && !result.isFound;
    next.returnPath = returnPathAfter(next.returnPath, isVerified && result.hasReturnPath);
    const receives = row.receives && !(isVerified && (await isReceivedElsewhere(trx, row)));
    await trx('domains')
      .where({ id })
      .update({
        ...checkState.write(next),
        receives: Boolean(receives),
        mx_missing_since: receives ? missingSince(row.mx_missing_since, result) : null,
        checked_at: now,
        // The time of the first success, as long as the domain stays verified.
        verified_at: isVerified ? (row.verified_at ?? now) : null,
        check_at: isOnlyAsked ? row.check_at : result.checkAt(next),
      });
    if (isVerified && result.isFound) await takeBackHosts(trx, { orgId: row.org_id, name: row.name });
    if (next.event) {
      const data = { domain: row.name, record: result.record };
      await trx('events').insert(eventRow({ orgId: row.org_id, type: next.event, at: now, data }));
    }
    return next.event;
  });
}

/** After a look-up without an answer. */
export async function postponeDomainCheck(db: Db, id: string, checkAt: number): Promise<void> {
  await db('domains').where({ id }).update({ check_at: checkAt });
}

export interface DueDomain {
  id: string;
  orgId: string;
  name: string;
}

/**
 * Takes domains whose check is due: of each organization in turn, the longest due first, because a check may wait long for the
 * DNS of its domain. They are due again at `until`, unless their check was recorded by then, so that one node checks each and a
 * node that stops on the way loses none.
 */
export async function claimDueDomains(
  db: Db,
  { now, until, limit }: { now: number; until: number; limit: number },
): Promise<DueDomain[]> {
  const all = db('domains')
    .where('check_at', '<=', now)
    .select('id', 'org_id', 'name', 'check_at')
    .rowNumber('turn', (row) => row.orderBy(['check_at', 'id']).partitionBy('org_id'));
  const due = await db.from(all.as('due')).orderBy(['turn', 'check_at', 'id']).limit(limit);
  const claimed: DueDomain[] = [];
  for (const { id, org_id: orgId, name, check_at } of due) {
    const count = await db('domains').where({ id, check_at }).update({ check_at: until });
    if (count > 0) claimed.push({ id, orgId, name });
  }
  return claimed;
}
