/**
 * Builds the intake: HTTP and SMTP submission → checks → one commit; tracking, events and look-ups beside them.
 * start.ts starts and stops it.
 */

import type { IncomingMessage, ServerResponse } from 'node:http';
import { findCaller } from '#accounts/api-keys.ts';
import { createKeyUseLog } from '#accounts/key-last-used.ts';
import { dayOf, type RequestCount, type RequestLimits, type Taken } from '#accounts/limits.ts';
import { giveBack, recordRequests, type UsageRequest } from '#accounts/rows/daily-usage.ts';
import { findDomain, firstDomainNames } from '#accounts/rows/domains-table.ts';
import { findKeyByHash, noteKeysUsed } from '#accounts/rows/keys.ts';
import { findStream } from '#accounts/rows/streams.ts';
import { createSeal, sealMessage } from '#accounts/seal.ts';
import { namesForRefusal } from '#accounts/sender.ts';
import { createTestSender } from '#accounts/test-sender.ts';
import { createApi } from '#front/api/api-app.ts';
import { createCursors } from '#front/api/events/event-cursor.ts';
import { createStreams } from '#front/api/events/event-stream.ts';
import { type AcceptBatch, createAcceptBatch } from '#front/api/send/accept-batch.ts';
import { createFetchAttachments } from '#front/api/send/fetch-attachments.ts';
import { createDashboard } from '#front/dashboard/dashboard.ts';
import { dialectsNamed } from '#front/dialects/all-dialects.ts';
import { serveDialects } from '#front/dialects/serve-dialects.ts';
import { Admission } from '#front/http/admission.ts';
import { createAuthThrottle } from '#front/http/auth-throttle.ts';
import { createAuthorize } from '#front/http/authorize.ts';
import { CustomerHosts } from '#front/http/customer-hosts.ts';
import { createReadSubmitted } from '#front/submission/read-submitted.ts';
import { RequestWait } from '#front/submission/request-wait.ts';
import { createSubmission, type SubmissionParts } from '#front/submission/submission-handler.ts';
import { createUnsubscribe } from '#front/unsubscribe/unsubscribe-routes.ts';
import { type Accept, createAccept, createDryRun, type DryRun } from '#mail/accept/accept.ts';
import { createCommit } from '#mail/accept/commit.ts';
import { createFeedbackId } from '#mail/accept/feedback-id.ts';
import { dryRun } from '#mail/accept/rows/acceptance.ts';
import { type Compose, type ComposeOrder, isLarge } from '#mail/compose/compose-order.ts';
import { createResolver } from '#mail/deliver/route/resolver.ts';
import type { Runner } from '#mail/queue/runner.ts';
import { receivedLinks } from '#mail/received/received-links.ts';
import { findReceived } from '#mail/received/rows/received-mails.ts';
import { signalsAfter } from '#mail/record/event-signal.ts';
import { logAccepted, logRepeated } from '#mail/record/mail-log-lines.ts';
import { createRefusedSends, type RefusedSend } from '#mail/record/refused-sends.ts';
import { recordVisits } from '#mail/record/rows/engagement.ts';
import { type EventQuery, readEvents, settledPosition } from '#mail/record/rows/read-events.ts';
import { createTracking } from '#mail/record/tracking/routes.ts';
import { createTrackingLinks } from '#mail/record/tracking/tracking-links.ts';
import type { Visit } from '#mail/record/visit.ts';
import { createDownload } from '#mail/webhooks/guarded-get.ts';
import type { AttemptWebhook } from '#mail/webhooks/webhook-attempt.ts';
import { countRefusals, countRequests } from '#operate/metrics/request-metrics.ts';
import { createServerMailer, type ServerMailer } from '#operate/notices/server-mail.ts';
import { cached } from '#platform/base/bounded-cache.ts';
import { createFileLinks } from '#platform/base/file-links.ts';
import { countInFlight } from '#platform/base/limits/in-flight.ts';
import type { Resolve } from '#platform/base/net/resolve.ts';
import { groupCommit } from '#platform/database/engine/group-commit.ts';
import type { Db } from '#platform/database/engine/open.ts';
import type { Send } from '#platform/database/tables/send-record.ts';
import type { Client } from '#platform/values/mail-handler.ts';
import { createMessageId } from '#platform/values/message-id.ts';
import { leaseMs, type ServerContext } from './context.ts';
import type { MessageReader } from './message-reading.ts';

