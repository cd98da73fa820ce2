/**
 * Counts TLS sessions by recipient domain and day (UTC) for the reports of RFC 8460, and hands out the days that are due. A row
 * exists for each policy, host and kind of failure, and one for all successes: their number depends on the hosts that were
 * called, not on the mails.
 */
import { createHash } from 'node:crypto';
import { insertOf } from '#platform/database/engine/insert-rows.ts';
import type { Db, Trx } from '#platform/database/engine/open.ts';
import { inColumn, json, number, orNull, records, text, value } from '#platform/database/engine/records.ts';
import type { Attempt, TlsSession } from '#platform/values/glossary.ts';

const hourMs = 3_600_000;
export const dayMs = 24 * hourMs;
/** Rows read for one report. Policies beyond that are not reported. */
const maxRows = 1000;
const longestReason = 500;

/** The sessions of one attempt. */
interface TlsCount {
  domain: string;
  attempt: Attempt;
}

interface NewRow {
  day: number;
  domain: string;
  policy: TlsSession['policy'];
  host: string;
  failure: string;
  sessions: number;
  policy_text: string;
  address: string | null;
  source: string | null;
  reason: string | null;
  due_at: number;
}

/** One statement for all attempts of a commit, and none if no new connection was made. */
export async function countTlsSessions(trx: Trx, counts: TlsCount[]): Promise<void> {
  const rows = new Map<string, NewRow>();
  for (const { domain, attempt } of counts) {
    for (const session of attempt.tlsSessions ?? []) add(rows, domain, session, attempt.endedAt);
  }
  if (rows.size === 0) return;
  // In one order everywhere, so that two nodes never wait for each other's rows.
  const ordered = [...rows].sort(([one], [other]) => (one < other ? -1 : 1)).map(([, row]) => row);
  const [insert, values] = insertOf(trx, 'tls_results', ordered);
  await trx.raw(
    `${insert} where true on conflict (day, domain, policy, host, failure) do update set
       sessions = tls_results.sessions + excluded.sessions, policy_text = excluded.policy_text,
       address = excluded.address, source = excluded.source, reason = excluded.reason`,
    values,
  );
}

function add(rows: Map<string, NewRow>, domain: string, session: TlsSession, at: number): void {
  const day = Math.floor(at / dayMs);
  const failure = session.failure ?? '';
  // Successes are not reported by host.
  const host = failure === '' ? '' : session.host;
  const key = JSON.stringify([day, domain, session.policy, host, failure]);
  const sessions = (rows.get(key)?.sessions ?? 0) + 1;
  rows.set(key, {
    day,
    domain,
    policy: session.policy,
    host,
    failure,
    sessions,
    policy_text: JSON.stringify(session.policyText),
    address: session.address,
    source: session.source,
    reason: session.reason?.slice(0, longestReason) ?? null,
    due_at: reportTime(day, domain),
  });
}

/** A random hour of the next day (RFC 8460 section 4.1), which all nodes know without a word. */
export function reportTime(day: number, domain: string): number {
  const random = createHash('sha256').update(`${day} ${domain}`).digest().readUInt32BE() / 2 ** 32;
  return Math.round((day + 1) * dayMs + hourMs + random * 20 * hourMs);
}

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
