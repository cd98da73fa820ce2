/** Builds delivery: queue → route → SMTP → outcome. start.ts starts and stops it. */

import { createSeal, openMessage } from '#accounts/seal.ts';
import { createDeliver, type DeliverParts } from '#mail/deliver/deliver.ts';
import { createConnect } from '#mail/deliver/route/connect.ts';
import { createDane } from '#mail/deliver/route/dane-records.ts';
import { createSecureResolve } from '#mail/deliver/route/dnssec.ts';
import { createFetchPolicy } from '#mail/deliver/route/fetch-mta-sts.ts';
import { createSts } from '#mail/deliver/route/mta-sts.ts';
import { createProtect } from '#mail/deliver/route/protect.ts';
import { createResolver } from '#mail/deliver/route/resolver.ts';
import type { Route, Routes } from '#mail/deliver/route/route.ts';
import { createRouteCache } from '#mail/deliver/route/route-cache.ts';
import { ConnectionCache } from '#mail/deliver/smtp-out/connection-cache.ts';
import { createOffer } from '#mail/deliver/smtp-out/offer.ts';
import { createSimulatedHost } from '#mail/deliver/smtp-out/simulated-host.ts';
import { forgetTlsFailure, type TlsFailure } from '#mail/deliver/smtp-out/tls-failure.ts';
import { WarmUps } from '#mail/deliver/warm-up.ts';
import { createWarmUpOffer } from '#mail/deliver/warm-up-offer.ts';
import { createPeers } from '#mail/queue/cluster/peers.ts';
import { createPoolAssignment, type PoolAssignment } from '#mail/queue/cluster/pool-assignment.ts';
import type { Greylisting } from '#mail/queue/greylist.ts';
import { createReads } from '#mail/queue/large-reads.ts';
import { publishPools, readAssigned, withdrawPools } from '#mail/queue/rows/ip-pools.ts';
import { learnedRows } from '#mail/queue/rows/learned-rows.ts';
import {
  claimBacklogs,
  claimExpired,
  dueAmong,
  findDue,
  freeOrphans,
  listBacklogs,
  readMessages,
  readSmallMessages,
  releaseLeases,
  renewLeases,
  takeBack,
} from '#mail/queue/rows/lease-statements.ts';
import { firstTimes, nextDueAt } from '#mail/queue/rows/next-due.ts';
import { startScheduled } from '#mail/queue/rows/scheduled-mail.ts';
import { QueueRunner, type Runner } from '#mail/queue/runner.ts';
import { noPeers, type Peers } from '#mail/queue/share.ts';
import type { Store } from '#mail/queue/store.ts';
import { createDestinationPublisher, type DestinationPublisher } from '#mail/record/destination-publisher.ts';
import { logAttempted } from '#mail/record/mail-log-lines.ts';
import { createRecord, type StoreTransitions } from '#mail/record/record.ts';
import { saveRoutes, saveStates } from '#mail/record/rows/destination-status-rows.ts';
import { readWarmAddresses, readWarmUps, takeAllowance } from '#mail/record/rows/warm-up-rows.ts';
import { countInFlight } from '#platform/base/limits/in-flight.ts';
import { createPersistentCache, type PersistentCache } from '#platform/base/persistent-cache.ts';
import { readVersion } from '#platform/base/version.ts';
import { withTimeout } from '#platform/base/waits.ts';
import { groupCommit } from '#platform/database/engine/group-commit.ts';
import { isPostgres } from '#platform/database/engine/open.ts';
import { createQuietCheck } from '#platform/database/engine/quiet-check.ts';
import { heartbeat, leave, readHeartbeats, readStates } from '#platform/database/tables/nodes.ts';
import { type CurrentShaping, createCurrentShaping } from '#platform/settings/current-shaping.ts';
import { domainOf, headerOf } from '#platform/values/address.ts';
import type { DestinationOf } from '#platform/values/destination-shape.ts';
import type { Delivery } from '#platform/values/glossary.ts';
import { defaultPool } from '#platform/values/ip-pool.ts';
import { receivedTestDomain, testRoute } from '#platform/values/test-route.ts';
import { leaseMs, type ServerContext } from './context.ts';
import { createOperatorRules, type OperatorRules } from './operator-rules.ts';
import { createReturnPaths, type ReturnPaths } from './return-path-choice.ts';

