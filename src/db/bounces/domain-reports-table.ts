/**
 * Reports on domains, DMARC's and TLS's: kept for domains that somebody here has verified, a bounded number for each. An
 * organization sees those on a domain that it has verified itself: a registered name proves nothing, and neither does a
 * name below it.
 */
import type { Knex } from 'knex';
import { v7 as uuid } from 'uuid';
import type { Report } from '../../bounces/parse/parse-result.ts';
import type { Db, Trx } from '../engine/open.ts';

const maxOfOne = 1000;

/** 'known': it had come before; 'foreign': nobody here has verified that domain. */
export async function keepReport(
  db: Db,
  report: Report,
  ownNames: string[],
  now: number,
): Promise<'kept' | 'known' | 'foreign'> {
  const { kind, domain, reporter, reportId, beginsAt, endsAt } = report;
  return db.transaction(async (trx) => {
    if (!ownNames.includes(domain) && !(await isVerified(trx, domain))) return 'foreign';
    const row = { kind, domain, reporter, report_id: reportId };
    const times = { begins_at: beginsAt, ends_at: endsAt, received_at: now };
    const added = await trx('domain_reports')
      .insert({ id: uuid(), ...row, ...times, report: JSON.stringify(report) })
      .onConflict(['kind', 'domain', 'reporter', 'report_id'])
      .ignore()
      .returning('id');
    if (added.length === 0) return 'known';
    await forgetOld(trx, domain);
    return 'kept';
  });
}

/**
 * Verified, or above or below what is: one DMARC record may stand for all names under it. `domain` is a domain name, so no
 * wildcard is in it.
 */
async function isVerified(trx: Trx, domain: string): Promise<boolean> {
  const row = await trx('domains')
    .where({ status: 'verified' })
    .where((named) => named.whereIn('name', withParents(domain)).orWhere('name', 'like', `%.${domain}`))
    .first('id');
  return row !== undefined;
}

/** mail.example.org, example.org. */
function withParents(domain: string): string[] {
  const labels = domain.split('.');
  return labels.slice(0, -1).map((_, at) => labels.slice(at).join('.'));
}

async function forgetOld(trx: Trx, domain: string): Promise<void> {
  const old: string[] = await trx('domain_reports')
    .where({ domain })
    .orderBy('id', 'desc')
    .offset(maxOfOne)
    .limit(100)
    .pluck('id');
  if (old.length > 0) await trx('domain_reports').whereIn('id', old).delete();
}

export interface ReportRecord {
  receivedAt: number;
  report: Report;
}

/** Reports on a domain and on those above it whose policy holds for it, as far as the organization has verified them. */
export async function listReports(
  db: Db,
  { orgId, domain }: { orgId: string; domain: string },
  limit: number,
): Promise<ReportRecord[]> {
  const verified = db('domains')
    .where({ org_id: orgId, status: 'verified' })
    .whereIn('name', withParents(domain))
    .select('name');
  return newestReports(db('domain_reports').whereIn('domain', verified), limit);
}

/** The same for the operator, whoever has the domain. */
export async function listAllReports(db: Db, domain: string, limit: number): Promise<ReportRecord[]> {
  return newestReports(db('domain_reports').whereIn('domain', withParents(domain)), limit);
}

async function newestReports(reports: Knex.QueryBuilder, limit: number): Promise<ReportRecord[]> {
  const rows = await reports.orderBy('id', 'desc').limit(limit).select('received_at', 'report');
  // biome-ignore lint/suspicious/noExplicitAny: a row is what the driver gives
  return rows.map((row: any) => ({ receivedAt: row.received_at, report: JSON.parse(row.report) }));
}