/** A client of a live event stream that reads nothing for this long is disconnected. */
const streamTimeoutMs = 60_000;

/** The parts of the node that the intake uses. */
interface IntakeParts {
  compose: Compose;
  admit: Runner['admit'];
  onScheduled: Runner['noteScheduled'];
  hasSpace(): boolean;
  baseUrl(): string;
  attemptWebhook: AttemptWebhook;
  reader: MessageReader;
}

export interface Intake {
  /** Answers every HTTP request that is not for /health or /metrics. */
  answer(request: IncomingMessage, response: ServerResponse): Promise<void>;
  /** Resolves when everything that was written after the answers is in the database. */
  settled(): Promise<void>;
  /** Null: no role `http`. */
  accept: Accept | null;
  /** Null: also without POSTERN_NOTICES_FROM. */
  serverMailer: ServerMailer | null;
  /** Null: no role `http`. */
  submission: ReturnType<typeof createSubmission> | null;
  /** Ends requests that would otherwise last as long as their clients like. */
  endLongRequests(): Promise<void>;
}

export function createIntake(context: ServerContext, parts: IntakeParts): Intake {
  const { config, clock, db, metrics, onError } = context;
  const uses = createKeyUseLog((list) => noteKeysUsed(db, list), clock, onError);
  const callers = createCallers(context, uses);
  const told = refusalsTold(context);
  const sending = {
    admission: new Admission(config.httpConcurrency, clock),
    hasSpace: parts.hasSpace,
    ...told,
    ...createAcceptance(context, { ...parts, ...told }),
  };
  const customerHosts = new CustomerHosts({ ...context, hostname: config.hostname, baseUrl: parts.baseUrl });
  const links = createLinkPages(context, customerHosts);
  const readSubmitted = createReadSubmitted(parts.reader.submitted);
  const feed = createEventFeed(context);
  const management = managementOf(context, parts);
  const serverMailer = mailerOf(context, sending.accept);
  const dashboard = createDashboard({
    ...context,
    ...management,
    isDevelopment: context.allIsTest,
    sending: { ...sending, countRequest: callers.take },
    reading: parts.reader,
    mailer: serverMailer,
    baseUrl: parts.baseUrl,
  });
  const authorize = createAuthorize(callers);
  const fetchAttachments = createFetching(context, management.resolve);
  const app = createApi({
    ...sending,
    authorize,
    fetchAttachments,
    findReceived: findReceived.bind(null, db),
    clock,
    ...links.routers,
    feed,
    management,
    dashboard: dashboard.answer,
    dialects: serveDialects(dialectsNamed(config.dialects), {
      ...sending,
      authorize,
      fetchAttachments,
      ...management,
      readFiles: parts.reader.files,
      readSubmitted,
      fileLinks: createFileLinks(context.secrets, parts.baseUrl),
      baseUrl: parts.baseUrl,
      onError,
    }),
    proxies: config.httpProxies,
    baseUrl: parts.baseUrl,
    observe: countRequests(metrics),
    onError,
  });
  return {
    answer: customerHosts.serve(app.callback()),
    async settled() {
      await Promise.all([links.settled(), uses.flush(), dashboard.stop()]);
    },
    accept: sending.accept,
    serverMailer,
    submission: createCountedSubmission(context, { ...callers, ...sending, readSubmitted }),
    async endLongRequests() {
      // A background job ends between two pages of the queue; `settled` waits for that.
      void dashboard.stop();
      await feed.streams.close();
    },
  };
}

