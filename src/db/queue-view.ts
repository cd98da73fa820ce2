/**
 * What an operator sees of the queue. Reads only, and holds nobody up. What the queue will look at is found by its
 * partial index; what is held has none, and is found by a look at all rows.
 */
import type { Knex } from 'knex';
import type { DeliveryStatus, Reply } from '../nouns.ts';
import type { Db } from './open.ts';

export type Waiting = 'queued' | 'sending' | 'deferred' | 'held';

/** What waits for one recipient domain. */
export interface DomainQueue {
  domain: string;
  /** Whose hosts served the domain last; the domain itself where none have yet. */
  destination: string;
  counts: Record<Waiting, number>;
  /** How many of the queued and deferred ones are due, and only wait for room. */
  parked: number;
  /** How many are not older than each of the bounds; the last one counts those beyond them all. */
  ages: number[];
  oldestAt: number;
  /** When the first of them is, or was, due; null where all are held or being sent. */
  nextAttemptAt: number | null;
  /** The latest reply that one of them has met. */
  lastReply: Reply | null;
  lastReplyAt: number | null;
}

interface GroupRow {
  domain: string;
  destination: string | null;
  status: Waiting;
  age: number;
  count: number | string;
  parked: number | string;
  oldest_at: number;
  next_at: number | null;
}

/** `bounds`: ages in milliseconds, the lowest first. The domain whose mail has waited longest comes first. */
export async function summarizeQueue(
  db: Db,
  { now, bounds }: { now: number; bounds: readonly number[] },
): Promise<DomainQueue[]> {
  const queues = new Map<string, DomainQueue>();
  for (const condition of ['due_at is not null', "status = 'held'"]) {
    for (const row of await groups(db, condition, now, bounds)) addRow(queues, row, bounds.length + 1);
  }
  for (const { domain, last_reply, updated_at } of await lastReplies(db)) {
    const queue = queues.get(domain);
    if (queue) Object.assign(queue, { lastReply: JSON.parse(last_reply), lastReplyAt: updated_at });
  }
  return [...queues.values()].sort(
    (a, b) => a.oldestAt - b.oldestAt || a.domain.localeCompare(b.domain, 'en'),
  );
}

async function groups(
  db: Db,
  condition: string,
  now: number,
  bounds: readonly number[],
): Promise<GroupRow[]> {
  const steps = bounds.map((_, at) => `when created_at >= ? then ${at}`).join(' ');
  const rows = db('deliveries')
    .whereRaw(condition)
    .select('domain', 'status', 'created_at', 'parked_at')
    .select(db.raw('coalesce(parked_at, due_at) as next_at'))
    .select(
      db.raw(
        `case ${steps} else ${bounds.length} end as age`,
        bounds.map((bound) => now - bound),
      ),
    )
    .as('waiting');
  return db
    .from(rows)
    .leftJoin('routes', 'routes.domain', 'waiting.domain')
    .groupBy('waiting.domain', 'routes.destination', 'status', 'age')
    .select('waiting.domain', 'routes.destination', 'status', 'age')
    .count('* as count')
    .count('parked_at as parked')
    .min('created_at as oldest_at')
    .min('next_at as next_at') as unknown as Promise<GroupRow[]>;
}

function addRow(queues: Map<string, DomainQueue>, row: GroupRow, groupCount: number): void {
  const { domain, destination, status } = row;
  const queue: DomainQueue = queues.get(domain) ?? {
    domain,
    destination: destination ?? domain,
    counts: { queued: 0, sending: 0, deferred: 0, held: 0 },
    parked: 0,
    ages: Array<number>(groupCount).fill(0),
    oldestAt: row.oldest_at,
    nextAttemptAt: null,
    lastReply: null,
    lastReplyAt: null,
  };
  queue.counts[status] += Number(row.count);
  queue.parked += Number(row.parked);
  queue.ages[row.age]! += Number(row.count);
  queue.oldestAt = Math.min(queue.oldestAt, row.oldest_at);
  if ((status === 'queued' || status === 'deferred') && row.next_at !== null) {
    queue.nextAttemptAt = Math.min(queue.nextAttemptAt ?? row.next_at, row.next_at);
  }
  queues.set(domain, queue);
}

type ReplyRow = { domain: string; last_reply: string; updated_at: number };

async function lastReplies(db: Db): Promise<ReplyRow[]> {
  const numbered = db('deliveries')
    .whereNotNull('due_at')
    .whereNotNull('last_reply')
    .select('domain', 'last_reply', 'updated_at')
    .rowNumber('latest', (over) => over.partitionBy('domain').orderBy('updated_at', 'desc'))
    .as('replies');
  return db.from(numbered).where({ latest: 1 }).select('domain', 'last_reply', 'updated_at');
}

/** Mail to a destination: to the domains that it served last, or to the domain of that name. */
export function ofDestination(name: string): (query: Knex.QueryBuilder) => void {
  return (query) => {
    query
      .whereIn('domain', (routes: Knex.QueryBuilder) => {
        routes.from('routes').where({ destination: name }).select('domain');
      })
      .orWhere('domain', name);
  };
}

export interface QueueEntry {
  emailId: string;
  orgId: string;
  recipient: string;
  status: DeliveryStatus;
  attempts: number;
  createdAt: number;
  nextAttemptAt: number | null;
  /** Since when it has been due without its destination having room. */
  dueSince: number | null;
  lastReply: Reply | null;
}

export interface QueueFilter {
  domain?: string;
  destination?: string;
  orgId?: string;
  status?: DeliveryStatus;
  limit: number;
}

/** What waits, oldest first. */
export async function listQueue(db: Db, filter: QueueFilter): Promise<QueueEntry[]> {
  const query = db('deliveries').orderBy('id').limit(filter.limit);
  if (filter.status) query.where({ status: filter.status });
  else query.where((each) => each.whereNotNull('due_at').orWhereRaw("status = 'held'"));
  if (filter.domain) query.where({ domain: filter.domain });
  if (filter.destination) query.where(ofDestination(filter.destination));
  if (filter.orgId) query.where({ org_id: filter.orgId });
  return (await query).map((row) => ({
    emailId: row.email_id,
    orgId: row.org_id,
    recipient: row.recipient,
    status: row.status,
    attempts: row.attempts,
    createdAt: row.created_at,
    nextAttemptAt: row.status === 'sending' ? null : (row.parked_at ?? row.due_at),
    dueSince: row.parked_at,
    lastReply: row.last_reply === null ? null : JSON.parse(row.last_reply),
  }));
}
