/**
 * Nodes on one PostgreSQL in virtual time, for the scaling laws of docs/sizing.md. Each node has the real queue: the runner with its
 * claimer, ready queues, shaping, leases and polls, the shares of the nodes, group commits and published states. PostgreSQL, the
 * processors and the hosts are only times, which scale-costs.ts has measured. No row is kept that the queue does not ask for.
 */
import { scheduler, world } from '#lab/simulation/machine/scheduler.ts';
import { classify, type SessionResult } from '#mail/deliver/outcome.ts';
import type { Heartbeat } from '#mail/queue/cluster/membership.ts';
import { createPeers } from '#mail/queue/cluster/peers.ts';
import type { PeerState } from '#mail/queue/peer-state.ts';
import { QueueRunner } from '#mail/queue/runner.ts';
import { nextAttemptAt } from '#mail/queue/schedule.ts';
import type { Store } from '#mail/queue/store.ts';
import { createDestinationPublisher } from '#mail/record/destination-publisher.ts';
import type { Clock } from '#platform/base/clock.ts';
import { groupCommit } from '#platform/database/engine/group-commit.ts';
import { createQuietCheck } from '#platform/database/engine/quiet-check.ts';
import { leaseMs } from '#platform/database/tables/nodes.ts';
import { defaultShape } from '#platform/settings/shaping-rules.ts';
import type { Attempt, Backlog, Delivery } from '#platform/values/glossary.ts';
import type { Costs } from './scale-costs.ts';

export interface Layout {
  nodes: number;
  /** Of PostgreSQL, and of each node; `shared`: all programs have these together, the callers and the hosts too. */
  processors: { database: number; node: number } | { shared: number };
  destinations: number;
  /** The time that a host takes for a mail; null: nothing answers there. */
  hostMs: number | null;
  /** All nodes send for one organization, or each for its own. */
  isOneOrganization: boolean;
  /** Callers of each node, who send one mail after the other; 0: one mail waits for each destination. */
  callers: number;
  seconds: number;
}

export interface Figures {
  mails: number;
  attempts: number;
  statements: number;
  transactions: number;
  /** States of destinations that were written, and that nodes have read of each other. */
  statesWritten: number;
  statesRead: number;
  /** CPU milliseconds of all nodes, and of PostgreSQL. */
  nodesMs: number;
  databaseMs: number;
  /** How much of its time each was busy. */
  busy: Record<'loop' | 'processors' | 'database' | 'log' | 'organization', number>;
}

const passed = (ms: number) => new Promise<void>((resolve) => scheduler.after(ms, resolve, world));
const clock: Clock = {
  now: () => Math.floor(scheduler.time),
  after(ms, action) {
    const scheduled = scheduler.after(ms, action, world);
    return () => {
      scheduled.run = null;
    };
  },
};
const settleMs = 6_000;
const warmUpMs = 2_000;
const maxAgeMs = 48 * 3_600_000;
const waits = [30, 120, 300, 600, 1200, 2400, 3600, 7200, 14_400].map((seconds) => seconds * 1000);

/** Places that are taken for a time, first come, first served. */
class Places {
  busyMs = 0;
  #free: number;
  readonly count: number;
  readonly #waiting: (() => void)[] = [];

  constructor(count: number) {
    this.count = this.#free = count;
  }

  async hold(work: () => Promise<void>): Promise<void> {
    if (this.#free === 0) await new Promise<void>((resolve) => this.#waiting.push(resolve));
    else this.#free -= 1;
    const begun = scheduler.now;
    await work();
    this.busyMs += scheduler.now - begun;
    const next = this.#waiting.shift();
    if (next) next();
    else this.#free += 1;
  }

  spend = (ms: number) => (ms > 0 ? this.hold(() => passed(ms)) : Promise.resolve());
}

class Database {
  statements = 0;
  transactions = 0;
  statesWritten = 0;
  statesRead = 0;
  spentMs = 0;
  readonly nodes = new Map<string, Heartbeat>();
  readonly states = new Map<string, { name: string; node: string; at: number; state: PeerState }>();
  readonly #backlogs = new Map<string, Backlog & { mails: Delivery[] }>();
  readonly #syncing: (() => void)[] = [];
  #isSyncing = false;
  readonly log = new Places(1);
  readonly processors: Places;
  readonly costs: Costs;