function refusalsTold({ mailLog, clock, allIsTest, log }: ServerContext) {
  return {
    onRefusedSend: createRefusedSends(mailLog, clock),
    /** Strangers decide how many calls have no valid key, so the log of other servers does not have them. */
    onUnauthorized({ message }: Error) {
      if (allIsTest) log.warn(`401: ${message} The start of the server, above, prints its key`);
    },
  };
}

/** Mail of this server itself. */
function mailerOf({ config, db }: ServerContext, accept: Accept): ServerMailer | null {
  const { noticesFrom: sender, mtaMaxAge: maxAgeMs } = config;
  return sender && createServerMailer({ db, maxAgeMs, sender, accept });
}

function createFetching({ config, clock }: ServerContext, resolve: Resolve) {
  return createFetchAttachments(
    createDownload({ resolve, allowPrivate: config.attachmentAllowPrivate }),
    clock,
  );
}

/** What the links of mails lead to. */
function createLinkPages(context: ServerContext, hosts: CustomerHosts) {
  const { db, clock, eventSignal, metrics, secrets, onError } = context;
  const links = createTrackingLinks(secrets);
  const isCustomers = (host: string) => hosts.isTrackingHost(host);
  const tracking = createTracking({
    links,
    isCustomers,
    record: groupCommit(
      signalsAfter(
        eventSignal,
        metrics.timed('visits', (visits: Visit[]) => recordVisits(db, visits)),
      ),
    ),
    onError,
    clock,
  });
  return {
    routers: {
      tracking: tracking.router,
      unsubscribe: createUnsubscribe({ ...context, links, isCustomers }),
    },
    settled: tracking.settled,
  };
}

function createAcceptance(
  context: ServerContext,
  {
    compose,
    admit,
    onScheduled,
    baseUrl,
    onRefusedSend,
  }: IntakeParts & { onRefusedSend(send: RefusedSend): void },
): { accept: Accept; dryRun: DryRun; acceptBatch: AcceptBatch } {
  const { config, clock, db, eventSignal, metrics, node } = context;
  const policy = { keepMs: config.idempotencyKeep, lowShare: config.creditsLow / 100 };
  /** Without large mails: they take too long for a commit to wait for them. */
  const composing = countInFlight(compose);
  const commit = createCommit(db, {
    policy,
    composing: composing.inFlight,
    measured: (store, isAtomic) =>
      metrics.timed('accept', store, (sends, decisions) => {
        const isStored = !isAtomic || !decisions.some((one) => 'refused' in one);
        if (isStored) metrics.decided(sends, decisions);
      }),
    onEvents: eventSignal.notify,
    leaseEnd: () => clock.now() + leaseMs,
    giveUpAfterMs: 3 * context.databaseTimeoutMs,
  });
  const parts = {
    findDomain: findSender(db),
    domainNames: (orgId: string) => firstDomainNames(db, orgId, namesForRefusal),
    findStream: findStreamOf(db),
    testSender: createTestSender(context.secrets),
    compose: (order: ComposeOrder) => (isLarge(order) ? compose(order) : composing.call(order)),
    trackingBase: (host: string | null) => (host ? `https://${host}` : baseUrl()),
    unsubscribeDomain: config.returnPathDomain,
    sealMessage: sealMessage.bind(null, createSeal(context.secrets)),
    commit: commit.one,
    dryRun: (send: Send) => dryRun(db, send, policy),
    admit,
    onScheduled,
    onAccepted: logAccepted.bind(null, context.mailLog),
    onRepeated: logRepeated.bind(null, context.mailLog),
    clock,
    textFromHtml: config.textFromHtml,
    messageIdOf: createMessageId(context.secrets, config.hostname),
    feedbackIdOf: createFeedbackId(config.returnPathDomain),
    maxAgeMs: config.mtaMaxAge,
    allIsTest: context.allIsTest,
    node,
    leaseMs,
  };
  return {
    accept: createAccept(parts),
    dryRun: createDryRun(parts),
    // Not counted in `composing`: single sends would wait for a batch that takes long to compose.
    acceptBatch: createAcceptBatch({ ...parts, compose, onRefusedSend, commitAll: commit.all }),
  };
}

