/**
 * Builds everything, hands each part its neighbours, starts; stops in reverse. Nobody imports this file but tests,
 * and importing it has no effect.
 */
import { flushCompileCache } from 'node:module';
import { availableParallelism } from 'node:os';
import { Worker } from 'node:worker_threads';
import ms from 'ms';
import { watchKeys } from './accounts/dkim-rotation.ts';
import { makeSetUpLink } from './accounts/people.ts';
import { createSeal, SealError } from './accounts/seal.ts';
import { listen } from './api/http-server.ts';
import { systemClock } from './base/clock.ts';
import { createLog } from './base/log.ts';
import type { SecretSource } from './base/secrets.ts';
import { bracketed, ListenError } from './base/tcp-listen.ts';
import { clearHeapFlags } from './base/v8-flags.ts';
import { type Composers, createComposers } from './compose/compose-threads.ts';
import { type Config, ConfigError, hostnameAdvice, loadConfig } from './config.ts';
import { forgetAnswers } from './db/accept/idempotency.ts';
import { forgetLinks } from './db/accounts/one-time.ts';
import { hasOrganizations } from './db/accounts/organizations.ts';
import { forgetSessions } from './db/accounts/sessions-table.ts';
import { DatabaseError, excessOfLog, keepLogShort, openDatabase, watchFile } from './db/engine/open.ts';
import { removeMessages } from './db/events/retention.ts';
import { forgetFigures, sumUp } from './db/events/statistics.ts';
import { clearStates } from './db/queue/destination-states.ts';
import { forgetLearned } from './db/queue/learned-rows.ts';
import { forgetNodes } from './db/queue/nodes.ts';
import type { MaintenanceJob } from './db/schema/maintenance-job.ts';
import { partitionJobs } from './db/schema/partitioned-tables.ts';
import { forgetWebhookAttempts, forgetWebhookMessages } from './db/webhooks/webhook-attempts.ts';
import { watchProcess } from './operate/metrics/process-metrics.ts';
import { createResolver } from './route/resolver.ts';
import { createBounceHandling } from './server/bounce-handling.ts';
import { makeAllDue, watchClock } from './server/clock-jump.ts';
import { createContext, leaseMs, type Overrides, type ServerContext } from './server/context.ts';
import { createDelivery } from './server/delivery.ts';
import { disabledDelivery, disabledIntake } from './server/disabled-roles.ts';
import { startDiskGuard } from './server/disk-guard.ts';
import { createIntake } from './server/intake.ts';
import { startMaintenance } from './server/maintenance.ts';
import { stayRegistered } from './server/node-heartbeat.ts';
import { openOperationsEndpoints } from './server/operations-endpoints.ts';
import { type Listeners, openListeners } from './server/smtp-listeners.ts';
import { besideService, commandPrefix } from './settings/installation.ts';
import { otherVariables } from './settings/setting-sources.ts';
import { CertificateError } from './smtp-in/listener-certificate.ts';
import { createWebhooks, type Webhooks } from './webhooks/service.ts';

export interface Running {
  /** The address that the HTTP front listens on. */
  url: string;
  /** Nobody can send yet: there is no organization. */
  isFresh: boolean;
  /** Where the dashboard is set up; null where it is. */
  setUpUrl: string | null;
  stop(): Promise<void>;
}

/** SIGTERM to gone takes at most ten seconds; this is the part that conversations under way are given. */
const graceMs = 7_000;
/** A composed mail is handed over at once: what a thread has lately made is small. */
const composerNurseryMb = 12;
/** One signs some 2,500 mails a second; the rest of the program gives out before four do. */
const maxComposers = 4;