  constructor(processors: Places, costs: Costs) {
    this.processors = processors;
    this.costs = costs;
  }

  async ask<Answer>(answer: () => Answer, statements = 1): Promise<Answer> {
    this.statements += statements;
    await this.spend(this.costs.statementMs * statements);
    return answer();
  }

  spend(ms: number): Promise<void> {
    this.spentMs += ms;
    return this.processors.spend(ms);
  }

  /** Commits that come during a sync share the next one. */
  async commit<Answer>(ms: number, answer: () => Answer): Promise<Answer> {
    this.transactions += 1;
    await this.spend(ms);
    const result = answer();
    await new Promise<void>((resolve) => {
      this.#syncing.push(resolve);
      if (!this.#isSyncing) void this.#sync();
    });
    return result;
  }

  async #sync(): Promise<void> {
    this.#isSyncing = true;
    while (this.#syncing.length > 0) {
      const group = this.#syncing.splice(0);
      await this.log.spend(this.costs.syncMs);
      for (const resolve of group) resolve();
    }
    this.#isSyncing = false;
  }

  readonly put = (delivery: Delivery): void => {
    const { domain, orgId } = delivery;
    const backlog = this.#backlogs.get(`${orgId} ${domain}`) ?? { domain, orgId, mails: [] };
    this.#backlogs.set(`${orgId} ${domain}`, backlog);
    backlog.mails.push(delivery);
    backlog.mails.sort((a, b) => a.dueAt - b.dueAt);
  };

  due(after: number, now: number) {
    const found: (Backlog & { retryAt: number | null })[] = [];
    for (const { domain, orgId, mails } of this.#backlogs.values()) {
      const retry = mails.findLast(({ dueAt }) => dueAt > after && dueAt <= now);
      if (retry) found.push({ domain, orgId, retryAt: retry.attempts > 0 ? retry.dueAt : null });
    }
    return found;
  }

  nextDueAt(since: number): number {
    let next = Number.POSITIVE_INFINITY;
    for (const { mails } of this.#backlogs.values())
      next = Math.min(next, mails.find(({ dueAt }) => dueAt > since)?.dueAt ?? next);
    return next;
  }

  take(picks: (Backlog & { limit: number })[], now: number): Delivery[] {
    return picks.flatMap(({ orgId, domain, limit }) => {
      const mails = this.#backlogs.get(`${orgId} ${domain}`)?.mails ?? [];
      const count = mails.slice(0, limit).filter(({ dueAt }) => dueAt <= now).length;
      return mails.splice(0, count).map((mail) => ({ ...mail }));
    });
  }
}

interface Parts {
  layout: Layout;
  costs: Costs;
  database: Database;
  organizations: Map<string, Places>;
  all: Node[];
}

/** One node: its queue, its event loop and its processors. */
class Node {
  readonly name: string;
  readonly loop = new Places(1);
  readonly processors: Places;
  readonly runner: QueueRunner;
  mails = 0;
  attempts = 0;
  spentMs = 0;
  #composing = 0;
  #commits = 0;
  readonly #parts: Parts;
  readonly #accept: (mail: { orgId: string; put: Delivery | null }) => Promise<undefined>;
  readonly #record: (orgId: string) => Promise<undefined>;
  readonly #publisher;

