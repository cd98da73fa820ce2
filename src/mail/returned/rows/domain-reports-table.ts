/**
 * DMARC and TLS reports on domains. Only reports on verified domains are stored, a bounded number for each domain, and for all
 * names below it, of which a stranger can name any number. An organization sees reports on domains that it has verified itself: an
 * unverified domain, or a name below it, proves nothing; nor does the domain of what it was when others had it.
 */
import type { Knex } from 'knex';
import type { AggregateReport } from '#mail/returned/aggregate-report.ts';
import { newId } from '#platform/base/id.ts';
import { deleteBeyond } from '#platform/database/engine/delete-old.ts';
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
    const place = ownNames.includes(domain) ? domain : await placeOf(trx, domain);
    if (place === null) return 'foreign';
    const id = place === domain ? reportId : `${domain}/${reportId}`;
    const row = { kind, domain: place, reporter, report_id: id };
    const times = { begins_at: beginsAt, ends_at: endsAt, received_at: now };
    const added = await trx('domain_reports')
      .insert({ id: newId(), ...row, ...times, report: JSON.stringify(report) })
      .onConflict(['kind', 'domain', 'reporter', 'report_id'])
      .ignore()
      .returning('id');
    if (added.length === 0) return 'known';
    await deleteBeyond(trx, 'domain_reports', { domain: place }, maxPerDomain);
    return 'kept';
  });
}

/**
 * The domain that a report is stored for: this one, if it is verified, or above a verified domain, because a DMARC record may apply
 * to all names below it; `*.example.org` if it is below verified domains, so that an index finds all of these to bound them. Null
 * if it is neither. `domain` has no wildcard.
 */
async function placeOf(trx: Trx, domain: string): Promise<string | null> {
  const verified = () => trx('domains').where({ status: 'verified' });
  const above: string[] = await verified().whereIn('name', withParents(domain)).pluck('name');
  if (above.includes(domain)) return domain;
  const [highest] = above.sort((a, b) => a.length - b.length);
  if (highest !== undefined) return `*.${highest}`;
  const below = await verified().where('name', 'like', `%.${domain}`).first('id');
  return below === undefined ? null : domain;
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

/**
 * Lists reports on a domain and the domains above it, whose policies apply to it, if the organization has verified them, and since
 * then.
 */
export async function listReports(
  db: Db,
  { orgId, domain }: { orgId: string; domain: string },
  limit: number,
): Promise<ReportRecord[]> {
  const reports = db('domain_reports')
    .join('domains', 'domains.name', 'domain_reports.domain')
    .where({ org_id: orgId, status: 'verified' })
    .whereIn('name', withParents(domain))
    .where('begins_at', '>=', db.ref('verified_at'));
  return newestReports(reports, limit);
}

/** The same for the operator, regardless of which organization has the domain. */
export async function listAllReports(db: Db, domain: string, limit: number): Promise<ReportRecord[]> {
  const names = withParents(domain);
  const reports = db('domain_reports').whereIn('domain', names);
  for (const name of names)
    reports.orWhere((below) =>
      below
        .whereIn(
          'domain',
          names.map((above) => `*.${above}`),
        )
        .where('report_id', 'like', `${name}/%`),
    );
  return newestReports(reports, limit);
}

async function newestReports(reports: Knex.QueryBuilder, limit: number): Promise<ReportRecord[]> {
  const rows = await reports
    .orderBy('domain_reports.id', 'desc')
    .limit(limit)
    .select('received_at', 'report');
  // biome-ignore lint/suspicious/noExplicitAny: the driver's rows have no type
  return rows.map((row: any) => ({ receivedAt: row.received_at, report: JSON.parse(row.report) }));
}
