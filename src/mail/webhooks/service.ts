/** Builds the webhook pipeline: events → messages → posts → attempts. server/ starts and stops it. */
import type { Seal } from '#accounts/seal.ts';
import type { EventSignal } from '#mail/record/event-signal.ts';
import {
  claimMessages,
  listDueWebhooks,
  nextDueMessageAt,
  releaseMessages,
} from '#mail/webhooks/rows/webhook-outbox.ts';
import { recordTries, type WebhookTry } from '#mail/webhooks/rows/webhook-outcomes.ts';
import type { Clock } from '#platform/base/clock.ts';
import type { Log } from '#platform/base/log.ts';
import type { Resolve } from '#platform/base/net/resolve.ts';
import { groupCommit } from '#platform/database/engine/group-commit.ts';
import type { Db } from '#platform/database/engine/open.ts';
import { createQuietCheck } from '#platform/database/engine/quiet-check.ts';
import { createPoster } from './guarded-post.ts';
import { createFeed } from './outbox-feed.ts';
import type { MakeReceivedBody } from './received/received-bodies.ts';
import { type AttemptWebhook, createAttemptWebhook } from './webhook-attempt.ts';
import { createWebhookRunner } from './webhook-runner.ts';

type RecordTries = (tries: WebhookTry[]) => ReturnType<typeof recordTries>;

export interface WebhookParts {
  db: Db;
  seal: Seal;
  makeReceivedBody: MakeReceivedBody;
  resolve: Resolve;
  allowPrivate: boolean;
  /** How long an endpoint may take to answer. */
  timeoutMs: number;
  /** This node's name in leases. */
  node: string;
  log: Log;
  /** Counts and times the commits of tries. */
  measured(record: RecordTries): RecordTries;
  eventSignal: EventSignal;
  changeToken(): Promise<string>;
  onError(what: string, error: unknown): void;
  clock: Clock;
}

export interface Webhooks {
  /** One attempt, the same as the runner's, for tests that a person asks for. */
  attemptWebhook: AttemptWebhook;
  start(): Promise<void>;
  stop(): Promise<void>;
}

/** Concurrent posts in total. */
const concurrency = 256;
/** A post takes about 15 seconds at most; one of a large mail, with the wait for memory, a minute. */
const leaseMs = 90_000;
/** How long an outcome waits for others to share its commit. */
const recordMaxWaitMs = 20;

export function createWebhooks({
  db,
  node,
  log,
  measured,
  eventSignal,
  changeToken,
  clock,
  onError,
  seal,
  makeReceivedBody,
  ...guard
}: WebhookParts): Webhooks {
  const poster = createPoster(guard);
  const record = groupCommit(
    measured((tries) => recordTries(db, node, tries)),
    { isComing: () => true, maxWaitMs: recordMaxWaitMs },
  );
  const attemptWebhook = createAttemptWebhook({
    post: poster.post,
    makeReceivedBody,
    openSecret: seal.open,
    clock,
  });
  const lookFor = createQuietCheck(changeToken, () => nextDueMessageAt(db));
  const runner = createWebhookRunner({
    listDue: async (now, isWoken) =>
      !isWoken && (await (await lookFor(now)).nextAt()) > now ? [] : listDueWebhooks(db, now),
    claim: (picks, now) => claimMessages(db, { node, now, leaseMs, picks }),
    releaseLeases: (now) => releaseMessages(db, { node, now }),
    attemptWebhook,
    async record(one) {
      const disabled = await record(one);
      if (!disabled) return;
      const { webhook, reason } = disabled;
      log.warn(
        { webhookId: webhook.id, orgId: webhook.orgId, url: webhook.url },
        `a webhook was disabled: ${reason}; enable it with \`postern webhook enable ${webhook.id}\``,
      );
      eventSignal.notify();
    },
    concurrency,
    clock,
    onError,
  });
  const feed = createFeed({
    db,
    onMessages: runner.wake,
    eventSignal,
    clock,
    onError,
  });
  return {
    attemptWebhook,
    async start() {
      await runner.start();
      feed.start();
    },
    async stop() {
      await feed.stop();
      await runner.stop();
      poster.close();
    },
  };
}