/** The other nodes must hear of this one in time; a SQLite database has no others. */
const maxQuietMs = { postgres: 20_000, sqlite: 60_000 };

/** How long other nodes are still sent the state of a destination after it has become idle. */
const publishIdleMs = 60_000;

/** The other nodes, and readers on PostgreSQL, ignore published states after a minute. */
const repeatMs = 20_000;

/** The other nodes ignore published pools after a minute. */
const poolsIntervalMs = 20_000;

/**
 * An MTA-STS policy that another node has fetched protects the mail of this node too, so a cached one is read again after
 * this time. It is needed when a route is looked up, which costs more than the read.
 */
const policyFreshMs = 1_000;

/** A stop has few seconds, and may happen because the database is away. */
const leaveTimeoutMs = 1_000;

export interface DeliveryEngine {
  runner: Runner;
  /** Takes over what this node knew about destinations when it stopped. */
  restore: DestinationPublisher['restore'];
  /** Connections to other servers, and deliveries in progress. */
  load(): { connections: { busy: number; idle: number }; inFlight: number };
  /** Closes idle connections; called after the runner has stopped. */
  close(): Promise<void>;
}

/** What delivered test mail brings about. */
interface TestMailEffects {
  /** Records that the recipient has complained about a mail. */
  complain(deliveryId: string): Promise<void>;
  /** The mail comes in for its sender's organization. */
  receive(delivery: Delivery): Promise<void>;
}

export function createDelivery(
  context: ServerContext,
  { complain, receive }: TestMailEffects,
): DeliveryEngine {
  const { config, db, node, clock } = context;
  const shaping = createCurrentShaping(config, context.onError);
  const routes = createRouting(context, shaping.destinationOf);
  const rules = createOperatorRules(context, (limits) => {
    if (shaping.refresh(limits)) routes.reshape();
  });
  const connections = new ConnectionCache();
  const warmUps = createWarmUps(context);
  const simulated = createSimulatedHost({ everywhere: context.allIsTest, clock });
  const returnPaths = createReturnPaths(context);
  const assignment = assignmentOf(context, returnPaths);
  const attempts = createAttempts(context, {
    routes,
    connections,
    assignment,
    returnPaths,
    warmUps,
    simulate: simulated.offer,
  });
  const delivering = countInFlight(attempts.deliver);
  const publisher = publisherOf(context, connections);
  const runner = new QueueRunner({
    store: createStore(context, {
      assignment,
      warmUps,
      rules,
      shaping,
      publish: publisher.publish,
    }),
    peers: peersOf(context, () => void connections.endIdle()),
    destinationOf: (domain) => routes.peek(domain)?.destination ?? null,
    resolve: async (domain) => (await routes.find(domain)).destination,
    attempts: { ...attempts, deliver: delivering.call },
    record: createRecord({
      ...recordingOf(context),
      publisher,
      inFlight: delivering.inFlight,
      onTestMail: async (delivery, attempt) => {
        const isDelivered = attempt.verdict.outcome === 'delivered';
        if (isDelivered && simulated.complains(delivery)) await complain(delivery.id);
        if (isDelivered && domainOf(delivery.recipient) === receivedTestDomain) await receive(delivery);
      },
    }),
    onWaiting: publisher.route,
    ownership: assignment,
    notifyOthers: context.notify.backlog,
    onError: context.onError,
    clock,
    concurrency: config.mtaConcurrency,
    leaseMs,
    maxQuietMs: isPostgres(db) ? maxQuietMs.postgres : maxQuietMs.sqlite,
  });
  return {
    runner,
    restore: publisher.restore,
    load: () => ({ connections: connections.totals(), inFlight: delivering.inFlight() }),
    async close() {
      await rules.close();
      await connections.close();
      // What this forgets makes the next day's allowance a little larger or smaller.
      await warmUps?.close().catch(() => {});
      // If this fails, the other nodes notice within a minute that this node's pools are gone.
      await withdrawPools(db, node).catch(() => {});
    },
  };
}

function assignmentOf(
  { config, db, node, ignoreTransaction }: ServerContext,
  returnPaths: ReturnPaths,
): PoolAssignment {
  return createPoolAssignment({
    sources: config.mtaSources,
    async read(now) {
      const assigned = await readAssigned(db, node, now);
      await returnPaths.refresh(assigned.returnPaths);
      return assigned;
    },
    publish: (pools, now) => publishPools(db, node, pools, now, ignoreTransaction),
    publishIntervalMs: isPostgres(db) ? poolsIntervalMs : Number.POSITIVE_INFINITY,
  });
}