  constructor(name: string, processors: Places, parts: Parts) {
    const { database, layout } = parts;
    this.name = name;
    this.processors = processors;
    this.#parts = parts;
    this.#publisher = createDestinationPublisher({
      saveStates: (states, now) => this.#saveStates(states, now),
      saveRoutes: (routes) => this.#commit(routes.size * parts.costs.stateMs, () => {}),
      sockets: () => 0,
      keepMs: 60_000,
      repeatMs: 20_000,
    });
    // As mail/accept/commit.ts and mail/record/record.ts commit.
    this.#accept = groupCommit((mails) => this.#acceptAll(mails), {
      isComing: (gathered) => this.#composing > gathered,
      maxWaitMs: 5,
    });
    this.#record = groupCommit(
      (mails: string[]) =>
        this.#commit((mails.length * parts.costs.mailMs) / 2, () => mails.map(() => undefined)),
      { isComing: () => this.attempts > this.mails, maxWaitMs: 20 },
    );
    this.runner = new QueueRunner({
      store: this.#store(),
      peers: createPeers({
        node: name,
        min: 0,
        exchangeHeartbeats: async (members, at) => {
          await database.commit(parts.costs.statementMs, () =>
            database.nodes.set(name, { node: name, members, at }),
          );
          return database.ask(() => this.#heartbeats());
        },
        readHeartbeats: () => database.ask(() => this.#heartbeats()),
        readReports: (after) => this.#readReports(after),
        leave: async () => {},
        onChange: () => {},
        clock,
      }),
      ownership: { isOurs: () => true, isPaused: () => false, pausedUntil: () => Number.NEGATIVE_INFINITY },
      destinationOf: (domain) => ({ name: domain, shape: defaultShape(20) }),
      resolve: async (domain) => ({ name: domain, shape: defaultShape(20) }),
      onWaiting: this.#publisher.route,
      notifyOthers: (backlog) => {
        // A notification waits 50 ms for each node that notifies, at most a second.
        const gapMs = Math.min(50 * layout.nodes, 1000);
        for (const { runner } of parts.all)
          if (runner !== this.runner) clock.after(gapMs, () => runner.noteNotified([backlog]));
      },
      attempts: {
        deliver: (delivery) => this.#deliver(delivery),
        interrupted: (delivery) => this.#attemptOf(delivery.domain, clock.now(), interrupted),
        notAttempted: (domain) => this.#attemptOf(domain, clock.now(), interrupted),
        refused: (domain) => this.#attemptOf(domain, clock.now(), interrupted),
      },
      record: (delivery, attempt) => this.#recordAttempt(delivery, attempt),
      onError(what, error) {
        throw new Error(what, { cause: error });
      },
      clock,
      concurrency: 500,
      leaseMs,
      maxQuietMs: 20_000,
    });
  }

  /** Sends one mail after the other, as fast as they are answered. */
  async call(orgId: string, isOver: () => boolean): Promise<void> {
    const { costs, layout } = this.#parts;
    while (!isOver()) {
      this.#composing += 1;
      await this.#spend(costs.loopMs / 2);
      this.spentMs += costs.threadsMs;
      await this.processors.spend(costs.threadsMs + ('shared' in layout.processors ? costs.restMs : 0));
      const domain = `d${Math.floor(Math.random() * layout.destinations)}.example`;
      const delivery = mailTo(domain, orgId);
      const admission = this.runner.admit(domain, orgId);
      this.#composing -= 1;
      await this.#accept({ orgId, put: admission.startState === 'due' ? delivery : null });
      admission.settle(delivery);
    }
  }

  #spend(ms: number): Promise<void> {
    this.spentMs += ms;
    return this.loop.hold(() => this.processors.spend(ms));
  }

  async #commit<Answer>(ms: number, answer: () => Answer): Promise<Answer> {
    this.#commits += 1;
    return this.#parts.database.commit(ms, answer);
  }

  /** An organization whose sends are decided is locked until the commit. */
  async #acceptAll(mails: { orgId: string; put: Delivery | null }[]): Promise<undefined[]> {
    const { organizations, costs, database } = this.#parts;
    const lock = organizations.get(mails[0]!.orgId)!;
    await lock.hold(() => this.#commit((mails.length * costs.mailMs) / 2, () => {}));
    for (const { put } of mails) if (put) database.put(put);
    return mails.map(() => undefined);
  }

  async #deliver({ domain }: Delivery): Promise<Attempt> {
    const { costs, layout } = this.#parts;
    const startedAt = clock.now();
    this.attempts += 1;
    await this.#spend(costs.loopMs / 2);
    await passed(layout.hostMs ?? 1);
    return this.#attemptOf(domain, startedAt, layout.hostMs === null ? refusedConnection : accepted);
  }

  #attemptOf(destination: string, startedAt: number, result: SessionResult): Attempt {
    const { verdict, signal } = classify(result);
    const reply = 'reply' in result ? result.reply : null;
    const endedAt = clock.now();
    return { destination, signal, startedAt, endedAt, verdict, reply, mx: null, tls: null, transcript: [] };
  }

  async #recordAttempt(delivery: Delivery, attempt: Attempt): Promise<number | null> {
    await this.#record(delivery.orgId);
    this.mails += 1;
    const schedule = { waits, random: Math.random };
    const { attempts, expiresAt } = delivery;
    const deferred = { attempts: attempts + 1, now: clock.now(), expiresAt };
    const nextAt = attempt.verdict.outcome === 'delivered' ? null : nextAttemptAt(schedule, deferred);
    if (nextAt !== null) this.#parts.database.put({ ...delivery, attempts: attempts + 1, dueAt: nextAt });
    this.#publisher.attempted(delivery.domain, attempt, nextAt);
    return nextAt;
  }

  #heartbeats = () => [...this.#parts.database.nodes.values()].filter(({ node }) => node !== this.name);

  async #saveStates(states: Map<string, { told: object } | null>, at: number): Promise<void> {
    const { database, costs } = this.#parts;
    database.statesWritten += states.size;
    await this.#commit(states.size * costs.stateMs, () => {
      for (const [name, state] of states) {
        const key = `${name} ${this.name}`;
        if (state) database.states.set(key, { name, node: this.name, at, state: state.told as PeerState });
        else database.states.delete(key);
      }
    });
  }

  async #readReports(after: number) {
    const { database, costs } = this.#parts;
    const found = await database.ask(() =>
      [...database.states.values()].filter(({ node, at }) => node !== this.name && at >= after),
    );
    database.statesRead += found.length;
    await database.spend(
      database.states.size * costs.stateScanMs + found.length * costs.stateReadMs.database,
    );
    await this.#spend(found.length * costs.stateReadMs.node);
    return found;
  }

  #store(): Store {
    const { database, costs } = this.#parts;
    const ask = database.ask.bind(database) as Database['ask'];
    return {
      lookFor: createQuietCheck(
        () => ask(() => String(this.#parts.all.reduce((sum, node) => sum + node.#commits, 0))),
        (since) => ask(() => database.nextDueAt(since)),
      ),
      firstTimes: (after) =>
        ask(() => ({
          dueAt: database.nextDueAt(after),
          expiresAt: Number.POSITIVE_INFINITY,
          scheduledAt: Number.POSITIVE_INFINITY,
        })),
      findDue: ({ after, now }) => ask(() => database.due(after, now)),
      listBacklogs: ({ now, limit }) =>
        ask(
          () => ({ due: database.due(0, now), last: null }),
          Math.ceil(database.due(0, now).length / limit) || 1,
        ),
      dueAmong: (backlogs) => ask(() => backlogs),
      claimBacklogs: async (now, picks) => {
        const claimed = database.take(picks, now);
        return this.#commit(costs.statementMs, () => claimed);
      },
      claimExpired: () => ask(() => []),
      startScheduled: () => ask(() => ({ backlogs: [], nextAt: null })),
      claimRefused: async () => [],
      releaseLeases: (mails) => this.#commit(costs.statementMs, () => mails.forEach(database.put)),
      suspensions: () => ask(() => [], 2),
      readPools: () => ask(() => false, 4),
      publish: (queues, now) => this.#publisher.publish([...queues], now),
      renewLeases: (ids) => this.#commit(costs.statementMs, () => new Set(ids)),
      freeOrphans: () => ask(() => {}),
      takeBack: () => ask(() => []),
    };
  }
}

