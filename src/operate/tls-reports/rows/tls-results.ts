/** Hands out the reports of RFC 8460 that are due, from the sessions that mail/queue/rows/tls-sessions.ts has counted. */
import type { Db } from '#platform/database/engine/open.ts';
import { inColumn, json, number, orNull, records, text, value } from '#platform/database/engine/records.ts';
import type { TlsSession } from '#platform/values/glossary.ts';

/** Rows read for one report. Policies beyond that are not reported. */
const maxRows = 1000;

export interface DueReport {
  day: number;
  domain: string;
}

/** Policies of rows that count no sessions (tls-report-limits.ts). */
export const bookkeeping = { sent: 'sent', wanted: 'wanted' };

const sessionRows = (db: Db) => db('tls_results').whereNotIn('policy', Object.values(bookkeeping));

/** The reports that are due, the oldest first. */
export async function dueTlsReports(db: Db, now: number, limit: number): Promise<DueReport[]> {
  return sessionRows(db)
    .where('due_at', '<=', now)
    .groupBy('day', 'domain')
    .orderByRaw('min(due_at)')
    .limit(limit)
    .select('day', 'domain');
}

const results = records({
  policy: value<TlsSession['policy']>(),
  policyText: json<string[]>(),
  host: text,
  failure: text,
  sessions: number,
  address: orNull(text),
  source: orNull(text),
  reason: inColumn('reason', orNull(text)),
});

export type TlsResultRow = ReturnType<typeof results.read>;

/** Takes a due report and postpones it until `until`, in case this node fails. Null: another node has taken it. */
export async function takeTlsReport(
  db: Db,
  { day, domain }: DueReport,
  now: number,
  until: number,
): Promise<TlsResultRow[] | null> {
  // PostgreSQL checks the time again once it has waited for another node's update.
  const taken = await sessionRows(db)
    .where({ day, domain })
    .where('due_at', '<=', now)
    .update({ due_at: until });
  if (taken === 0) return null;
  const rows = await sessionRows(db)
    .where({ day, domain })
    .orderBy(['policy', 'host', 'failure'])
    .limit(maxRows);
  return rows.map(results.read);
}

export async function forgetTlsResults(db: Db, { day, domain }: DueReport): Promise<void> {
  await sessionRows(db).where({ day, domain }).delete();
}
