/**
 * Counts TLS sessions by recipient domain and day (UTC) for the reports of RFC 8460, which
 * operate/tls-reports/rows/tls-results.ts hands out. A row exists for each policy, host and kind of failure, and one for all
 * successes: their number depends on the hosts that were called, not on the mails.
 */
import { createHash } from 'node:crypto';
import { insertOf } from '#platform/database/engine/insert-rows.ts';
import type { Trx } from '#platform/database/engine/open.ts';
import type { Attempt, TlsSession } from '#platform/values/glossary.ts';

const hourMs = 3_600_000;
export const dayMs = 24 * hourMs;
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
