/**
 * Works through the outbox: leases due messages while slots are free, attempts them and records the outcomes. Only messages
 * under attempt are in memory. Webhooks and mail never wait for each other: they share only the database and this thread.
 *
 * An outcome that cannot be recorded is kept and retried. On stop, running attempts get a moment to finish; then they are aborted
 * and their leases released, so their endpoints may get them twice.
 */

import type { WebhookMessage } from '#mail/webhooks/rows/webhook-outbox.ts';
import type { WebhookTry } from '#mail/webhooks/rows/webhook-outcomes.ts';
import type { Clock } from '#platform/base/clock.ts';
import { createDebouncedLoop } from '#platform/base/debounced-loop.ts';
import { pause } from '#platform/base/waits.ts';
import { verdictOf, type WebhookVerdict } from './classify-response.ts';
import { createPostingSlots, type DueWebhook, type Pick } from './posting-slots.ts';
import type { AttemptWebhook } from './webhook-attempt.ts';

export interface WebhookRunnerParts {
  /** `isWoken`: some are expected. */
  listDue(now: number, isWoken: boolean): Promise<DueWebhook[]>;
  claim(picks: Pick[], now: number): Promise<WebhookMessage[]>;
  /** Makes all messages that this node has leased due immediately. */
  releaseLeases(now: number): Promise<void>;
  attemptWebhook: AttemptWebhook;
  record(one: WebhookTry): Promise<void>;
  /** Concurrent attempts in total. */
  concurrency: number;
  clock: Clock;
  onError(what: string, error: unknown): void;
}

export interface WebhookRunner {
  start(): Promise<void>;
  wake(): void;
  stop(): Promise<void>;
}

const graceMs = 1000;
const retryDelayMs = 1000;

export function createWebhookRunner(parts: WebhookRunnerParts): WebhookRunner {
  const { clock, onError } = parts;
  const slots = createPostingSlots(parts.concurrency);
  const inFlight = new Set<Promise<void>>();
  const stopping = new AbortController();

  const loop = createDebouncedLoop({
    run: postDue,
    debounceMs: 25,
    intervalMs: 1000,
    clock,
    onError: (error) => onError('due webhooks could not be read; retrying', error),
  });

  async function postDue(isWoken: boolean): Promise<boolean> {
    if (slots.isFull()) return false;
    const now = clock.now();
    const due = await parts.listDue(now, isWoken);
    const picks = slots.share(due);
    if (picks.length === 0) return false;
    const byId = new Map(due.map((one) => [one.id, one]));
    for (const message of await parts.claim(picks, now)) {
      const release = slots.take(byId.get(message.webhookId)!);
      const attempting = attemptAndRecord(parts, message, stopping.signal).finally(() => {
        release();
        inFlight.delete(attempting);
        loop.wake();
      });
      inFlight.add(attempting);
    }
    return false;
  }

  return {
    async start() {
      await parts.releaseLeases(clock.now());
      loop.start();
    },
    wake: loop.wake,
    async stop() {
      await loop.stop();
      const grace = setTimeout(() => stopping.abort(new Error('Postern stops')), graceMs);
      await Promise.all(inFlight);
      clearTimeout(grace);
      stopping.abort();
      await parts.releaseLeases(clock.now());
    },
  };
}

async function attemptAndRecord(
  { attemptWebhook, record, clock, onError }: WebhookRunnerParts,
  message: WebhookMessage,
  stopped: AbortSignal,
): Promise<void> {
  const attempt = await attemptWebhook(message, stopped).catch(() => null);
  // It was aborted by a stop, or not made: it is due again when its lease ends.
  if (attempt === null) return;
  // A message without its event can never be delivered: retrying is pointless.
  const verdict: WebhookVerdict =
    message.event === null
      ? { kind: 'failed', pausedUntil: null }
      : verdictOf(attempt, message.attempts, attempt.endedAt, message.format);
  for (;;) {
    try {
      return await record({ message, attempt, verdict });
    } catch (error) {
      onError('the outcome of a webhook could not be recorded; retrying', error);
      if (stopped.aborted) return;
      await pause(clock, retryDelayMs, stopped);
    }
  }
}