/** Starts the service; resolves when it serves. Rejects with an error that says what to do, having left nothing open. */
export async function start(config: Config, hands: Partial<Overrides> = {}): Promise<Running> {
  const stops: (() => Promise<void>)[] = [];
  const stop = async () => {
    for (const step of stops.splice(0).reverse()) await step();
  };
  try {
    const ground = await createContext(config, hands, stops);
    const has = (role: Config['roles'][number]) => config.roles.includes(role);
    // A node that sends publishes itself (cluster/peers.ts).
    if (!has('mta')) stops.push(stayRegistered(ground));
    const webhooks = webhooksOf(ground);
    if (has('mta')) {
      stops.push(webhooks.stop);
      await webhooks.start();
    }
    const engine = has('mta')
      ? createDelivery({ ...ground, leaseMs })
      : disabledDelivery(ground.bell.backlog);
    const { runner, load, close: closeEngine } = engine;
    let baseUrl = config.baseUrl;
    const composers = composersOf(ground);
    stops.push(composers.close);
    const space = await startDiskGuard({
      ...ground,
      ...{ dataDir: config.dataDir, min: config.minFreeSpace },
      keepLogShort: (isShort) => keepLogShort(ground.db, isShort),
      excessOfLog: () => excessOfLog(config),
      isInPlace: await watchFile(config),
    });
    stops.push(space.stop);
    const neighbours = {
      ...{
        compose: composers.compose,
        admit: (domain: string, orgId: string) => runner.admit(domain, orgId),
        hasSpace: space.hasSpace,
      },
      ...{ baseUrl: () => baseUrl, tryIt: webhooks.tryIt },
    };
    const face = has('http') ? createIntake(ground, neighbours) : disabledIntake;
    const { answer, settled, submission, hurry } = face;
    stops.push(settled);
    const returned = createBounceHandling(ground);
    stops.push(returned.close);
    stops.push(startMaintenance(choresOf(ground), ground.clock, ground.onError));
    stops.push(closeEngine);
    await clearStates(ground.db, ground.node);
    await runner.start();
    stops.push(() => runner.stop(graceMs));
    if (has('mta')) stops.push(await makeAllDue(ground));
    const { bell, watch } = ground;
    bell.listen({
      backlog: (backlog) => runner.noteBacklog(backlog),
      events: watch.notifyLocal,
      anything() {
        runner.wake();
        watch.notifyLocal();
      },
    });
    let listeners: Listeners | null = null;
    const clients = () => listeners?.clients() ?? 0;
    const probes = await openOperationsEndpoints(ground, { load, clients, ...space });
    stops.push(probes.close);
    // Both ways in close at once: a stop has little time.
    const ways: { close(): Promise<void> }[] = [];
    stops.push(async () => void (await Promise.all(ways.map((way) => way.close()))));
    const front = await listen(probes.around(answer), config);
    ways.push(front);
    const { port } = front;
    listeners = await openListeners({
      ...ground,
      submission,
      returned: has('inbound') ? returned.handler : null,
    });
    ways.push(listeners);
    stops.push(hurry, probes.leave, async () => front.drain());
    // Of any free port the number is known now.
    baseUrl = baseUrl.replace(/:0$/, `:${port}`);
    const isFresh = has('http') && !(await hasOrganizations(ground.db));
    const setUp = has('http') ? await makeSetUpLink(ground.db, ground.clock.now()) : null;
    const setUpUrl = setUp && baseUrl + setUp.path;
    return { url: `http://${bracketed(config.httpHost)}:${port}`, isFresh, setUpUrl, stop };
  } catch (error) {
    await stop();
    throw error;
  }
}

/** Thirteen months, so that a month stands beside the same one a year before. */
const keepFiguresMs = 400 * 86_400_000;

/** Threads for composing: this one needs a core for itself. */
function composersOf({ config, onError }: ServerContext): Composers {
  const { dataDir, secret, secretOthers } = config;
  const workerData: SecretSource = { dataDir, secret, secretOthers };
  return createComposers({
    spawn: (isForLarge) =>
      new Worker(new URL('./server/compose-thread.ts', import.meta.url), {
        workerData: { ...workerData, isForLarge },
        resourceLimits: { maxYoungGenerationSizeMb: composerNurseryMb },
      }),
    count: Math.min(Math.max(availableParallelism() - 1, 1), maxComposers),
    onError,
  });
}

function webhooksOf(ground: ServerContext): Webhooks {
  const { config, secrets, webhookTimeoutMs: timeoutMs } = ground;
  const guard = {
    resolve: createResolver(config.dnsServers),
    allowPrivate: config.webhookAllowPrivate,
    timeoutMs,
  };
  return createWebhooks({ ...ground, ...guard, seal: createSeal(secrets) });
}

