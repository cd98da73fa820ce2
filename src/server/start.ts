/**
 * Starts the service: builds every part, gives each one the others that it needs, and opens the ports last. A stop takes
 * the same steps in reverse, so that a part ends before the parts that it uses.
 */
import { availableParallelism } from 'node:os';
import { makeSetUpLink } from '#accounts/people/people.ts';
import { hasOrganizations } from '#accounts/rows/organizations.ts';
import { createSeal } from '#accounts/seal.ts';
import { type HttpServer, listen } from '#front/http/http-server.ts';
import { onlyForLoopbackHosts } from '#front/http/loopback-hosts.ts';
import { composeAlone } from '#mail/compose/compose-alone.ts';
import { type Composers, createComposers } from '#mail/compose/compose-threads.ts';
import { createResolver } from '#mail/deliver/route/resolver.ts';
import { receivedLinks } from '#mail/received/received-links.ts';
import { takeProblems } from '#mail/record/rows/destination-status-rows.ts';
import { createReceivedBodies } from '#mail/webhooks/received/received-bodies.ts';
import { createWebhooks, type Webhooks } from '#mail/webhooks/service.ts';
import { startNightlyBackups } from '#operate/backup/nightly-backups.ts';
import type { Certificate } from '#operate/certificates/listener-certificate.ts';
import { bracketed } from '#platform/base/net/tcp-listen.ts';
import { excessOfLog, keepLogShort, watchFile } from '#platform/database/engine/open.ts';
import type { Config } from '#platform/settings/config.ts';
import { createBounceHandling } from './bounce-handling.ts';
import { makeAllDue, noteLeap } from './clock-jump.ts';
import { createOrderComposer } from './compose-orders.ts';
import { createContext, type Overrides, type ServerContext } from './context.ts';
import { createDelivery, type DeliveryEngine } from './delivery.ts';
import { disabledDelivery, disabledIntake } from './disabled-roles.ts';
import { type DiskGuard, startDiskGuard } from './disk-guard.ts';
import { createIntake, type Intake } from './intake.ts';
import { startMaintenance } from './maintenance.ts';
import { maintenanceJobs } from './maintenance-jobs.ts';
import { createMessageReader, type MessageReader } from './message-reading.ts';
import { stayRegistered } from './node-heartbeat.ts';
import { openFileCertificate, openHostCertificates, openWebPorts, startKeeper } from './open-certificates.ts';
import { openOperationsEndpoints } from './operations-endpoints.ts';
import { receiveTestMail } from './receive-test-mail.ts';
import { createReceiving, type Receiving } from './receiving.ts';
import { type Listeners, openListeners } from './smtp-listeners.ts';

export interface Running {
  /** The address that the HTTP server listens on. */
  url: string;
  /** There is no organization yet, so nobody can send. */
  isFresh: boolean;
  /** Link for creating the first administrator of the dashboard; null if there is one. */
  setUpUrl: string | null;
  /** Whether the queue is alive (mail/queue/runner.ts); to be asked every minute or two. */
  hasProgressed(): boolean;
  /** To be called when the clock has leapt forward by so many milliseconds (clock-jump.ts). */
  noteLeap(byMs: number): Promise<void>;
  stop(): Promise<void>;
}

/** In the order of the start. */
type Stops = (() => Promise<void>)[];

/** The purposes of the ports. */
interface Parts {
  intake: Intake;
  delivery: DeliveryEngine;
  receiving: Receiving;
  diskGuard: DiskGuard;
}

/** A stop takes at most five seconds; this is the share of the SMTP sessions in progress. */
const graceMs = 2_500;
/** One thread signs about 2,500 mails per second; the rest of the program is the bottleneck before four threads are. */
const maxComposers = 4;
/** A composed mail is handed over at once, so a composing thread has few young objects. */
const composerNurseryMb = 12;

