/**
 * The operator's views of the queue. Only reads, and only the unfinished deliveries (unfinished-deliveries.ts), so it delays
 * nothing. A summary reads each of their stages once.
 */
import type { Knex } from 'knex';
import { countPausedMail } from '#accounts/rows/pauses.ts';
import { ruleFor } from '#mail/deliver/reply-rules/classify.ts';
import type { Db } from '#platform/database/engine/open.ts';
import { partsOf } from '#platform/database/engine/parts-of.ts';
import { deliveries } from '#platform/database/tables/mail-tables.ts';
import { lastResult } from '#platform/database/tables/packed-records.ts';
import {
  everyStage,
  inStage,
  queueStages,
  type Stage,
} from '#platform/database/tables/unfinished-deliveries.ts';
import type { DeliveryStatus, Reply } from '#platform/values/glossary.ts';
import { readMissing, readNoEgress } from './ip-pools.ts';
import { isTo } from './recipient-condition.ts';

export type WaitingFigures = 'queued' | 'sending' | 'deferred' | 'held';

/** The unfinished deliveries for one recipient domain. */
export interface DomainQueue {
  domain: string;
  /** The last destination of the domain; the domain itself if it had none yet. */
  destination: string;
  counts: Record<WaitingFigures, number>;
  /** How many of the queued and deferred ones are due and wait for capacity. */
  parked: number;
  /** Counts by age: up to each of the bounds; the last one counts those older than all bounds. */
  ages: number[];
  oldestAt: number;
  /** The earliest due time; null if all are held or being sent. */
  nextAttemptAt: number | null;
  /** The latest reply to one of them. */
  lastReply: Reply | null;
  lastReplyAt: number | null;
  /** How many wait for IP pools that no running node has. */
  withoutSource: { pool: string; count: number }[];
  /** How many wait because their organizations are paused. */
  paused: number;
  /** If the latest reply is greylisting: first attempt of the mail that has waited longest. */
  greylistedSince: number | null;
}

/** Summarizes the queue by domain, the longest waiting first. `bounds`: ages in milliseconds, the lowest first. */
export async function summarizeQueue(
  db: Db,
  { now, bounds }: { now: number; bounds: readonly number[] },
): Promise<DomainQueue[]> {
  const queues = new Map<string, DomainQueue>();
  const latest: string[] = [];
  const earliest = new Map<string, string | null>();
  for (const stage of queueStages) {
    for (const row of await groups(db, stage, now, bounds)) {
      addRow(queues, row, bounds.length);
      if (row.latest !== null && stage !== 'held') latest.push(idOf(row.latest));
      if (stage === 'waiting') earliest.set(row.domain, row.earliest);
    }
  }
  for (const { domain, last_reply, updated_at } of await replies(db, latest)) {
    const queue = queues.get(domain)!;
    if (updated_at < (queue.lastReplyAt ?? 0)) continue;
    Object.assign(queue, { lastReply: JSON.parse(last_reply), lastReplyAt: updated_at });
  }
  await findGreylisted(db, queues, earliest);
  const destinations = new Map<string, string>();
  for (const { domain, destination } of await db('routes')) destinations.set(domain, destination);
  for (const { domain, pool, count } of await readNoEgress(db, await readMissing(db, now)))
    queues.get(domain)?.withoutSource.push({ pool, count });
  await addPaused(db, queues);
  for (const queue of queues.values()) queue.destination = destinations.get(queue.domain) ?? queue.domain;
  return [...queues.values()].sort(
    (a, b) => a.oldestAt - b.oldestAt || a.domain.localeCompare(b.domain, 'en'),
  );
}

/** Counts come as text from PostgreSQL. */
interface GroupRow {
  domain: string;
  total: number | string;
  queued: number | string;
  deferred: number | string;
  sending: number | string;
  held: number | string;
  parked: number | string;
  /** How many are up to as old as each bound. */
  [age: `age${number}`]: number | string;
  oldest_at: number;
  next_at: number | null;
  /** Time and delivery of the latest reply. */
  latest: string | null;
  /** Acceptance time and id of the oldest delivery with a reply. */
  earliest: string | null;
}

/**
 * Reads in the order of age, which is the order on the disk: SQLite would use the index by domain and look up a million rows in
 * random order.
 */
async function groups(db: Db, stage: Stage, now: number, bounds: readonly number[]): Promise<GroupRow[]> {
  const count = (condition: string, name: string, values: (number | string)[]) =>
    db.raw(`count(case when ${condition} then 1 end) as ${name}`, values);
  const query = db('deliveries')
    .where(inStage(stage))
    .where('expires_at', '>', 0)
    .groupByRaw("coalesce(domain, '')")
    .select(db.raw("coalesce(domain, '') as domain"))
    .count('* as total')
    .min('created_at as oldest_at');
  for (const status of statuses) query.select(count('status = ?', status, [status]));
  for (const [at, bound] of bounds.entries())
    query.select(count('created_at >= ?', `age${at}`, [now - bound]));
  query.select(count("status <> 'sending' and due_at <= ?", 'parked', [now]));
  query.select(db.raw("min(case when status <> 'sending' then due_at end) as next_at"));
  query.select(db.raw("max(case when last_reply is not null then updated_at || ' ' || id end) as latest"));
  query.select(db.raw("min(case when last_reply is not null then created_at || ' ' || id end) as earliest"));
  return query as unknown as Promise<GroupRow[]>;
}

const statuses = ['queued', 'sending', 'deferred', 'held'] as const;

const idOf = (latest: string) => latest.split(' ')[1]!;

