/**
 * Looks up the DKIM records of sender domains at intervals: a pending domain is verified without a further call, and a
 * verified domain whose record is gone or replaced is reported, because receivers reject its mail or file it as spam. The
 * record of the return path is looked up with it: mail has a return path under the sender's domain while it is there. So is the
 * MX record of a domain that receives: its owners are told if mail does not come here.
 */

import {
  type CheckState,
  claimDueDomains,
  maxFailures,
  postponeDomainCheck,
  recordDomainCheck,
} from '#accounts/rows/domain-checks.ts';
import { findDomain } from '#accounts/rows/domains-table.ts';
import type { Resolve } from '#platform/base/net/resolve.ts';
import type { Db } from '#platform/database/engine/open.ts';
import { type CheckedRecord, checkRecords, isUnknown, statusAfter } from './check-records.ts';
import { type Names, type RecordPurpose, recordsFor } from './domains.ts';

const [minute, hour, day] = [60_000, 3_600_000, 86_400_000];

/** After its registration, or after it stopped being verified, a pending domain is checked at these ages, and then hourly. */
const firstChecks = [1, 2, 5, 15, 60].map((minutes) => minutes * minute);
const watchedMs = 3 * day;
const verifiedIntervalMs = 6 * hour;
/** If the DKIM record is missing, or the domain has its own return path: hosts refuse mail if that does not exist. */
const urgentIntervalMs = hour;
/** DNS gave no answer, which says nothing about the record. */
const noAnswerDelayMs = 10 * minute;
const maxChecks = 20;

/** When a domain is looked up next; null if never. `random`: verified domains are spread over a tenth of the interval. */
export function nextCheck(state: CheckState, now: number, random: () => number): number | null {
  if (state.status === 'verified') {
    const isUrgent = state.failures >= maxFailures || state.returnPath === 'used';
    return Math.round(now + (isUrgent ? urgentIntervalMs : verifiedIntervalMs) * (0.9 + random() / 10));
  }
  const begin = state.failingSince ?? state.createdAt;
  if (now - begin >= watchedMs) return null;
  const next = firstChecks.find((age) => begin + age > now);
  return next === undefined ? now + hour : begin + next;
}

export interface CheckPolicy {
  now: number;
  random?: () => number;
  /** Whether a person asked for the check. */
  isAsked?: boolean;
  refusesUnverified?: boolean;
}

/** Stores what the records in DNS say about the domain; returns false if they could not be looked up. */
export async function applyCheck(
  db: Db,
  id: string,
  records: CheckedRecord[],
  { now, random = Math.random, isAsked = false, refusesUnverified = false }: CheckPolicy,
): Promise<boolean> {
  const status = statusAfter(records);
  if (status === null) {
    if (!isAsked) await postponeDomainCheck(db, id, now + noAnswerDelayMs);
    return false;
  }
  await recordDomainCheck(db, id, {
    isFound: status === 'verified',
    hasReturnPath: isThere(records, 'return_path', false),
    hasMx: isThere(records, 'receiving', null),
    now,
    record: records[0]!.name,
    isAsked,
    refusesUnverified,
    checkAt: (state) => nextCheck(state, now, random),
  });
  return true;
}

/** Null if DNS gave no answer, or `absent` if it was not asked. */
function isThere<Absent>(
  records: CheckedRecord[],
  wanted: RecordPurpose,
  absent: Absent,
): boolean | null | Absent {
  const record = records.find(({ purpose }) => purpose === wanted);
  if (!record) return absent;
  return isUnknown(record) ? null : record.ok;
}

interface DomainWatch {
  names: Names;
  resolve: Resolve;
  now(): number;
  random(): number;
  refusesUnverified: boolean;
  /** Called after changes. */
  onChecked(): void;
}

/** A maintenance job: checks the next domains that are due. */
export function watchDomains(
  db: Db,
  { names, resolve, now: clock, random, refusesUnverified, onChecked }: DomainWatch,
): () => Promise<number> {
  return async () => {
    const now = clock();
    const due = await claimDueDomains(db, { now, until: now + noAnswerDelayMs, limit: maxChecks });
    await Promise.all(
      due.map(async ({ id, orgId, name }) => {
        const domain = await findDomain(db, orgId, name);
        if (!domain) return;
        const watched = recordsFor(domain, names).filter(
          ({ required, purpose }) => required || purpose === 'return_path' || purpose === 'receiving',
        );
        await applyCheck(db, id, await checkRecords(watched, resolve), { now, random, refusesUnverified });
      }),
    );
    if (due.length > 0) onChecked();
    return due.length;
  };
}