function choresOf({ config, db, clock, log }: ServerContext): MaintenanceJob[] {
  const fedByMail = {
    idempotency: () => forgetAnswers(db, clock.now(), config.idempotencyKeep),
    'webhook attempts': () => forgetWebhookAttempts(db, clock.now() - config.keepEvents),
    'webhook messages': () => forgetWebhookMessages(db, clock.now() - config.keepEvents),
    statistics: () => sumUp(db),
  };
  return [
    ...Object.entries(fedByMail).map(([name, run]) => ({ name, run, isFedByMail: true })),
    { name: 'sessions', run: () => forgetSessions(db, clock.now()) },
    { name: 'one-time links', run: () => forgetLinks(db, clock.now()) },
    { name: 'nodes', run: () => forgetNodes(db, clock.now()) },
    { name: 'learned', run: () => forgetLearned(db, clock.now()) },
    { name: 'messages', run: removeMessages(db, clock.now, config.keepMessages) },
    ...partitionJobs({ ...config, db, now: clock.now, openPatient: () => openDatabase(config) }),
    { name: 'old statistics', run: () => forgetFigures(db, clock.now() - keepFiguresMs) },
    {
      name: 'DKIM keys',
      run: watchKeys(db, {
        ...{ now: clock.now, resolve: createResolver(config.dnsServers), keepMs: config.mtaMaxAge },
        onSigns: (domain, { selector }) =>
          log.info(`mail from ${domain} is signed with the key ${selector} now`),
      }),
    },
  ];
}

const firstSteps = (postern: string) => [
  'No organization yet. Next, in another terminal:',
  `  ${postern} org create --name Acme`,
  `  ${postern} domain add example.com --org Acme     (then publish the records it prints)`,
  `  ${postern} domain verify example.com --org Acme`,
  `  ${postern} key create --org Acme --label app --scope email:send --scope email:read`,
  'README.md goes on from there; npm run demo shows it all without a domain.',
];

/** The process: start, say so, stop on a signal. */
async function run(): Promise<void> {
  clearHeapFlags();
  // The database and the logs have people's mails in them, and a directory that was made by hand is open to all.
  process.umask(0o077);
  Object.assign(process.env, otherVariables(process.env));
  const config = loadConfig();
  const log = createLog(config);
  let running = await start(config, { log, watchProcess });
  let isStopping = false;
  // Who asks for a stop while it begins anew is heard after that.
  let doing = Promise.resolve();
  const then = (what: () => Promise<void>) => {
    doing = doing.then(what).catch(giveUp);
  };
  const stopFor = (signal: string) => {
    if (isStopping) return;
    isStopping = true;
    log.info(`${signal}: stopping`);
    then(async () => {
      await running.stop();
      await log.settled();
      process.exit(0);
    });
  };
  // Given twice, they end it there and then.
  for (const signal of ['SIGTERM', 'SIGINT'] as const) process.once(signal, stopFor);
  // The terminal that it was started in has closed, which the shell may say as well. Elsewhere somebody, or logrotate, takes
  // it for "read your settings".
  const goOn = () => log.warn('SIGHUP: goes on as before; to read the settings again, restart Postern');
  process.on('SIGHUP', process.stdout.isTTY ? stopFor : goOn);
  watchClock(systemClock, (byMs) =>
    then(async () => {
      if (isStopping) return;
      log.warn(`the clock was set back by ${ms(byMs, { long: true })}: stopping, and starting anew`);
      await running.stop();
      running = await start(config, { log, watchProcess });
      log.info(`Postern serves again at ${running.url}`);
    }),
  );
  // Whoever reads this may stop it at once.
  log.info(`Postern serves at ${running.url}`);
  // The next start finds what this one has compiled (scripts/node.sh), however this one ends.
  flushCompileCache();
  if (running.setUpUrl) log.info(`To set up the dashboard (once, within 24 hours): ${running.setUpUrl}`);
  if (running.isFresh) for (const line of firstSteps(commandPrefix(config))) log.info(line);
  for (const advice of [besideService(config), hostnameAdvice(config)]) if (advice) log.warn(advice);
}

function giveUp(error: NodeJS.ErrnoException): never {
  const expected = [CertificateError, ConfigError, DatabaseError, ListenError, SealError].some(
    (kind) => error instanceof kind,
  );
  const readable = expected || error.code !== undefined;
  const advice = error.code === 'ENOSPC' ? '; make room where POSTERN_DATA_DIR is' : '';
  process.stderr.write(`postern: ${readable ? error.message : error.stack}${advice}\n`);
  process.exit(1);
}

if (import.meta.main) run().catch(giveUp);
