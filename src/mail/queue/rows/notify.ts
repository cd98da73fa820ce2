/**
 * Nodes on one PostgreSQL notify each other of what they have committed, by LISTEN and NOTIFY on a connection of their
 * own: backlogs whose mail they leave to others, and that there are new events. On SQLite there are no other nodes.
 *
 * Notifications only save the others the wait for their next scan, once a second; that scan finds whatever was lost. So a
 * notification follows the commit instead of being part of it (a commit that notifies waits for all others that do), many
 * commits share one, and backlogs that do not fit are left out. Every node receives every notification, so PostgreSQL's
 * work would grow with the square of the nodes: the more nodes notify, the less often each of them does. A connection that
 * is lost or silent is replaced. Notifications may have been missed by then, so the new connection counts as one.
 */

import { setTimeout as sleep } from 'node:timers/promises';
import { z } from 'zod';
import { orAborted } from '#platform/base/waits.ts';
import { anyConnection, senderConnection } from '#platform/database/tables/server-running.ts';
import type { Backlog } from '#platform/values/glossary.ts';

interface NotificationHandlers {
  /** Another node, or any user of the database, says that mail in these backlogs is due: look before believing it. */
  backlogs(backlogs: Backlog[]): void;
  /** There are new events. */
  events(): void;
  /** Notifications may have been missed. */
  anything(): void;
}

export interface Notify {
  /** Mail that this node does not send waits in this backlog. */
  backlog(backlog: Backlog): void;
  events(): void;
  /** Hands the notifications of other nodes to these handlers from now on. */
  listen(handlers: NotificationHandlers): void;
  close(): Promise<void>;
}

export interface NotifyParts {
  databaseUrl: string | null;
  node: string;
  /** Whether this node sends mail (the role mta). */
  sends: boolean;
  onError(what: string, error: unknown): void;
}

/** Nodes of other versions read it too, so its members keep their names. `lanes`: backlogs with new mail. */
const payloadSchema = z.object({
  from: z.string().max(255),
  events: z.boolean().catch(false),
  lanes: z.array(z.tuple([z.string().regex(/^[\x21-\x7e]{1,255}$/), z.guid()], z.unknown())),
});

type Query = (sql: string, values?: string[]) => Promise<unknown>;

const channel = 'postern';
/** PostgreSQL takes less than 8,000 bytes; domains are ASCII. */
const maxPayloadBytes = 7_000;
/** Between two notifications, for each node that notifies. After a second the others have scanned anyway. */
const minGapMs = 50;
const maxGapMs = 1_000;
/** A node that has not notified for this long is not counted. */
const activeMs = 10_000;
const timeoutMs = 5_000;
/** A node that has said nothing for ten seconds is taken for stopped, by older versions for five (server-running.ts). */
const heartbeatIntervalMs = 4_000;
const retryDelayMs = 1_000;

const silent: Notify = { backlog() {}, events() {}, listen() {}, close: async () => {} };

export function createNotify(parts: NotifyParts): Notify {
  if (parts.databaseUrl === null) return silent;
  const sender = createSender(parts.node);
  const closing = new AbortController();
  let listening = Promise.resolve();
  return {
    backlog: sender.backlog,
    events: sender.events,
    listen(handlers) {
      listening = listen(parts, sender, handlers, closing.signal);
    },
    async close() {
      closing.abort();
      sender.close();
      await listening;
    },
  };
}

type Sender = ReturnType<typeof createSender>;