/** Resolves when the service accepts requests. Rejects with an error that says what to do, and then nothing is left open. */
export async function start(config: Config, overrides: Partial<Overrides> = {}): Promise<Running> {
  const stops: Stops = [];
  const stopping = new AbortController();
  let onError: ServerContext['onError'] = () => {};
  const stop = async () => {
    stopping.abort();
    // A step that fails, for example because the disk is full, does not keep the others from ending.
    for (const step of stops.splice(0).reverse())
      await step().catch((error) => onError('a part of the service did not stop in order', error));
  };
  try {
    const context = await createContext(config, overrides, stops, stopping.signal);
    onError = context.onError;
    let { baseUrl } = config;
    const parts = await buildParts(context, () => baseUrl, stops);
    await startDelivering(context, parts.delivery, stops);
    const port = await openPorts(context, parts, stops);
    // With port 0, the actual port is only known after `listen`.
    baseUrl = baseUrl.replace(/:0$/, `:${port}`);
    const hasHttp = config.roles.includes('http');
    const setUp = hasHttp ? await makeSetUpLink(context.db, context.clock.now()) : null;
    return {
      url: `http://${bracketed(config.httpHost)}:${port}`,
      isFresh: hasHttp && !(await hasOrganizations(context.db)),
      setUpUrl: setUp && baseUrl + setUp.path,
      hasProgressed: () => parts.delivery.runner.hasProgressed(),
      noteLeap: (byMs) => noteLeap(context, byMs),
      stop,
    };
  } catch (error) {
    await stop();
    throw error;
  }
}

/** Only parts of this node's roles are built (POSTERN_ROLES). */
async function buildParts(context: ServerContext, baseUrl: () => string, stops: Stops): Promise<Parts> {
  const { config, clock, changeToken, onError } = context;
  const delivers = config.roles.includes('mta');
  // A node that delivers registers itself with its heartbeat (mail/queue/cluster/peers.ts).
  if (!delivers) stops.push(stayRegistered(context));
  const reader = createMessageReader(config, context);
  stops.push(reader.close);
  const webhooks = webhooksOf(context, reader, baseUrl);
  if (delivers) {
    stops.push(webhooks.stop);
    await webhooks.start();
  }
  const bounces = createBounceHandling(context);
  stops.push(bounces.close);
  const delivery = delivers
    ? createDelivery(context, {
        complain: bounces.complain,
        receive: (delivery) => receiveTestMail(context, reader, delivery),
      })
    : disabledDelivery(context.notify.backlog);
  const composers = startComposers(context);
  stops.push(composers.close);
  const diskGuard = await openDiskGuard(context);
  stops.push(() => diskGuard.stop());
  const receiving = createReceiving(context, {
    bounces: bounces.handler,
    hasSpace: () => diskGuard.hasSpace(),
  });
  stops.push(receiving.close);
  const intakeParts = {
    compose: composeAlone(composers.compose, createOrderComposer(context.secrets)),
    admit: (domain: string, orgId: string) => delivery.runner.admit(domain, orgId),
    onScheduled: (at: number) => delivery.runner.noteScheduled(at),
    hasSpace: () => diskGuard.hasSpace(),
    attemptWebhook: webhooks.attemptWebhook,
    reader,
    baseUrl,
  };
  const intake = config.roles.includes('http') ? createIntake(context, intakeParts) : disabledIntake;
  stops.push(intake.settled);
  const jobs = maintenanceJobs(context, intake, baseUrl);
  stops.push(startMaintenance({ jobs, changeToken, clock, onError }));
  startBackups(context, stops);
  return { intake, delivery, receiving, diskGuard };
}

function startBackups(context: ServerContext, stops: Stops): void {
  const { config, allIsTest } = context;
  if (config.databaseUrl !== null || config.backups === null || allIsTest) return;
  const stop = startNightlyBackups({
    config,
    node: context.node,
    secrets: () => context.secrets,
    freeBytes: context.freeBytes,
    random: context.random,
    clock: context.clock,
    log: context.log,
    onError: context.onError,
  });
  stops.push(stop);
}

