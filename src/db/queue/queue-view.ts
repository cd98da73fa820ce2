/**
 * What an operator sees of the queue. Reads only, and holds nobody up: of all mail there has ever been it looks at what
 * is in one of the three pools (unfinished-deliveries.ts). A summary looks at each of these once.
 */
import type { Knex } from 'knex';
import type { DeliveryStatus, Reply } from '../../glossary.ts';
import { ruleFor } from '../../reply-rules/classify.ts';
import { countPausedMail } from '../accounts/pauses.ts';
import type { Db } from '../engine/open.ts';
import { readMissing, readNoEgress } from './ip-pools.ts';
import { everyPool, inPool, type Pool } from './unfinished-deliveries.ts';

export type WaitingFigures = 'queued' | 'sending' | 'deferred' | 'held';

/** What waits for one recipient domain. */
export interface DomainQueue {
  domain: string;
  /** Whose hosts served the domain last; the domain itself where none have yet. */
  destination: string;
  counts: Record<WaitingFigures, number>;
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
  /** How many wait for pools of source addresses that no running node has. */
  stranded: { pool: string; count: number }[];
  /** How many wait because their organizations are paused. */
  paused: number;
  /** Where the latest reply is of greylisting: since when the mail that has waited longest has been put off. */
  greylistedSince: number | null;
}

/** `bounds`: ages in milliseconds, the lowest first. The domain whose mail has waited longest comes first. */
export async function summarizeQueue(
  db: Db,
  { now, bounds }: { now: number; bounds: readonly number[] },
): Promise<DomainQueue[]> {
  const queues = new Map<string, DomainQueue>();
  const latest: string[] = [];
  const earliest = new Map<string, string | null>();
  for (const pool of everyPool) {
    for (const row of await groups(db, pool, now, bounds)) {
      addRow(queues, row, bounds.length);
      if (row.latest !== null && pool !== 'held') latest.push(idOf(row.latest));
      if (pool === 'waiting') earliest.set(row.domain, row.earliest);
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
    queues.get(domain)?.stranded.push({ pool, count });
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
  /** How many are not older than each bound. */
  [age: `age${number}`]: number | string;
  oldest_at: number;
  next_at: number | null;
  /** When the latest reply came, and whose it is. */
  latest: string | null;
  /** When the oldest mail with a reply was accepted, and which it is. */
  earliest: string | null;
}

/**
 * In the order of their age, which is the order in which they lie on the disk: SQLite would rather take the index by
 * domain, and look up a million rows here and there.
 */
async function groups(db: Db, pool: Pool, now: number, bounds: readonly number[]): Promise<GroupRow[]> {
  const count = (condition: string, name: string, values: (number | string)[]) =>
    db.raw(`count(case when ${condition} then 1 end) as ${name}`, values);
  const query = db('deliveries')
    .where(inPool(pool))
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
    stranded: [],
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

const idsAStatement = 1000;

async function replies(db: Db, ids: string[]): Promise<ReplyRow[]> {
  const rows: ReplyRow[] = [];
  for (let start = 0; start < ids.length; start += idsAStatement) {
    const some = ids.slice(start, start + idsAStatement);
    rows.push(...(await db('deliveries').whereIn('id', some).select('domain', 'last_reply', 'updated_at')));
  }
  return rows;
}

async function addPaused(db: Db, queues: Map<string, DomainQueue>): Promise<void> {
  for (const { domain, count } of await countPausedMail(db)) {
    const queue = queues.get(domain);
    if (queue) queue.paused = count;
  }
}

/** Of the domains that are greylisting, the first attempt of the oldest mail is looked up. */
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

/** To whatever command. */
function isGreylisting(reply: Reply): boolean {
  return reply.code < 500 && ruleFor('rcpt', reply).category === 'greylisting';
}

/** Mail to a destination: to the domains that it served last, or to the domain of that name. */
export function ofDestination(name: string, domain = 'domain'): (query: Knex.QueryBuilder) => void {
  const served = 'select routes.domain from routes where destination = ?';
  return (query) => {
    query.whereRaw(`(${domain} = ? or ${domain} in (${served}))`, [name, name]);
  };
}

export interface QueueEntry {
  /** The delivery's. */
  id: string;
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
  /** The id of the entry that the page before ended with. */
  after?: string | undefined;
  limit: number;
}

/** What waits, what would expire first coming first; with a status anything in that state. */
export async function listQueue(db: Db, filter: QueueFilter, now: number): Promise<QueueEntry[]> {
  const { status, limit, after } = filter;
  const found: Row[] = [];
  if (status && !(status in poolOf))
    found.push(...(await matching(db, filter).where({ status }).orderBy('id')));
  const last = after === undefined ? null : await db('deliveries').where({ id: after }).first('expires_at');
  for (const pool of everyPool) {
    if (status && poolOf[status] !== pool) continue;
    const query = matching(db, filter).where(inPool(pool)).orderBy('expires_at').orderBy('id');
    if (last) query.whereRaw('(expires_at, id) > (?, ?)', [last.expires_at, after]);
    found.push(...(await (status ? query.where({ status }) : query)));
  }
  found.sort((a, b) => a.expires_at - b.expires_at || (a.id < b.id ? -1 : 1));
  return found.slice(0, limit).map((row) => entryOf(row, now));
}

const poolOf: Partial<Record<DeliveryStatus, Pool>> = {
  ...{ queued: 'waiting', deferred: 'waiting', sending: 'leased', held: 'held' },
};

function matching(db: Db, { domain, destination, orgId, limit }: QueueFilter): Knex.QueryBuilder {
  const query = db('deliveries').limit(limit);
  if (domain) query.where({ domain });
  if (destination) query.where(ofDestination(destination));
  if (orgId) query.where({ org_id: orgId });
  return query;
}

// biome-ignore lint/suspicious/noExplicitAny: a row is what the driver gives
type Row = any;

function entryOf(row: Row, now: number): QueueEntry {
  const nextAttemptAt = row.status === 'sending' ? null : row.due_at;
  return {
    id: row.id,
    emailId: row.email_id,
    orgId: row.org_id,
    recipient: row.recipient,
    status: row.status,
    attempts: row.attempts,
    createdAt: row.created_at,
    nextAttemptAt,
    dueSince: nextAttemptAt !== null && nextAttemptAt <= now ? nextAttemptAt : null,
    lastReply: row.last_reply === null ? null : JSON.parse(row.last_reply),
  };
}