function addRow(queues: Map<string, DomainQueue>, row: GroupRow, boundCount: number): void {
  const { domain } = row;
  const queue: DomainQueue = queues.get(domain) ?? {
    domain,
    destination: domain,
    counts: { queued: 0, sending: 0, deferred: 0, held: 0 },
    parked: 0,
    ages: Array<number>(boundCount + 1).fill(0),
    oldestAt: row.oldest_at,
    nextAttemptAt: null,
    lastReply: null,
    lastReplyAt: null,
    withoutSource: [],
    paused: 0,
    greylistedSince: null,
  };
  for (const status of statuses) queue.counts[status] += Number(row[status]);
  queue.parked += Number(row.parked);
  let younger = 0;
  for (let at = 0; at <= boundCount; at++) {
    const within = Number(at < boundCount ? row[`age${at}`] : row.total);
    queue.ages[at]! += within - younger;
    younger = within;
  }
  queue.oldestAt = Math.min(queue.oldestAt, row.oldest_at);
  if (row.next_at !== null) queue.nextAttemptAt = Math.min(queue.nextAttemptAt ?? row.next_at, row.next_at);
  queues.set(domain, queue);
}

type ReplyRow = { domain: string; last_reply: string; updated_at: number };

const idsPerStatement = 1000;

async function replies(db: Db, ids: string[]): Promise<ReplyRow[]> {
  const rows: ReplyRow[] = [];
  for (const part of partsOf(ids, idsPerStatement))
    rows.push(...(await db('deliveries').whereIn('id', part).select('domain', 'last_reply', 'updated_at')));
  return rows;
}

async function addPaused(db: Db, queues: Map<string, DomainQueue>): Promise<void> {
  for (const { domain, count } of await countPausedMail(db)) {
    const queue = queues.get(domain);
    if (queue) queue.paused = count;
  }
}

/** Looks up the first attempt of the oldest mail of the domains that are greylisting. */
async function findGreylisted(
  db: Db,
  queues: Map<string, DomainQueue>,
  earliest: Map<string, string | null>,
): Promise<void> {
  for (const [domain, oldest] of earliest) {
    const queue = queues.get(domain)!;
    if (oldest === null || !queue.lastReply || !isGreylisting(queue.lastReply)) continue;
    const row = await db('attempts')
      .where({ delivery_id: idOf(oldest) })
      .min('ended_at as at')
      .first();
    queue.greylistedSince = row?.at ?? queue.lastReplyAt;
  }
}

/** The reply to any command counts. */
function isGreylisting(reply: Reply): boolean {
  return reply.code < 500 && ruleFor('rcpt', reply).category === 'greylisting';
}

/** A condition for mail to a destination: to domains whose last destination it is, or to the domain of that name. */
export function ofDestination(name: string, domain = 'domain'): (query: Knex.QueryBuilder) => void {
  const served = 'select routes.domain from routes where destination = ?';
  return (query) => {
    query.whereRaw(`(${domain} = ? or ${domain} in (${served}))`, [name, name]);
  };
}

/** `id` is that of the delivery. */
const entries = deliveries.pick('id', 'emailId', 'orgId', 'recipient', 'status', 'attempts', 'createdAt');

export type QueueEntry = ReturnType<typeof entries.read> & {
  lastReply: Reply | null;
  nextAttemptAt: number | null;
  /** Since when it has been due, waiting for capacity at its destination. */
  dueSince: number | null;
};

export interface QueueFilter {
  domain?: string;
  destination?: string;
  orgId?: string;
  /** A recipient's address. */
  to?: string;
  status?: DeliveryStatus;
  /** The last id of the previous page. */
  after?: string | undefined;
  limit: number;
}

/**
 * Lists the queue, the first to expire first; with a status, all deliveries in that state. Scheduled mail is listed only by
 * its status, the next to start first.
 */
export async function listQueue(db: Db, filter: QueueFilter, now: number): Promise<QueueEntry[]> {
  const { status, limit, after } = filter;
  const found: Row[] = [];
  if (status && !(status in poolOf))
    found.push(...(await matching(db, filter).where({ status }).orderBy('id')));
  const order = status === 'scheduled' ? 'due_at' : 'expires_at';
  const last = after === undefined ? null : await db('deliveries').where({ id: after }).first(order);
  for (const stage of status ? everyStage : queueStages) {
    if (status && poolOf[status] !== stage) continue;
    const query = matching(db, filter).where(inStage(stage)).orderBy(order).orderBy('id');
    if (last) query.whereRaw(`(${order}, id) > (?, ?)`, [last[order], after]);
    found.push(...(await (status ? query.where({ status }) : query)));
  }
  found.sort((a, b) => a[order] - b[order] || (a.id < b.id ? -1 : 1));
  return found.slice(0, limit).map((row) => entryOf(row, now));
}

const poolOf: Partial<Record<DeliveryStatus, Stage>> = {
  queued: 'waiting',
  deferred: 'waiting',
  sending: 'leased',
  held: 'held',
  scheduled: 'scheduled',
};

function matching(db: Db, { domain, destination, orgId, to, limit }: QueueFilter): Knex.QueryBuilder {
  const query = db('deliveries').limit(limit);
  if (domain) query.where({ domain });
  if (destination) query.where(ofDestination(destination));
  if (orgId) query.where({ org_id: orgId });
  if (to) query.where(isTo(to));
  return query;
}

// biome-ignore lint/suspicious/noExplicitAny: the driver's rows have no type
type Row = any;

function entryOf(row: Row, now: number): QueueEntry {
  const nextAttemptAt = row.status === 'sending' ? null : row.due_at;
  const dueSince = nextAttemptAt !== null && nextAttemptAt <= now ? nextAttemptAt : null;
  const { lastReply } = lastResult(row);
  return { ...entries.read(row), lastReply, nextAttemptAt, dueSince };
}
