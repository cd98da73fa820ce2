/** What an operator sees of the queue. Reads only; counts are over what waits, which the partial index holds. */
import type { DeliveryStatus } from '../nouns.ts';
import type { Db } from './open.ts';

export interface QueueSummary {
  domain: string;
  queued: number;
  sending: number;
  deferred: number;
  held: number;
  oldestAt: number;
  nextAttemptAt: number | null;
}

export interface QueueEntry {
  emailId: string;
  orgId: string;
  recipient: string;
  status: DeliveryStatus;
  attempts: number;
  createdAt: number;
  nextAttemptAt: number | null;
  lastReply: { code: number; enhanced: string | null; text: string } | null;
}

const waiting: DeliveryStatus[] = ['queued', 'sending', 'deferred', 'held'];

/** One line a recipient domain, the one whose mail has waited longest first. */
export async function summarizeQueue(db: Db): Promise<QueueSummary[]> {
  const rows = await db('deliveries')
    .whereIn('status', waiting)
    .groupBy('domain', 'status')
    .select('domain', 'status')
    .count('* as count')
    .min('created_at as oldest_at')
    .min('due_at as due_at');
  const summaries = new Map<string, QueueSummary>();
  for (const row of rows as unknown as SummaryRow[]) addRow(summaries, row);
  return [...summaries.values()].sort((a, b) => a.oldestAt - b.oldestAt);
}

interface SummaryRow {
  domain: string;
  status: 'queued' | 'sending' | 'deferred' | 'held';
  count: number;
  oldest_at: number;
  due_at: number | null;
}

function addRow(summaries: Map<string, QueueSummary>, row: SummaryRow): void {
  const empty = { queued: 0, sending: 0, deferred: 0, held: 0, oldestAt: row.oldest_at, nextAttemptAt: null };
  const summary: QueueSummary = summaries.get(row.domain) ?? { domain: row.domain, ...empty };
  summary[row.status] += row.count;
  summary.oldestAt = Math.min(summary.oldestAt, row.oldest_at);
  if (row.status !== 'sending' && row.due_at !== null) {
    summary.nextAttemptAt = Math.min(summary.nextAttemptAt ?? row.due_at, row.due_at);
  }
  summaries.set(row.domain, summary);
}

export interface QueueFilter {
  domain?: string;
  orgId?: string;
  status?: DeliveryStatus;
  limit: number;
}

/** What waits, oldest first. */
export async function listQueue(db: Db, filter: QueueFilter): Promise<QueueEntry[]> {
  const query = db('deliveries')
    .whereIn('status', filter.status ? [filter.status] : waiting)
    .orderBy('id')
    .limit(filter.limit);
  if (filter.domain) query.where({ domain: filter.domain });
  if (filter.orgId) query.where({ org_id: filter.orgId });
  return (await query).map((row) => ({
    emailId: row.email_id,
    orgId: row.org_id,
    recipient: row.recipient,
    status: row.status,
    attempts: row.attempts,
    createdAt: row.created_at,
    nextAttemptAt: row.status === 'sending' ? null : row.due_at,
    lastReply: row.last_reply === null ? null : JSON.parse(row.last_reply),
  }));
}
