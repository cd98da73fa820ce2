/**
 * Builds the way out: queue → route → SMTP → outcome, each part handed its neighbours. main.ts starts and stops it.
 */

import { createBurstDetector } from '../base/burst-detector.ts';
import type { Clock } from '../base/clock.ts';
import { countInFlight } from '../base/in-flight.ts';
import { createPersistentCache, type PersistentCache } from '../base/persistent-cache.ts';
import type { Secrets } from '../base/secrets.ts';
import { readVersion } from '../base/version.ts';
import { withTimeout } from '../base/with-timeout.ts';
import { createReturnPath } from '../bounces/return-path.ts';
import type { Notify } from '../cluster/notify.ts';
import { createPeers } from '../cluster/peers.ts';
import { createPoolAssignment, type PoolAssignment } from '../cluster/pool-assignment.ts';
import type { Config } from '../config.ts';
import { readPaused } from '../db/accounts/pauses.ts';
import { groupCommit } from '../db/engine/group-commit.ts';
import { type Db, isPostgres } from '../db/engine/open.ts';
import { saveRoutes, saveStates } from '../db/queue/destination-states.ts';
import { publishPools, readPoolAssignments, readPools, withdrawPools } from '../db/queue/ip-pools.ts';
import { learnedRows } from '../db/queue/learned-rows.ts';
import {
  claimBacklogs,
  claimExpired,
  findDue,
  freeOrphans,
  listBacklogs,
  readMessages,
  readSmallMessages,
  releaseLeases,
  renewLeases,
  takeBack,
} from '../db/queue/lease-statements.ts';
import { heartbeat, leave, readStates } from '../db/queue/nodes.ts';
import { recordAll } from '../db/queue/outcomes.ts';
import { listSuspensions } from '../db/queue/suspensions.ts';
import { createDeliver } from '../deliver.ts';
import { defaultPool } from '../mail/ip-pool.ts';
import type { MailLog } from '../mail/mail-log.ts';
import type { Metrics } from '../operate/metrics/metrics.ts';
import { createReads } from '../queue/large-reads.ts';
import { QueueRunner, type Runner, type Store } from '../queue/runner.ts';
import { noPeers, type Peers } from '../queue/share.ts';
import { createDestinationPublisher } from '../record/destination-publisher.ts';
import { type EventSignal, signalsAfter } from '../record/event-signal.ts';
import { createGreylistObserver } from '../record/greylist-observer.ts';
import { logAttempted } from '../record/mail-log-lines.ts';
import { createRecorder } from '../record/recorder.ts';
import type { Transition } from '../record/transition.ts';
import { createConnect } from '../route/connect.ts';
import { createDane } from '../route/dane-records.ts';
import { createSecureResolve } from '../route/dnssec.ts';
import { createFetchPolicy } from '../route/fetch-mta-sts.ts';
import { createSts } from '../route/mta-sts.ts';
import { createProtect } from '../route/protect.ts';
import { createResolver } from '../route/resolver.ts';
import type { Routes } from '../route/route.ts';
import { createRouteCache } from '../route/route-cache.ts';
import { createSameSource } from '../route/same-source.ts';
import { loadShaping } from '../settings/shaping-file.ts';
import { createDestinationOf, defaultShape } from '../settings/shaping-rules.ts';
import { type ConnectionPool, createConnectionPool } from '../smtp-out/connection-pool.ts';
import { createOffer } from '../smtp-out/offer.ts';

/**
 * How long an outcome waits for those of conversations under way, and for the next where they come often; nobody waits for
 * it meanwhile.
 */
const recordMaxWaitMs = 20;

/** How long other nodes are told of a destination after it has come to rest. */
const toldMs = 60_000;

/**
 * A policy that another node has fetched protects the mail of this one too. It is read when a route is looked up, which
 * costs more than that.
 */
const policyFreshMs = 1_000;

/** A stop has little time, and may come because the database is away. */
const goodbyeMs = 1_000;

