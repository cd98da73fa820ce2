/**
 * Builds everything, hands each part its neighbours, starts; stops in reverse. Nobody imports this file but tests,
 * and importing it has no effect.
 */
import { randomUUID } from 'node:crypto';
import { readFileSync, writeFileSync } from 'node:fs';
import { statfs } from 'node:fs/promises';
import { availableParallelism } from 'node:os';
import { join } from 'node:path';
import { Worker } from 'node:worker_threads';
import { createAccept } from './accept.ts';
import { findCaller } from './accounts/keys.ts';
import { dayOf } from './accounts/limits.ts';
import { createSeal, SealError } from './accounts/seal.ts';
import { createApi } from './api/app.ts';
import { createGate } from './api/gate.ts';
import { createGuesses } from './api/guesses.ts';
import { createRoom } from './api/room.ts';
import { bracketed, ListenError, listen } from './api/server.ts';
import { cached } from './cache.ts';
import { type Clock, systemClock } from './clock.ts';
import type { Compose } from './compose/order.ts';
import { type Composers, createComposers } from './compose/threads.ts';
import { type Config, ConfigError, hostnameAdvice, loadConfig } from './config.ts';
import { acceptAll, rehearse } from './db/acceptance.ts';
import type { Send } from './db/acceptance-rows.ts';
import { clearStates } from './db/destinations.ts';
import { findDomain, someSealedKey } from './db/domains.ts';
import { findEmail } from './db/emails.ts';
import { recordVisits } from './db/engagement.ts';
import { groupCommit } from './db/group.ts';
import { forgetAnswers } from './db/idempotency.ts';
import { findKeyByHash } from './db/keys.ts';
import { forgetLearned } from './db/learned.ts';
import { lockDataDir } from './db/lock.ts';
import { migrate } from './db/migrate.ts';
import { DatabaseError, type Db, openDatabase } from './db/open.ts';
import { hasOrganizations } from './db/organizations.ts';
import { type Take, takeAll } from './db/usage.ts';
import { createEngine } from './engine.ts';
import { createLog, type Log } from './log.ts';
import { createMailLog, type MailLog } from './maillog.ts';
import type { Runner } from './queue/runner.ts';
import { loadSecret } from './secret.ts';
import { watchSpace } from './space.ts';
import { tellAccepted } from './status/tell.ts';
import { createLinks } from './tracking/links.ts';
import { createTracking } from './tracking/routes.ts';
import type { Visit } from './tracking/visit.ts';
import { type Chore, startUpkeep } from './upkeep.ts';

export interface Running {
  /** The address that the HTTP front listens on. */
  url: string;
  /** Nobody can send yet: there is no organization. */
  isFresh: boolean;
  stop(): Promise<void>;
}

/** What tests turn by hand. */
export interface Hands {
  clock: Clock;
  random: () => number;
  log: Log;
  /** Where MTA-STS policies are fetched: the port of HTTPS. */
  policyPort: number;
  /** What the file system of a directory has left for us, in bytes. */
  freeBytes(directory: string): Promise<number>;
}

const leaseMs = 5 * 60_000;
/** SIGTERM to gone takes at most ten seconds; this is the part that conversations under way are given. */
const graceMs = 7_000;
/** One signs some 3,000 mails a second; the rest of the program gives out before four do. */
const mostComposers = 4;

/** Everything that the parts share. */
interface Ground extends Hands {
  config: Config;
  db: Db;
  node: string;
  secret: string;
  mailLog: MailLog;
  onTrouble(what: string, error: unknown): void;
}

/** Starts the service; resolves when it serves. Rejects with an error that says what to do, having left nothing open. */
export async function start(config: Config, hands: Partial<Hands> = {}): Promise<Running> {
  const stops: (() => Promise<void>)[] = [];
  const stop = async () => {
    for (const step of stops.splice(0).reverse()) await step();
  };
  try {
    const ground = await layGround(config, hands, stops);
    const { runner, close: closeEngine } = createEngine({ ...ground, leaseMs });
    let baseUrl = config.baseUrl;
    const composers = composersOf(ground);
    stops.push(composers.close);
    const { hasSpace, stop: stopWatching } = await watchSpace({
      ...ground,
      ...{ dataDir: config.dataDir, least: config.minFreeSpace },
    });
    stops.push(stopWatching);
    const { app, settled } = createFront(ground, {
      compose: composers.compose,
      admit: runner.admit,
      hasSpace,
      baseUrl: () => baseUrl,
    });
    stops.push(settled);
    stops.push(startUpkeep(choresOf(ground), ground.clock, ground.onTrouble));
    stops.push(closeEngine);
    await clearStates(ground.db, ground.node);
    await runner.start();
    stops.push(() => runner.stop(graceMs));
    const { port, close } = await listen(app.callback(), config);
    stops.push(close);
    // Of any free port the number is known now.
    baseUrl = baseUrl.replace(/:0$/, `:${port}`);
    const isFresh = !(await hasOrganizations(ground.db));
    return { url: `http://${bracketed(config.httpHost)}:${port}`, isFresh, stop };
  } catch (error) {
    await stop();
    throw error;
  }
}

async function layGround(
  config: Config,
  hands: Partial<Hands>,
  stops: (() => Promise<void>)[],
): Promise<Ground> {
  const { clock = systemClock, random = Math.random, log = createLog(config), policyPort = 443 } = hands;
  const { freeBytes = freeSpace } = hands;
  const secret = loadSecret(config);
  stops.push(await lockDataDir(config.dataDir));
  const db = await openDatabase(config);
  stops.push(() => db.destroy());
  await migrate(db);
  const sealed = await someSealedKey(db);
  // With another secret every send would fail, and every bounce and tracking link of old mail be refused.
  if (sealed !== null) createSeal(secret).open(sealed);
  const mailLog = createMailLog(config.dataDir, clock, log);
  stops.push(() => mailLog.close());
  const onTrouble = (what: string, error: unknown) => log.error({ err: error }, what);
  return {
    config,
    clock,
    random,
    log,
    policyPort,
    freeBytes,
    secret,
    db,
    mailLog,
    onTrouble,
    node: nodeId(config.dataDir),
  };
}

