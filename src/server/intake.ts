/**
 * Builds the ways in for mail, and what belongs to them: the HTTP server's API, dialects, dashboard and the pages that links in
 * mails lead to, and SMTP submission. All of them know the same callers, share the room for bodies, and accept mail by the same
 * code (accepting.ts). start.ts starts and stops the intake.
 */

import type { IncomingMessage, ServerResponse } from 'node:http';
import { findCaller } from '#accounts/api-keys.ts';
import { createKeyUseLog } from '#accounts/key-last-used.ts';
import { dayOf, type RequestCount, type RequestLimits } from '#accounts/limits.ts';
import { giveBack, recordRequests, type UsageRequest } from '#accounts/rows/daily-usage.ts';
import { findKeyByHash, noteKeysUsed } from '#accounts/rows/keys.ts';
import { createSeal } from '#accounts/seal.ts';
import { createApi } from '#front/api/api-app.ts';
import { createCursors } from '#front/api/events/event-cursor.ts';
import { createStreams } from '#front/api/events/event-stream.ts';
import { createFetchAttachments } from '#front/api/send/fetch-attachments.ts';
import { createDashboard, type Dashboard } from '#front/dashboard/dashboard.ts';
import { dialectsNamed } from '#front/dialects/all-dialects.ts';
import { serveDialects } from '#front/dialects/serve-dialects.ts';
import { Admission } from '#front/http/admission.ts';
import { createAuthThrottle } from '#front/http/auth-throttle.ts';
import { createAuthorize } from '#front/http/authorize.ts';
import { CustomerHosts } from '#front/http/customer-hosts.ts';
import { createReadSubmitted } from '#front/submission/read-submitted.ts';
import { RequestWait } from '#front/submission/request-wait.ts';
import { createSubmission } from '#front/submission/submission-handler.ts';
import { createUnsubscribe } from '#front/unsubscribe/unsubscribe-routes.ts';
import type { Accept } from '#mail/accept/accept.ts';
import { receivedLinks } from '#mail/received/received-links.ts';
import { findReceived } from '#mail/received/rows/received-mails.ts';
import { signalsAfter } from '#mail/record/event-signal.ts';
import { createRefusedSends } from '#mail/record/refused-sends.ts';
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
import type { Resolve } from '#platform/base/net/resolve.ts';
import { groupCommit } from '#platform/database/engine/group-commit.ts';
import type { Client } from '#platform/values/mail-handler.ts';
import { type AcceptingParts, createAccepting } from './accepting.ts';
import type { ServerContext } from './context.ts';
import type { MessageReader } from './message-reading.ts';

/** A client of a live event stream that reads nothing for this long is disconnected. */
const streamTimeoutMs = 60_000;

/** The parts of the node that the intake uses. */
interface IntakeParts extends Omit<AcceptingParts, 'onRefusedSend'> {
  hasSpace(): boolean;
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
  const { config, db, clock, metrics, onError } = context;
  const { reader, baseUrl } = parts;
  const shared = sharedBy(context, parts);
  const { callers, management, sending, readSubmitted, onRefusedSend } = shared;
  const serverMailer = mailerOf(context, sending.accept);
  const dashboard = dashboardOf(context, parts, shared, serverMailer);
  const customerHosts = new CustomerHosts({ db, hostname: config.hostname, baseUrl, clock, onError });
  const links = createLinkPages(context, (host) => customerHosts.ownersOf(host));
  const feed = createEventFeed(context);
  const api = createApi({
    ...sending,
    findReceived: findReceived.bind(null, db),
    clock,
    tracking: links.tracking.router,
    unsubscribe: links.unsubscribe,
    feed,
    management,
    dashboard: dashboard.answer,
    dialects: serveDialects(dialectsNamed(config.dialects), {
      ...management,
      ...sending,
      readFiles: reader.files,
      readSubmitted,
      fileLinks: createFileLinks(context.secrets, baseUrl),
      baseUrl,
      onError,
    }),
    proxies: config.httpProxies,
    baseUrl,
    observe: countRequests(metrics),
    onRefusedSend,
    onUnauthorized: unauthorizedLog(context),
    onError,
  });
  return {
    answer: customerHosts.serve(api.callback()),
    async settled() {
      await Promise.all([links.tracking.settled(), callers.settled(), dashboard.stop()]);
    },
    accept: sending.accept,
    serverMailer,
    submission: submissionOf(context, shared),
    async endLongRequests() {
      // A background job ends between two pages of the queue; `settled` waits for that.
      void dashboard.stop();
      await feed.streams.close();
    },
  };
}