function publisherOf(
  { db, node, ignoreTransaction }: ServerContext,
  connections: ConnectionCache,
): DestinationPublisher {
  return createDestinationPublisher({
    saveStates: (states, now) => saveStates(db, node, states, now, ignoreTransaction),
    saveRoutes: (routes) => saveRoutes(db, routes),
    sockets: (name) => connections.stats(name).open,
    keepMs: isPostgres(db) ? publishIdleMs : 0,
    repeatMs: isPostgres(db) ? repeatMs : Number.POSITIVE_INFINITY,
  });
}

interface AttemptParts {
  routes: Routes;
  connections: ConnectionCache;
  assignment: PoolAssignment;
  returnPaths: ReturnPaths;
  warmUps: WarmUps | null;
  simulate: DeliverParts['simulate'];
}

/** One attempt of one delivery, from the bytes in the database to the reply of a host. */
function createAttempts(
  context: ServerContext,
  { routes, connections, assignment, returnPaths, warmUps, simulate }: AttemptParts,
) {
  const { config, db } = context;
  const open = openMessage.bind(null, createSeal(context.secrets));
  const tlsFailures = learnedCache<TlsFailure>(context, 'tls-trouble');
  return createDeliver({
    routes,
    offer: createOfferWithTls(context, connections, tlsFailures, warmUps),
    simulate,
    readMessage: createReads(
      groupCommit((ids: string[]) => readSmallMessages(db, ids, open)),
      async (id) => (await readMessages(db, [id], open))[0]!,
    ),
    returnPath: returnPaths.of,
    poolOf: assignment.poolOf,
    onTlsWanted: (host) => void forgetTlsFailure(tlsFailures, host),
    onAttempted: (delivery, { peer, classification, tls, ms, result }) => {
      const { diagnostic } = classification.verdict;
      if (result.kind !== 'put-off') logAttempted(context.mailLog, delivery, { peer, diagnostic, tls, ms });
    },
    // Not of reports, because every report would have another one in its wake.
    listsTlsSessions: ({ from }) => config.tlsReports !== null && from !== headerOf(config.tlsReports),
    clock: context.clock,
    port: config.mtaPort,
  });
}

function createWarmUps({ config, db, clock, onError }: ServerContext): WarmUps | null {
  const { warmUp: policy, warmSources, mtaSources: sources } = config;
  if (policy === 'off') return null;
  return new WarmUps({
    sources,
    holds: policy !== 'warn',
    overflow: typeof policy === 'string' ? null : policy.pool,
    warmSources,
    async load() {
      const addresses = sources.map(({ address }) => address);
      const warmAddresses = await readWarmAddresses(db, addresses, clock.now());
      return { warmUps: await readWarmUps(db), warmAddresses };
    },
    take: (taking) => takeAllowance(db, taking, clock.now()),
    onError,
    clock,
  });
}

function recordingOf(context: ServerContext) {
  const { config, db, node, clock, metrics } = context;
  return {
    db,
    node,
    suppressAfter: config.suppressAfter,
    schedule: { waits: config.mtaRetry, random: context.random },
    greylisting: learnedCache<Greylisting>(context, 'greylisting'),
    measured: (store: StoreTransitions) => metrics.timed('outcomes', store, metrics.recorded),
    onEvents: context.eventSignal.notify,
    mailLog: context.mailLog,
    clock,
  };
}

/** From a domain to its hosts, their TLS policy, and the destination that they form. */
function createRouting(context: ServerContext, destinationOf: DestinationOf): Routes {
  const { config, clock, random } = context;
  const { mtaAllowPrivate: allowPrivate, mtaPort: port } = config;
  const resolve = createResolver(config.dnsServers);
  const secureResolve = createSecureResolve(config.dnsServers);
  const { policyPort, policyTimeoutMs: timeoutMs } = context;
  const fetchPolicy = createFetchPolicy({ resolve, allowPrivate, port: policyPort, timeoutMs });
  const cache = createRouteCache({
    resolve,
    allowPrivate,
    protect: createProtect({
      dane: secureResolve && createDane({ secureResolve, port }),
      sts: createSts({
        resolve,
        fetchPolicy,
        policies: learnedCache(context, 'mta-sts', policyFreshMs),
        clock,
        timeoutMs,
      }),
    }),
    destinationOf,
    clock,
    random,
  });
  // deliver.ts asks for no hosts of test mail.
  const toTests: Route = { destination: destinationOf(testRoute, []), hosts: [] };
  return {
    ...cache,
    find: async (domain) => (domain === testRoute ? toTests : cache.find(domain)),
    peek: (domain) => (domain === testRoute ? toTests : cache.peek(domain)),
  };
}

