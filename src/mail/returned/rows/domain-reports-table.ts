/**
 * DMARC and TLS reports on domains. Only reports on verified domains are stored, a bounded number for each domain, and for all
 * names below it, of which a stranger can name any number. An organization sees reports on domains that it has verified itself: an
 * unverified domain, or a name below it, proves nothing.
 */
import type { Knex } from 'knex';
import type { AggregateReport } from '#mail/returned/aggregate-report.ts';
import { newId } from '#platform/base/id.ts';
import { deleteBeyond, type MatchingRows } from '#platform/database/engine/delete-old.ts';
import type { Db, Trx } from '#platform/database/engine/open.ts';

const maxPerDomain = 1000;

/** 'known': it was received before; 'foreign': no organization has verified that domain. */
export async function keepReport(
  db: Db,
  report: AggregateReport,
  ownNames: string[],
  now: number,
): Promise<'kept' | 'known' | 'foreign'> {
  const { kind, domain, reporter, reportId, beginsAt, endsAt } = report;
  return db.transaction(async (trx) => {
    const group = ownNames.includes(domain) ? { domain } : await boundedGroup(trx, domain);
    if (group === null) return 'foreign';
    const row = { kind, domain, reporter, report_id: reportId };
    const times = { begins_at: beginsAt, ends_at: endsAt, received_at: now };
    const added = await trx('domain_reports')
      .insert({ id: newId(), ...row, ...times, report: JSON.stringify(report) })
      .onConflict(['kind', 'domain', 'reporter', 'report_id'])
      .ignore()
      .returning('id');
    if (added.length === 0) return 'known';
    await deleteBeyond(trx, 'domain_reports', group, maxPerDomain);
    return 'kept';
  });
}

/**
 * Which reports are bounded together with those on this domain, if it is verified, or above or below a verified domain, because a
 * DMARC record may apply to all names below it. Null if it is not. `domain` has no wildcard.
 */
async function boundedGroup(trx: Trx, domain: string): Promise<MatchingRows | null> {
  const verified = () => trx('domains').where({ status: 'verified' });
  const above: string[] = await verified().whereIn('name', withParents(domain)).pluck('name');
  if (above.includes(domain)) return { domain };
  const [highest] = above.sort((a, b) => a.length - b.length);
  if (highest !== undefined)
    return (rows) =>
      rows.where('domain', 'like', `%.${highest}`).whereNotIn('domain', verified().select('name'));
  const below = await verified().where('name', 'like', `%.${domain}`).first('id');
  return below === undefined ? null : { domain };
}

/** mail.example.org, example.org. */
function withParents(domain: string): string[] {
  const labels = domain.split('.');
  return labels.slice(0, -1).map((_, at) => labels.slice(at).join('.'));
}

export interface ReportRecord {
  receivedAt: number;
  report: AggregateReport;
}

/** Lists reports on a domain and the domains above it, whose policies apply to it, if the organization has verified them. */
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

/** The same for the operator, regardless of which organization has the domain. */
export async function listAllReports(db: Db, domain: string, limit: number): Promise<ReportRecord[]> {
  return newestReports(db('domain_reports').whereIn('domain', withParents(domain)), limit);
}

async function newestReports(reports: Knex.QueryBuilder, limit: number): Promise<ReportRecord[]> {
  const rows = await reports.orderBy('id', 'desc').limit(limit).select('received_at', 'report');
  // biome-ignore lint/suspicious/noExplicitAny: the driver's rows have no type
  return rows.map((row: any) => ({ receivedAt: row.received_at, report: JSON.parse(row.report) }));
}