/** Collects notifications, and sends them together at a limited rate. */
function createSender(node: string) {
  let query: Query | null = null;
  let backlogs = new Map<string, Backlog>();
  let hasEvents = false;
  let timer: NodeJS.Timeout | null = null;
  let sentAt = Number.NEGATIVE_INFINITY;
  /** When each of the other nodes last notified. */
  const others = new Map<string, number>();

  function sendSoon(): void {
    timer ??= setTimeout(send, Math.max(0, sentAt + gapMs() - performance.now()));
  }

  function gapMs(): number {
    const before = performance.now() - activeMs;
    for (const [other, at] of others) if (at < before) others.delete(other);
    return Math.min(minGapMs * Math.max(1, others.size), maxGapMs);
  }

  function send(): void {
    timer = null;
    sentAt = performance.now();
    const payload: z.output<typeof payloadSchema> = { from: node, events: hasEvents, lanes: [] };
    let size = 0;
    for (const { domain, orgId } of backlogs.values()) {
      size += domain.length + orgId.length + 8;
      if (size > maxPayloadBytes) break;
      payload.lanes.push([domain, orgId]);
    }
    backlogs = new Map();
    hasEvents = false;
    // If this fails, the connection is lost, and listen() replaces it.
    query?.('select pg_notify($1, $2)', [channel, JSON.stringify(payload)]).catch(() => {});
  }

  return {
    node,
    /** Null while there is no connection: then nothing is sent. */
    use(next: Query | null): void {
      query = next;
    },
    noteOther(other: string): void {
      // More would not make the gap longer, and any user of the database can invent names.
      if (others.size * minGapMs < maxGapMs || others.has(other)) others.set(other, performance.now());
    },
    backlog(backlog: Backlog): void {
      backlogs.set(`${backlog.orgId} ${backlog.domain}`, backlog);
      sendSoon();
    },
    events(): void {
      hasEvents = true;
      sendSoon();
    },
    close(): void {
      if (timer) clearTimeout(timer);
      timer = null;
    },
  };
}

/** Stays connected until `closing`. Reports the first failure after each success. */
async function listen(
  parts: NotifyParts,
  sender: Sender,
  handlers: NotificationHandlers,
  closing: AbortSignal,
): Promise<void> {
  let isReported = false;
  const onConnected = () => {
    isReported = false;
    handlers.anything();
  };
  while (!closing.aborted) {
    try {
      await listenOnce(parts, sender, { ...handlers, onConnected }, closing);
    } catch (error) {
      const what =
        'the notifications of other nodes cannot be received; scanning once a second until they can, and reconnecting';
      if (!isReported && !closing.aborted) parts.onError(what, error);
      isReported = true;
    }
    await sleep(retryDelayMs, null, { signal: closing }).catch(() => {});
  }
}

/** Rejects when the connection is lost. */
async function listenOnce(
  { databaseUrl, sends }: NotifyParts,
  sender: Sender,
  handlers: NotificationHandlers & { onConnected(): void },
  closing: AbortSignal,
): Promise<void> {
  const { Client } = await import('pg');
  const connection = new Client({
    connectionString: databaseUrl!,
    keepAlive: true,
    application_name: sends ? senderConnection : anyConnection,
    connectionTimeoutMillis: timeoutMs,
    query_timeout: timeoutMs,
  });
  const lost = new AbortController();
  connection.on('error', (error) => lost.abort(error));
  connection.on('end', () => lost.abort(new Error('the connection has ended')));
  connection.on('notification', ({ payload }) => receive(sender, handlers, payload));
  try {
    await connection.connect();
    // Queries follow one another: the connection takes one at a time.
    let last: Promise<unknown> = connection.query(`listen ${channel}`);
    const query: Query = (sql, values = []) => {
      last = last.then(() => connection.query(sql, values));
      return last;
    };
    await last;
    sender.use(query);
    handlers.onConnected();
    while (!closing.aborted) {
      await orAborted(sleep(heartbeatIntervalMs, null, { signal: closing, ref: false }), lost.signal);
      await query('select 1');
    }
  } finally {
    sender.use(null);
    // A lost connection may never confirm its end, and the confirmation is not needed.
    const ended = connection.end().catch(() => {});
    await Promise.race([ended, sleep(retryDelayMs, null, { ref: false })]);
  }
}

function receive(sender: Sender, handlers: NotificationHandlers, text = ''): void {
  const payload = parsePayload(text);
  if (!payload || payload.from === sender.node) return;
  sender.noteOther(payload.from);
  if (payload.events) handlers.events();
  if (payload.lanes.length > 0)
    handlers.backlogs(payload.lanes.map(([domain, orgId]) => ({ domain, orgId })));
}

/** Any user of the database may notify on the channel: everything that is not ours is ignored. */
function parsePayload(text: string) {
  try {
    return payloadSchema.safeParse(JSON.parse(text)).data;
  } catch {
    return undefined;
  }
}
