/**
 * Nodes on one PostgreSQL tell each other what they have committed, by LISTEN and NOTIFY on a connection of their own:
 * lanes whose mail they leave to others, and that there are new events. On SQLite there is nobody to tell.
 *
 * It saves the others the wait for their next look, once a second, and no more than that: what is not heard is found
 * then. So a notification follows the commit instead of being part of it (a commit that notifies waits for all others
 * that do), many commits share one, and lanes that do not fit are left out. All hear each ring, so that what PostgreSQL
 * has to pass on would grow with the square of the nodes: who hears many that ring rings less often. A connection that is
 * lost, or says nothing, is made anew; since something may have been missed by then, that itself counts as news.
 */
import { setTimeout as rest } from 'node:timers/promises';
import pg from 'pg';
import { orAborted } from '../base/abort.ts';

interface Lane {
  domain: string;
  orgId: string;
}

interface Heard {
  /** Mail waits there, due. */
  backlog(backlog: Lane): void;
  /** There are new events. */
  events(): void;
  /** Anything may have happened. */
  anything(): void;
}

export interface Notify {
  /** Mail waits in this lane that this node does not send. */
  backlog(backlog: Lane): void;
  events(): void;
  /** From now on what other nodes say goes there. */
  listen(heard: Heard): void;
  close(): Promise<void>;
}

export interface NotifyParts {
  databaseUrl: string | null;
  node: string;
  /** Whether this node sends mail (the role mta). */
  sends: boolean;
  onError(what: string, error: unknown): void;
}

interface News {
  from: string;
  events: boolean;
  lanes: [domain: string, orgId: string][];
}

const channel = 'postern';
/** How the connections of all nodes are called in pg_stat_activity, and those of nodes that send mail. */
export const anyConnection = 'postern bell';
export const senderConnection = 'postern bell, mta';
/** PostgreSQL takes less than 8,000 bytes; domains are ASCII. */
const maxText = 7_000;
/** Between two rings, for each node that rings; what is not told within a second others find by themselves. */
const minGapMs = 50;
const maxGapMs = 1_000;
/** A node that has not rung for so long does not count. */
const ringsForMs = 10_000;
const timeoutMs = 5_000;
/** A node that has said nothing for five seconds does not run (db/queue/server-running.ts). */
const beatIntervalMs = 2_000;
const retryDelayMs = 1_000;

const silent: Notify = { backlog() {}, events() {}, listen() {}, close: async () => {} };

export function createNotify({ databaseUrl, node, sends, onError }: NotifyParts): Notify {
  if (databaseUrl === null) return silent;
  const closing = new AbortController();
  let say: ((sql: string, values?: string[]) => Promise<unknown>) | null = null;
  let lanes = new Map<string, Lane>();
  let hasEvents = false;
  let ringing: NodeJS.Timeout | null = null;
  let rangAt = Number.NEGATIVE_INFINITY;
  let listening = Promise.resolve();
  /** When each of the others was last heard. */
  const others = new Map<string, number>();

  function ringSoon(): void {
    ringing ??= setTimeout(ring, Math.max(0, rangAt + gapMs() - performance.now()));
  }

  function gapMs(): number {
    const before = performance.now() - ringsForMs;
    for (const [node, heardAt] of others) if (heardAt < before) others.delete(node);
    return Math.min(minGapMs * Math.max(1, others.size), maxGapMs);
  }

  function ring(): void {
    ringing = null;
    rangAt = performance.now();
    const news: News = { from: node, events: hasEvents, lanes: [] };
    let size = 0;
    for (const { domain, orgId } of lanes.values()) {
      size += domain.length + orgId.length + 8;
      if (size > maxText) break;
      news.lanes.push([domain, orgId]);
    }
    lanes = new Map();
    hasEvents = false;
    // Where it fails the connection is lost, which is seen to elsewhere.
    say?.('select pg_notify($1, $2)', [channel, JSON.stringify(news)]).catch(() => {});
  }

  async function listen(heard: Heard): Promise<void> {
    let isTold = false;
    while (!closing.signal.aborted) {
      try {
        await listenOnce(heard, () => {
          isTold = false;
        });
      } catch (error) {
        const what = 'other nodes cannot be heard; looking once a second until they can, and trying again';
        if (!isTold && !closing.signal.aborted) onError(what, error);
        isTold = true;
      }
      await rest(retryDelayMs, null, { signal: closing.signal }).catch(() => {});
    }
  }

  /** Rejects when the connection is lost. */
  async function listenOnce(heard: Heard, onConnected: () => void): Promise<void> {
    const connection = new pg.Client({
      ...{ connectionString: databaseUrl!, keepAlive: true },
      application_name: sends ? senderConnection : anyConnection,
      ...{ connectionTimeoutMillis: timeoutMs, query_timeout: timeoutMs },
    });
    const lost = new AbortController();
    connection.on('error', (error) => lost.abort(error));
    connection.on('end', () => lost.abort(new Error('the connection has ended')));
    connection.on('notification', ({ payload }) => tell(heard, payload));
    try {
      await connection.connect();
      // One at a time.
      let said: Promise<unknown> = connection.query(`listen ${channel}`);
      const sayNext = (sql: string, values: string[] = []) => {
        said = said.then(() => connection.query(sql, values));
        return said;
      };
      await said;
      say = sayNext;
      onConnected();
      heard.anything();
      const isOver = () => closing.signal.aborted;
      while (!isOver()) {
        await orAborted(rest(beatIntervalMs, null, { signal: closing.signal, ref: false }), lost.signal);
        await sayNext('select 1');
      }
    } finally {
      say = null;
      // One that is lost would be waited for; nobody needs its goodbye.
      const ended = connection.end().catch(() => {});
      await Promise.race([ended, rest(retryDelayMs, null, { ref: false })]);
    }
  }

  function tell(heard: Heard, payload = ''): void {
    const news = newsOf(payload);
    if (!news || news.from === node) return;
    others.set(news.from, performance.now());
    if (news.events) heard.events();
    for (const [domain, orgId] of news.lanes) heard.backlog({ domain, orgId });
  }

  return {
    backlog(backlog) {
      lanes.set(`${backlog.orgId} ${backlog.domain}`, backlog);
      ringSoon();
    },
    events() {
      hasEvents = true;
      ringSoon();
    },
    listen(heard) {
      listening = listen(heard);
    },
    async close() {
      closing.abort();
      if (ringing) clearTimeout(ringing);
      ringing = null;
      await listening;
    },
  };
}

/** Whoever may connect to the database may notify; what is not ours is nothing to us. */
function newsOf(payload: string): News | null {
  try {
    const { from, events, lanes } = JSON.parse(payload);
    const isLane = (backlog: unknown) =>
      Array.isArray(backlog) && typeof backlog[0] === 'string' && typeof backlog[1] === 'string';
    const isNews = typeof from === 'string' && Array.isArray(lanes) && lanes.every(isLane);
    return isNews ? { from, events: events === true, lanes } : null;
  } catch {
    return null;
  }
}