async function startDelivering(
  context: ServerContext,
  { runner, restore, close }: DeliveryEngine,
  stops: Stops,
): Promise<void> {
  const { config, db, node, notify, eventSignal, clock } = context;
  stops.push(close);
  restore(await takeProblems(db, node), clock.now());
  await runner.start();
  stops.push(() => runner.stop(graceMs));
  if (config.roles.includes('mta')) stops.push(await makeAllDue(context));
  notify.listen({
    backlogs: (backlogs) => runner.noteNotified(backlogs),
    events: eventSignal.notifyLocal,
    anything() {
      runner.wake();
      eventSignal.notifyLocal();
    },
  });
}

/** Returns the port of the HTTP server. */
async function openPorts(context: ServerContext, parts: Parts, stops: Stops): Promise<number> {
  const { config } = context;
  const { intake, delivery, receiving, diskGuard } = parts;
  let listeners: Listeners | null = null;
  const endpoints = await openOperationsEndpoints(context, {
    load: delivery.load,
    clients: () => listeners?.clients() ?? 0,
    diskGuard,
  });
  stops.push(endpoints.close);
  // HTTP and SMTP close at the same time, because a stop has few seconds.
  const open: { close(): Promise<void> }[] = [];
  const web: HttpServer[] = [];
  stops.push(async () => void (await Promise.all([...open, ...web].map((one) => one.close()))));
  const answer = endpoints.around(intake.answer);
  const server = await listen(context.allIsTest ? onlyForLoopbackHosts(answer) : answer, config);
  web.push(server);
  const certificates = config.acme === null ? null : await openHostCertificates(context);
  if (certificates) {
    stops.push(async () => certificates.stop());
    await openWebPorts(context, certificates, answer, web);
  }
  listeners = await openListeners({
    config,
    submission: intake.submission,
    inbound: config.roles.includes('inbound') ? receiving.handler : null,
    isForDevelopment: context.allIsTest,
    openCertificate: () => certificates ?? openOwnCertificate(context, stops),
    onError: context.onError,
  });
  open.push(listeners);
  if (certificates) {
    const keeper = startKeeper(context, certificates);
    stops.push(() => keeper.stop());
  }
  stops.push(intake.endLongRequests, endpoints.leave, async () => {
    for (const one of web) one.drain();
  });
  return server.port;
}

function openOwnCertificate(context: ServerContext, stops: Stops): Certificate {
  const certificate = openFileCertificate(context);
  stops.push(async () => certificate.stop());
  return certificate;
}

/** Composing has its own threads, because delivery needs a core for itself. */
function startComposers({ config, startThread, onError }: ServerContext): Composers {
  const { dataDir, secret, secretOthers } = config;
  const entry = new URL('./compose-thread.ts', import.meta.url);
  return createComposers({
    spawn: (isForLarge) =>
      startThread(entry, {
        workerData: { dataDir, secret, secretOthers, isForLarge },
        resourceLimits: { maxYoungGenerationSizeMb: composerNurseryMb },
      }),
    count: Math.min(Math.max(availableParallelism() - 1, 1), maxComposers),
    onError,
  });
}

async function openDiskGuard({ config, db, freeBytes, clock, log }: ServerContext): Promise<DiskGuard> {
  return startDiskGuard({
    dataDir: config.dataDir,
    min: config.minFreeSpace,
    freeBytes,
    excessOfLog: () => excessOfLog(config),
    keepLogShort: (isShort) => keepLogShort(db, isShort),
    isInPlace: watchFile(config),
    clock,
    log,
  });
}

function webhooksOf(context: ServerContext, reader: MessageReader, baseUrl: () => string): Webhooks {
  const { config, db, node, log, metrics, eventSignal, clock, onError } = context;
  return createWebhooks({
    db,
    seal: createSeal(context.secrets),
    makeReceivedBody: createReceivedBodies({
      db,
      links: receivedLinks(context.secrets, baseUrl),
      write: reader.receivedPost,
      clock,
    }),
    resolve: createResolver(config.dnsServers),
    allowPrivate: config.webhookAllowPrivate,
    timeoutMs: context.webhookTimeoutMs,
    node,
    log,
    measured: (record) => metrics.timed('webhooks', record, metrics.posted),
    eventSignal,
    changeToken: context.changeToken,
    onError,
    clock,
  });
}