function createOfferWithTls(
  context: ServerContext,
  connections: ConnectionCache,
  tlsFailures: PersistentCache<TlsFailure>,
  warmUps: WarmUps | null,
) {
  const { config, clock, random, onError } = context;
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
  const within = warmUps && createWarmUpOffer(warmUps, port);
  const offer = createOffer({
    connect: within?.connecting(connect) ?? connect,
    connections,
    tlsFailures,
    clock,
    port,
    timeouts,
  });
  return within?.offering(offer) ?? offer;
}

/** `onChange`: this node's share of the limits has changed, so idle connections may exceed it. */
function peersOf(
  { config, db, node, clock, ignoreTransaction, onError }: ServerContext,
  onChange: () => void,
): Peers {
  if (!isPostgres(db)) return noPeers;
  const version = readVersion();
  const hasPools = config.mtaSources.some(({ pool }) => pool !== defaultPool);
  return createPeers({
    node,
    min: hasPools ? 1 : 0,
    exchangeHeartbeats: (members, at) => heartbeat(db, { node, members, at, version }, ignoreTransaction),
    readHeartbeats: () => readHeartbeats(db, node),
    async readReports(after) {
      const rows = await readStates(db, node, after);
      return rows.map(({ state, ...row }) => ({ ...row, state: JSON.parse(state).told }));
    },
    async leave() {
      const left = leave(db, node).catch((error) => {
        onError('could not deregister this node; the other nodes count it for a few more seconds', error);
      });
      await withTimeout(leaveTimeoutMs, left, () => {});
    },
    onChange,
    clock,
  });
}

function learnedCache<Value>(
  { db, clock, onError }: ServerContext,
  kind: string,
  freshMs?: number,
): PersistentCache<Value> {
  return createPersistentCache(learnedRows<Value>(db, kind), clock, onError, freshMs);
}

function createStore(
  { db, node, clock, metrics, eventSignal, changeToken }: ServerContext,
  {
    assignment,
    warmUps,
    rules,
    shaping,
    publish,
  }: {
    assignment: PoolAssignment;
    warmUps: WarmUps | null;
    rules: OperatorRules;
    shaping: CurrentShaping;
    publish: DestinationPublisher['publish'];
  },
): Store {
  return {
    lookFor: createQuietCheck(
      async () => {
        warmUps?.tick();
        return `${await changeToken()} ${shaping.fileStamp()}`;
      },
      (since) => nextDueAt(db, since),
    ),
    firstTimes: (after) => firstTimes(db, after),
    findDue: (range) => findDue(db, range),
    claimBacklogs: (now, picks) => claimBacklogs(db, picks, { node, now, leaseMs }),
    claimExpired: (now, limit) =>
      claimExpired(db, limit, { node, now, leaseMs }, assignment.otherPools(), assignment.anyPaused()),
    async startScheduled(now) {
      const started = await startScheduled(db, now);
      if (started.backlogs.length > 0) eventSignal.notify();
      return started;
    },
    releaseLeases: (deliveries) => releaseLeases(db, node, deliveries),
    listBacklogs: (page) => listBacklogs(db, page),
    dueAmong: (backlogs, now) => dueAmong(db, backlogs, now),
    suspensions: rules.suspensions,
    claimRefused: rules.claimRefused,
    async readPools(now) {
      warmUps?.tick();
      return assignment.refresh(now);
    },
    publish(readyQueues, now) {
      const all = [...readyQueues];
      metrics.destinations(all);
      return publish(all, now);
    },
    renewLeases: (ids) => renewLeases(db, node, ids, clock.now() + leaseMs),
    // A claim whose answer arrived is held or renewed within half a lease; nothing waits longer for a commit.
    freeOrphans: () => freeOrphans(db, node, clock.now(), clock.now() + leaseMs / 2),
    takeBack: (which) => takeBack(db, node, clock.now(), leaseMs, which),
  };
}