/** This node's name in leases: kept, so that a node that was killed knows its own when it starts again. */
function nodeId(dataDir: string): string {
  const file = join(dataDir, 'node-id');
  try {
    return readFileSync(file, 'utf8').trim();
  } catch {
    const id = randomUUID();
    writeFileSync(file, `${id}\n`, { flush: true });
    return id;
  }
}

/** Threads for composing: as many as there are cores, of which one is then shared with this thread. */
function composersOf({ secret, onTrouble }: Ground): Composers {
  return createComposers({
    spawn: () => new Worker(new URL('./compose-thread.ts', import.meta.url), { workerData: { secret } }),
    count: Math.min(availableParallelism(), mostComposers),
    onTrouble,
  });
}

async function freeSpace(directory: string): Promise<number> {
  const { bavail, bsize } = await statfs(directory);
  return bavail * bsize;
}

interface Neighbours {
  compose: Compose;
  admit: Runner['admit'];
  hasSpace(): boolean;
  baseUrl(): string;
}

/** The way in: HTTP → checks → one commit. */
function createFront(ground: Ground, { compose, admit, hasSpace, baseUrl }: Neighbours) {
  const { config, clock, db, onTrouble } = ground;
  const policy = { keepMs: config.idempotencyKeep, lowShare: config.creditsLow / 100 };
  const links = createLinks([ground.secret]);
  const accept = createAccept({
    findDomain: findSender(db),
    compose,
    trackingBase: (host) => (host ? `https://${host}` : baseUrl()),
    commit: groupCommit((sends: Send[]) => acceptAll(db, sends, policy)),
    rehearse: (send) => rehearse(db, send, policy),
    admit,
    onAccepted: (send, accepted, requestId) => tellAccepted(ground.mailLog, send, accepted, requestId),
    clock,
    hostname: config.hostname,
    maxAgeMs: config.mtaMaxAge,
    node: ground.node,
    leaseMs,
  });
  const findKey = cached((hash) => findKeyByHash(db, hash), 10_000);
  const takes = groupCommit((list: Take[]) => takeAll(db, list));
  const gate = createGate({
    findCaller: (key) => findCaller(key, findKey),
    take: (orgId, limits) => takes({ orgId, limits, now: clock.now(), day: dayOf(clock.now()) }),
    guesses: createGuesses(clock),
  });
  const tracking = createTracking({
    links,
    record: groupCommit((visits: Visit[]) => recordVisits(db, visits)),
    onTrouble,
    clock,
  });
  const app = createApi({
    gate,
    room: createRoom(config.httpConcurrency, clock),
    hasSpace,
    accept,
    tracking: tracking.router,
    findEmail: (id, orgId) => findEmail(db, id, orgId),
    baseUrl,
    onTrouble,
  });
  return { app, settled: tracking.settled };
}

/** Verified domains from a cache; any other is looked up anew, so that a verification counts at once. */
function findSender(db: Db) {
  const findVerified = cached(async (id) => {
    const domain = await findDomain(db, ...(id.split(' ') as [orgId: string, name: string]));
    return domain?.status === 'verified' ? domain : null;
  }, 10_000);
  return async (orgId: string, name: string) =>
    (await findVerified(`${orgId} ${name}`)) ?? (await findDomain(db, orgId, name));
}

function choresOf({ config, db, clock }: Ground): Chore[] {
  return [
    { name: 'idempotency', run: () => forgetAnswers(db, clock.now(), config.idempotencyKeep) },
    { name: 'learned', run: () => forgetLearned(db, clock.now()) },
  ];
}

const firstSteps = [
  'No organization yet. Next, in another terminal:',
  '  scripts/postern org create --name Acme',
  '  scripts/postern domain add example.com --org Acme     (then publish the records it prints)',
  '  scripts/postern domain verify example.com --org Acme',
  '  scripts/postern key create --org Acme --label app --scope email:send --scope email:read',
  'README.md goes on from there; npm run demo shows it all without a domain.',
];

/** The process: start, say so, stop on a signal. */
async function run(): Promise<void> {
  const config = loadConfig();
  const log = createLog(config);
  const running = await start(config, { log });
  for (const signal of ['SIGTERM', 'SIGINT'] as const) {
    process.once(signal, async () => {
      log.info(`${signal}: stopping`);
      await running.stop();
      process.exit(0);
    });
  }
  // Whoever reads this may stop it at once.
  log.info(`Postern serves at ${running.url}`);
  if (running.isFresh) for (const line of firstSteps) log.info(line);
  const advice = hostnameAdvice(config);
  if (advice) log.warn(advice);
  const { inboundPort, submissionPort } = config;
  if (inboundPort !== null || submissionPort !== null) {
    log.warn(
      'POSTERN_INBOUND_PORT and POSTERN_SUBMISSION_PORT have no effect: this version takes no mail over SMTP',
    );
  }
}

if (import.meta.main) {
  run().catch((error: NodeJS.ErrnoException) => {
    const expected = [ConfigError, DatabaseError, ListenError, SealError].some(
      (kind) => error instanceof kind,
    );
    const readable = expected || error.code !== undefined;
    process.stderr.write(`postern: ${readable ? error.message : error.stack}\n`);
    process.exit(1);
  });
}
