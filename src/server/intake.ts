/**
 * Builds the ways in: HTTP and submission → checks → one commit; tracking, events and look-ups beside them. main.ts starts
 * and stops them.
 */
import { createAccept } from '../accept.ts';
import { findCaller } from '../accounts/api-keys.ts';
import { createUses } from '../accounts/key-last-used.ts';
import { dayOf, type RequestLimits } from '../accounts/limits.ts';
import { createSeal } from '../accounts/seal.ts';
import { createAdmission } from '../api/admission.ts';
import { createApi } from '../api/api-app.ts';
import { createAuthThrottle } from '../api/auth-throttle.ts';
import { createAuthorize } from '../api/authorize.ts';
import { createCursors } from '../api/events/event-cursor.ts';
import { createStreams } from '../api/events/event-stream.ts';
import { countInFlight } from '../base/in-flight.ts';
import { cached } from '../base/lookup-cache.ts';
import { type Compose, isLarge } from '../compose/compose-order.ts';
import { createDashboard } from '../dashboard/dashboard.ts';
import { acceptAll, dryRun } from '../db/accept/acceptance.ts';
import type { Send } from '../db/accept/acceptance-rows.ts';
import { giveBack, recordRequests, type UsageRequest } from '../db/accept/daily-usage.ts';
import { findDomain } from '../db/accounts/domains-table.ts';
import { findKeyByHash, noteKeysUsed } from '../db/accounts/keys.ts';
import { groupCommit } from '../db/engine/group-commit.ts';
import type { Db } from '../db/engine/open.ts';
import { retryInDoubt } from '../db/engine/retry-in-doubt.ts';
import { findEmail } from '../db/events/emails.ts';
import { recordVisits } from '../db/events/engagement.ts';
import { type EventQuery, readEvents, settledPosition } from '../db/events/read-events.ts';
import { searchEmails } from '../db/events/search-emails.ts';
import { createMessageId } from '../mail/message-id.ts';
import { countRefusals, countRequests } from '../operate/metrics/request-metrics.ts';
import type { Runner } from '../queue/runner.ts';
import { signalsAfter } from '../record/event-signal.ts';
import { logAccepted } from '../record/mail-log-lines.ts';
import { createResolver } from '../route/resolver.ts';
import type { Client } from '../smtp-in/mail-handler.ts';
import { createSubmission } from '../smtp-in/submission/submission-handler.ts';
import { createTracking } from '../tracking/routes.ts';
import { createTrackingLinks } from '../tracking/tracking-links.ts';
import type { Visit } from '../tracking/visit.ts';
import type { TryWebhook } from '../webhooks/webhook-attempt.ts';
import { leaseMs, type ServerContext } from './context.ts';

/** How long an accepting commit waits for sends that are being composed: less than anybody notices. */
const commitMaxWaitMs = 5;

/** How long a client of a live stream may take nothing. */
const streamTimeoutMs = 60_000;

interface Neighbours {
  compose: Compose;
  admit: Runner['admit'];
  hasSpace(): boolean;
  baseUrl(): string;
  /** One try of a webhook. */
  tryIt: TryWebhook;
}