/** The look-up of callers, and their limits; shared by the API, submission and the dashboard. */
function createCallers(
  { db, clock, metrics, allIsTest }: ServerContext,
  uses: ReturnType<typeof createKeyUseLog>,
) {
  const findKey = cached((hash) => findKeyByHash(db, hash), 10_000);
  const record = groupCommit(metrics.timed('usage', (list: UsageRequest[]) => recordRequests(db, list)));
  return {
    findCaller: uses.recordUses(async (key: string) => {
      const caller = await findCaller(key, findKey, clock.now());
      // If nothing is live, there is nothing that a test key must not see or change.
      return caller && allIsTest ? { ...caller, isTest: false } : caller;
    }),
    take: (orgId: string, limits: RequestLimits, count?: RequestCount) =>
      record({ orgId, limits, now: clock.now(), day: dayOf(clock.now()), count }),
    uncount: (orgId: string, count: RequestCount) => giveBack(db, orgId, dayOf(clock.now()), count),
    authThrottle: createAuthThrottle(clock),
  };
}

function createEventFeed({ db, secrets, eventSignal, onError }: ServerContext) {
  const read = (query: EventQuery) => readEvents(db, query);
  const cursors = createCursors(secrets);
  const streams = createStreams({
    readEvents: read,
    cursors,
    settledPosition: () => settledPosition(db),
    eventSignal,
    onError,
    timeoutMs: streamTimeoutMs,
  });
  return { readEvents: read, cursors, streams };
}

function managementOf(
  { config, db, clock, secrets, eventSignal }: ServerContext,
  { attemptWebhook, reader, baseUrl }: IntakeParts,
) {
  return {
    db,
    clock,
    seal: createSeal(secrets),
    names: config,
    resolve: createResolver(config.dnsServers),
    keepKeysMs: config.mtaMaxAge,
    allowPrivate: config.webhookAllowPrivate,
    attemptWebhook,
    eventSignal,
    receivedReading: reader,
    receivedLinks: receivedLinks(secrets, baseUrl),
  };
}

function createCountedSubmission(
  { config, clock, log, metrics, onError }: ServerContext,
  parts: Omit<SubmissionParts, 'hostname' | 'requestWait' | 'onRefused' | 'onError'> & {
    take(orgId: string, limits: RequestLimits): Promise<Taken>;
  },
) {
  const onRefused = ({ address }: Client) => log.warn({ client: address }, 'an SMTP login was refused');
  const { hostname } = config;
  // The other half of the connections is for mail that need not wait.
  const requestWait = new RequestWait({ take: parts.take, clock, maxWaiting: config.smtpConnections / 2 });
  return countRefusals(
    createSubmission({ ...parts, hostname, requestWait, onRefused, onError }),
    metrics.refused,
  );
}

/** A stream that is there is cached; any other is read each time, so that a new one takes mail at once. */
function findStreamOf(db: Db) {
  const find = (orgId: string, name: string) => findStream(db, orgId, name);
  const findKnown = cached((id) => find(...(id.split(' ') as [orgId: string, name: string])), 10_000);
  return (orgId: string, name: string) => findKnown(`${orgId} ${name}`);
}

/** A verified domain is cached; any other is read each time, so that a verification takes effect at once. */
function findSender(db: Db) {
  const findVerified = cached(async (id) => {
    const domain = await findDomain(db, ...(id.split(' ') as [orgId: string, name: string]));
    return domain?.status === 'verified' ? domain : null;
  }, 10_000);
  return async (orgId: string, name: string) =>
    (await findVerified(`${orgId} ${name}`)) ?? (await findDomain(db, orgId, name));
}