export interface DeliveryParts {
  config: Config;
  db: Db;
  /** This node's name in leases, and how long one lasts. */
  node: string;
  leaseMs: number;
  secrets: Secrets;
  mailLog: MailLog;
  metrics: Metrics;
  watch: EventSignal;
  bell: Notify;
  onError(what: string, error: unknown): void;
  clock: Clock;
  random: () => number;
  /** Where MTA-STS policies are fetched: the port of HTTPS. */
  policyPort: number;
}

export interface DeliveryEngine {
  runner: Runner;
  /** Connections to other servers, and deliveries under way. */
  load(): { connections: { busy: number; idle: number }; inFlight: number };
  /** Ends the connections that wait for their next mail; after the runner. */
  close(): Promise<void>;
}

export function createDelivery(parts: DeliveryParts): DeliveryEngine {
  const { config, db, node, clock, metrics, onError } = parts;
  const routes = createRouting(parts);
  const pool = createConnectionPool();
  const pinning = createPoolAssignment({
    sources: config.mtaSources,
    readAssignments: () => readPoolAssignments(db),
    readPaused: () => readPaused(db),
    publish: (pools, now) => publishPools(db, node, pools, now),
    readOthers: (now) => readPools(db, now, node),
  });
  const { deliver, interrupted, withheld } = createDeliver({
    findRoute: routes.find,
    forgetRoute: routes.forget,
    offer: createOfferWithTls(parts, pool),
    readMessage: createReads({
      readSmall: groupCommit((ids: string[]) => readSmallMessages(db, ids)),
      readLarge: async (id) => (await readMessages(db, [id]))[0]!,
    }),
    returnPath: createReturnPath(parts.secrets, config.returnPathDomain),
    poolOf: pinning.poolOf,
    sameSource: createSameSource(),
    onAttempted: (delivery, { peer, judgement, tls, ms }) =>
      logAttempted(parts.mailLog, delivery, { peer, diagnostic: judgement.verdict.diagnostic, tls, ms }),
    clock,
    port: config.mtaPort,
  });
  const delivering = countInFlight(deliver);
  const bulletin = createDestinationPublisher({
    saveStates: (states, now) => saveStates(db, node, states, now),
    saveRoutes: (found) => saveRoutes(db, found),
    sockets: (name) => pool.stats(name).open,
    keepMs: isPostgres(db) ? toldMs : 0,
  });
  const recordMoves = (moves: Transition[]) => recordAll(db, node, moves, config.suppressAfter);
  const tempo = createBurstDetector(recordMaxWaitMs);
  const commitMove = groupCommit(
    signalsAfter(parts.watch, metrics.timed('outcomes', recordMoves, metrics.recorded)),
    { isComing: () => delivering.inFlight() > 0 || tempo.isBurst(), maxWaitMs: recordMaxWaitMs },
  );
  const record = createRecorder({
    commit(move) {
      tempo.note();
      return commitMove(move);
    },
    schedule: { waits: config.mtaRetry, random: parts.random },
    observeGreylisting: createGreylistObserver(memoryOf(parts, 'greylisting')),
    mailLog: parts.mailLog,
    clock,
  });
  const runner = new QueueRunner({
    store: createStore(parts, pinning, bulletin.publish),
    peers: neighboursOf(parts, () => void pool.endIdle()),
    destinationOf: (domain) => routes.peek(domain)?.destination ?? null,
    resolve: async (domain) => (await routes.find(domain)).destination,
    deliver: delivering.call,
    interrupted,
    notAttempted: withheld,
    async record(delivery, attempt) {
      const nextAt = await record(delivery, attempt);
      if (nextAt !== null) bulletin.route(delivery.domain, attempt.destination);
      return nextAt;
    },
    onWaiting: bulletin.route,
    isOurs: pinning.isOurs,
    isPaused: pinning.isPaused,
    notifyOthers: parts.bell.backlog,
    onError,
    clock,
    concurrency: config.mtaConcurrency,
    leaseMs: parts.leaseMs,
  });
  return {
    runner,
    load: () => ({ connections: pool.totals(), inFlight: delivering.inFlight() }),
    async close() {
      await pool.close();
      // What cannot be said now is known in a minute.
      await withdrawPools(db, node).catch(() => {});
    },
  };
}