type Shared = ReturnType<typeof sharedBy>;

/** What several of the ways in use; each is there once. */
function sharedBy(context: ServerContext, parts: IntakeParts) {
  const { config, clock } = context;
  const callers = createCallers(context);
  const management = managementOf(context, parts);
  const onRefusedSend = createRefusedSends(context.mailLog, clock);
  const sending = {
    ...createAccepting(context, { ...parts, onRefusedSend }),
    authorize: createAuthorize(callers),
    admission: new Admission(config.httpConcurrency, clock),
    hasSpace: parts.hasSpace,
    fetchAttachments: fetchingBy(context, management.resolve),
  };
  const readSubmitted = createReadSubmitted(parts.reader.submitted);
  return { callers, management, sending, readSubmitted, onRefusedSend };
}

/** The look-up of callers by their keys, and the counts of their requests. */
function createCallers({ db, clock, metrics, allIsTest, onError }: ServerContext) {
  const uses = createKeyUseLog((list) => noteKeysUsed(db, list), clock, onError);
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
    /** Resolves when the last uses of keys are in the database. */
    settled: uses.flush,
  };
}

/** What the endpoints for managing an organization need, in the API, in dialects and in the dashboard. */
function managementOf(
  { config, db, clock, secrets, resolve, eventSignal }: ServerContext,
  { attemptWebhook, reader, baseUrl }: IntakeParts,
) {
  return {
    db,
    clock,
    seal: createSeal(secrets),
    names: config,
    resolve,
    keepKeysMs: config.mtaMaxAge,
    allowPrivate: config.webhookAllowPrivate,
    attemptWebhook,
    eventSignal,
    receivedReading: reader,
    receivedLinks: receivedLinks(secrets, baseUrl),
  };
}

function fetchingBy({ config, clock }: ServerContext, resolve: Resolve) {
  const download = createDownload({ resolve, allowPrivate: config.attachmentAllowPrivate });
  return createFetchAttachments(download, clock);
}

function dashboardOf(
  context: ServerContext,
  { reader, baseUrl }: IntakeParts,
  { callers, management, sending }: Shared,
  mailer: ServerMailer | null,
): Dashboard {
  return createDashboard({
    ...management,
    config: context.config,
    secrets: context.secrets,
    passwordCost: context.passwordCost,
    surroundings: context.surroundings,
    isDevelopment: context.allIsTest,
    sending: { ...sending, countRequest: callers.take },
    reading: reader,
    mailer,
    baseUrl,
    log: context.log,
    onError: context.onError,
  });
}

/** Mail of this server itself. */
function mailerOf({ config, db }: ServerContext, accept: Accept): ServerMailer | null {
  const { noticesFrom: sender, mtaMaxAge: maxAgeMs } = config;
  return sender && createServerMailer({ db, maxAgeMs, sender, accept });
}

/** What the links of mails lead to. */
function createLinkPages(context: ServerContext, ownersOf: CustomerHosts['ownersOf']) {
  const { db, clock, eventSignal, metrics, secrets, onError } = context;
  const links = createTrackingLinks(secrets);
  const record = metrics.timed('visits', (visits: Visit[]) => recordVisits(db, visits));
  return {
    tracking: createTracking({
      links,
      ownersOf,
      record: groupCommit(signalsAfter(eventSignal, record)),
      onError,
      clock,
    }),
    unsubscribe: createUnsubscribe({ db, eventSignal, clock, links, ownersOf }),
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

/** Strangers decide how many calls have no valid key, so the log of other servers does not have them. */
function unauthorizedLog({ allIsTest, log }: ServerContext) {
  return ({ message }: Error) => {
    if (allIsTest) log.warn(`401: ${message} The start of the server, above, prints its key`);
  };
}

function submissionOf(
  { config, clock, log, metrics, onError }: ServerContext,
  { callers, sending, readSubmitted, onRefusedSend }: Shared,
) {
  const submission = createSubmission({
    ...sending,
    hostname: config.hostname,
    findCaller: callers.findCaller,
    authThrottle: callers.authThrottle,
    // The other half of the connections is for mail that need not wait.
    requestWait: new RequestWait({ take: callers.take, clock, maxWaiting: config.smtpConnections / 2 }),
    readSubmitted,
    onRefused: ({ address }: Client) => log.warn({ client: address }, 'an SMTP login was refused'),
    onRefusedSend,
    onError,
  });
  return countRefusals(submission, metrics.refused);
}