const accepted: SessionResult = { kind: 'accepted', reply: { code: 250, enhanced: '2.0.0', text: 'OK' } };
const refusedConnection: SessionResult = { kind: 'unreachable', detail: 'connection refused' };
const interrupted: SessionResult = { kind: 'interrupted', detail: '', afterDot: false };

let ids = 0;
function mailTo(domain: string, orgId: string): Delivery {
  const [id, now] = [`m${++ids}`, clock.now()];
  const recipient = `rcpt@${domain}`;
  return {
    id,
    emailId: id,
    orgId,
    messageId: id,
    recipient,
    domain,
    from: 'shop@sender.example',
    tags: {},
    attempts: 0,
    createdAt: now,
    dueAt: now,
    expiresAt: now + maxAgeMs,
    tls: 'opportunistic' as Delivery['tls'],
  };
}

/** What happens in so many seconds, after the nodes have found each other. */
export async function runModel(costs: Costs, layout: Layout): Promise<Figures> {
  scheduler.reset(1);
  const { processors, nodes: count } = layout;
  const shared = 'shared' in processors ? new Places(processors.shared) : null;
  const own = 'shared' in processors ? { database: 1, node: 1 } : processors;
  const database = new Database(shared ?? new Places(own.database), costs);
  const parts: Parts = { layout, costs, database, organizations: new Map(), all: [] };
  for (let number = 0; number < count; number++)
    parts.all.push(new Node(`node${number}`, shared ?? new Places(own.node), parts));
  if (layout.callers === 0)
    for (let number = 0; number < layout.destinations; number++)
      database.put(mailTo(`d${number}.example`, 'org'));
  for (const { runner } of parts.all) void runner.start();
  await scheduler.runUntil(scheduler.now + settleMs);
  let isOver = false;
  for (const [number, node] of parts.all.entries()) {
    const orgId = layout.isOneOrganization ? 'org' : `org${number}`;
    if (!parts.organizations.has(orgId)) parts.organizations.set(orgId, new Places(1));
    for (let caller = 0; caller < layout.callers; caller++) void node.call(orgId, () => isOver);
  }
  await scheduler.runUntil(scheduler.now + warmUpMs);
  const before = countsOf(parts);
  await scheduler.runUntil(scheduler.now + layout.seconds * 1000);
  const after = countsOf(parts);
  isOver = true;
  const between = (name: keyof typeof after) => after[name] - before[name];
  const ofTime = (name: keyof typeof after, places: number) =>
    between(name) / places / (layout.seconds * 1000);
  return {
    mails: between('mails'),
    attempts: between('attempts'),
    statements: between('statements'),
    transactions: between('transactions'),
    statesWritten: between('statesWritten'),
    statesRead: between('statesRead'),
    nodesMs: between('nodesMs'),
    databaseMs: between('databaseMs'),
    busy: {
      loop: ofTime('loop', count),
      processors: ofTime('processors', count * parts.all[0]!.processors.count),
      database: ofTime('database', database.processors.count),
      log: ofTime('log', 1),
      organization: ofTime('organization', parts.organizations.size),
    },
  };
}

function countsOf({ all, database, organizations }: Parts) {
  const sum = (of: (node: Node) => number) => all.reduce((total, node) => total + of(node), 0);
  return {
    mails: sum((node) => node.mails),
    attempts: sum((node) => node.attempts),
    statements: database.statements,
    transactions: database.transactions,
    statesWritten: database.statesWritten,
    statesRead: database.statesRead,
    nodesMs: sum(({ spentMs }) => spentMs),
    databaseMs: database.spentMs,
    loop: sum(({ loop }) => loop.busyMs),
    processors: sum(({ processors }) => processors.busyMs),
    database: database.processors.busyMs,
    log: database.log.busyMs,
    organization: [...organizations.values()].reduce((total, { busyMs }) => total + busyMs, 0),
  };
}