/** From a domain to its hosts, what protects them, and which destination they make. */
function createRouting(parts: DeliveryParts): Routes {
  const { config, clock, random } = parts;
  const { mtaAllowPrivate: allowPrivate, mtaPort: port } = config;
  const resolve = createResolver(config.dnsServers);
  const secureResolve = createSecureResolve(config.dnsServers);
  const fetchPolicy = createFetchPolicy({ resolve, allowPrivate, port: parts.policyPort });
  return createRouteCache({
    resolve,
    allowPrivate,
    protect: createProtect({
      dane: secureResolve && createDane({ secureResolve, port }),
      sts: createSts({ resolve, fetchPolicy, policies: memoryOf(parts, 'mta-sts', policyFreshMs), clock }),
    }),
    destinationOf: createDestinationOf(
      loadShaping(config.shapingFile, config.mtaPerDestination),
      defaultShape(config.mtaPerDestination),
    ),
    clock,
    random,
  });
}

function createOfferWithTls(parts: DeliveryParts, pool: ConnectionPool) {
  const { config, clock, random, onError } = parts;
  const { mtaPort: port, mtaTimeouts: timeouts, hostname } = config;
  const connect = createConnect({
    port,
    timeoutMs: timeouts.connect,
    allowPrivate: config.mtaAllowPrivate,
    sources: config.mtaSources,
    hostname,
    clock,
    random,
    onError,
  });
  return createOffer({ connect, pool, tlsTrouble: memoryOf(parts, 'tls-trouble'), clock, port, timeouts });
}

/** Where the parts change, idle connections may be too many: they are ended. */
function neighboursOf({ config, db, node, clock, onError }: DeliveryParts, onChange: () => void): Peers {
  if (!isPostgres(db)) return noPeers;
  const version = readVersion();
  const hasPools = config.mtaSources.some(({ pool }) => pool !== defaultPool);
  return createPeers({
    node,
    min: hasPools ? 1 : 0,
    exchangeHeartbeats: (members, at) => heartbeat(db, { node, members, at, version }),
    async readReports(after) {
      const rows = await readStates(db, node, after);
      return rows.map(({ state, ...row }) => ({ ...row, state: JSON.parse(state).told }));
    },
    async leave() {
      const left = leave(db, node).catch((error) => {
        onError('other nodes count this one for some seconds more', error);
      });
      await withTimeout(goodbyeMs, left, () => {});
    },
    onChange,
    clock,
  });
}

function memoryOf<Value>(
  { db, clock, onError }: DeliveryParts,
  kind: string,
  freshMs?: number,
): PersistentCache<Value> {
  return createPersistentCache(learnedRows<Value>(db, kind), clock, onError, freshMs);
}

function createStore(
  { db, node, leaseMs, clock, metrics }: DeliveryParts,
  pinning: PoolAssignment,
  publish: Store['publish'],
): Store {
  return {
    findDue: (range) => findDue(db, range),
    claimBacklogs: (now, picks) => claimBacklogs(db, picks, { node, now, leaseMs }),
    claimExpired: (now, limit) =>
      claimExpired(db, limit, { node, now, leaseMs }, pinning.elsewhere(), pinning.anyPaused()),
    releaseLeases: (deliveries) => releaseLeases(db, node, deliveries),
    listBacklogs: (page) => listBacklogs(db, page),
    suspensions: (now) => listSuspensions(db, now),
    readPools: pinning.refresh,
    publish(lines, now) {
      const all = [...lines];
      metrics.lines(all);
      return publish(all, now);
    },
    renewLeases: (ids) => renewLeases(db, node, ids, clock.now() + leaseMs),
    // By then it has been held, or renewed: nobody waits half a lease for the answer to a commit.
    freeOrphans: () => freeOrphans(db, node, clock.now(), clock.now() + leaseMs / 2),
    takeBack: (which) => takeBack(db, node, clock.now(), leaseMs, which),
  };
}
