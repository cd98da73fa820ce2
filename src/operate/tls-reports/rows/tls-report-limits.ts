/**
 * Counts the TLS reports that were sent, and the domains that want theirs sent to another domain, so that a stranger's DNS
 * cannot make us send many to a third party. Both are rows of `tls_results` with a policy that no session has; they are kept
 * for some days.
 */

import { dayMs } from '#mail/queue/rows/tls-sessions.ts';
import type { Db } from '#platform/database/engine/open.ts';
import { bookkeeping } from './tls-results.ts';

const { sent, wanted } = bookkeeping;
const keepDays = 2;

/** Reports of one day (UTC). */
const maxToAddress = 10;
const maxToDomain = 100;

export interface OutgoingTlsReport {
  /** The day that it reports. */
  day: number;
  /** The organizational domain that it is about. */
  about: string;
  /** A mail address, or a URL without its query. */
  to: string;
  /** The organizational domain of that. */
  toDomain: string;
}

/** False if it may not be sent: its address has one about these domains for that day already, or enough of others. */
export async function takeReport(db: Db, report: OutgoingTlsReport): Promise<boolean> {
  const { about, to, toDomain } = report;
  const day = dayOf(report);
  if (!(await insert(db, { day, domain: about, policy: sent, host: to, reason: toDomain }))) return false;
  // Counted after the insert: two nodes may both refuse the last one, but never send one too many.
  const today = db('tls_results').where({ day, policy: sent });
  const [[address], [domain]] = await Promise.all([
    today.clone().where({ host: to }).count('* as count'),
    today.clone().where({ reason: toDomain }).count('* as count'),
  ]);
  if (Number(address!.count) <= maxToAddress && Number(domain!.count) <= maxToDomain) return true;
  await giveReportBack(db, report);
  return false;
}

/** It could not be sent, and may be sent later. */
export async function giveReportBack(db: Db, report: OutgoingTlsReport): Promise<void> {
  const { about, to } = report;
  await db('tls_results')
    .where({ day: dayOf(report), domain: about, policy: sent, host: to })
    .delete();
}

/** A report is sent on the day after the one that it reports, or tried again on the next. */
const dayOf = ({ day }: OutgoingTlsReport) => day + 1;

/** Notes that the reports about one domain are wanted at another. Returns how many organizational domains want that. */
export async function noteWanted(
  db: Db,
  { about, domain }: { about: string; domain: string },
  now: number,
): Promise<number> {
  await insert(db, {
    day: Math.floor(now / dayMs),
    domain: about,
    policy: wanted,
    host: domain,
    reason: null,
  });
  const [row] = await db('tls_results')
    .where({ policy: wanted, host: domain })
    .countDistinct('domain as count');
  return Number(row!.count);
}

export async function forgetReports(db: Db, now: number): Promise<void> {
  await db('tls_results').whereIn('policy', [sent, wanted]).where('due_at', '<=', now).delete();
}

/** False if the row exists. */
async function insert(
  db: Db,
  row: { day: number; domain: string; policy: string; host: string; reason: string | null },
): Promise<boolean> {
  const added = await db('tls_results')
    .insert({ ...row, failure: '', sessions: 0, policy_text: '[]', due_at: (row.day + keepDays) * dayMs })
    .onConflict(['day', 'domain', 'policy', 'host', 'failure'])
    .ignore()
    .returning('day');
  return added.length > 0;
}