/** The ways in, HTTP and submission → checks → one commit. */
export function createIntake(
  ground: ServerContext,
  { compose, admit, hasSpace, baseUrl, tryIt }: Neighbours,
) {
  const { config, clock, db, watch, metrics, onError } = ground;
  const policy = { keepMs: config.idempotencyKeep, lowShare: config.creditsLow / 100 };
  const links = createTrackingLinks(ground.secrets);
  /** Large ones take long, and are not waited for. */
  const composing = countInFlight(compose);
  const accept = createAccept({
    findDomain: findSender(db),
    compose: (order) => (isLarge(order) ? compose(order) : composing.call(order)),
    trackingBase: (host) => (host ? `https://${host}` : baseUrl()),
    commit: retryInDoubt(
      groupCommit(
        signalsAfter(
          watch,
          metrics.timed('accept', (sends: Send[]) => acceptAll(db, sends, policy), metrics.decided),
        ),
        {
          // Where as many again are coming, each costs half as much.
          isComing: (gathered) => composing.inFlight() > gathered,
          maxWaitMs: commitMaxWaitMs,
        },
      ),
      {
        again: (send) => ({ ...send, againUntil: clock.now() + leaseMs }),
        // PostgreSQL may be away for a minute, and nobody is left in doubt.
        giveUpAfterMs: 3 * ground.databaseTimeoutMs,
      },
    ),
    dryRun: (send) => dryRun(db, send, policy),
    admit,
    onAccepted: (send, accepted, requestId) => logAccepted(ground.mailLog, send, accepted, requestId),
    clock,
    messageIdOf: createMessageId(ground.secrets, config.hostname),
    maxAgeMs: config.mtaMaxAge,
    node: ground.node,
    leaseMs,
  });
  const findKey = cached((hash) => findKeyByHash(db, hash), 10_000);
  const uses = createUses((list) => noteKeysUsed(db, list), clock, onError);
  const takes = groupCommit(metrics.timed('usage', (list: UsageRequest[]) => recordRequests(db, list)));
  const keyChecks = {
    findCaller: uses.noted((key: string) => findCaller(key, findKey, clock.now())),
    take: (orgId: string, limits: RequestLimits) =>
      takes({ orgId, limits, now: clock.now(), day: dayOf(clock.now()) }),
    uncount: (orgId: string) => giveBack(db, orgId, dayOf(clock.now())),
    authThrottle: createAuthThrottle(clock),
  };
  const sending = { admission: createAdmission(config.httpConcurrency, clock), hasSpace, accept };
  const tracking = createTracking({
    links,
    record: groupCommit(
      signalsAfter(
        watch,
        metrics.timed('visits', (visits: Visit[]) => recordVisits(db, visits)),
      ),
    ),
    onError,
    clock,
  });
  const feed = {
    readEvents: (query: EventQuery) => readEvents(db, query),
    cursors: createCursors(ground.secrets),
  };
  const streams = createStreams({
    ...feed,
    settledPosition: () => settledPosition(db),
    eventSignal: watch,
    onError,
    timeoutMs: streamTimeoutMs,
  });
  const management = {
    db,
    clock,
    eventSignal: watch,
    attemptWebhook: tryIt,
    names: config,
    allowPrivate: config.webhookAllowPrivate,
    seal: createSeal(ground.secrets),
    resolve: createResolver(config.dnsServers),
    keepKeysMs: config.mtaMaxAge,
  };
  const dashboard = createDashboard({
    ...{ ...ground, ...management, baseUrl, links },
    sending: { ...sending, take: keyChecks.take },
  });
  const app = createApi({
    authorize: createAuthorize(keyChecks),
    ...sending,
    tracking: tracking.router,
    findEmail: (id, orgId) => findEmail(db, id, orgId),
    searchEmails: (search) => searchEmails(db, search),
    feed: { ...feed, streams },
    management,
    dashboard: dashboard.answer,
    proxies: config.httpProxies,
    baseUrl,
    observe: countRequests(metrics),
    onError,
  });
  const onRefused = ({ address }: Client) =>
    ground.log.warn({ client: address }, 'a login over SMTP was refused');
  const submission = countRefusals(
    createSubmission({ ...keyChecks, ...sending, onRefused, onError }),
    metrics.refused,
  );
  const settled = async () =>
    void (await Promise.all([tracking.settled(), uses.settled(), dashboard.stop()]));
  /** What would go on for long is told to end. */
  const hurry = async () => {
    // An order ends between two pages of the queue: it is waited for at the end of all.
    void dashboard.stop();
    await streams.close();
  };
  return { answer: app.callback(), settled, submission, hurry };
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
