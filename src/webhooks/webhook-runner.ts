/**
 * Works through the outbox: leases what is due as far as there is room, tries it, records what came of it. What is in
 * memory is what is being tried, and no more. Nothing here waits for mail or makes it wait: the two share the database
 * and this thread, and nothing else.
 *
 * An outcome that cannot be recorded is kept until it can. A stop gives tries under way a moment, then cuts them short
 * and gives them back; their endpoint may be told twice.
 */
import { pause } from '../base/abort.ts';
import type { Clock } from '../base/clock.ts';
import { createDebouncedLoop } from '../base/debounced-loop.ts';
import type { WebhookMessage } from '../db/webhooks/webhook-outbox.ts';
import type { WebhookTry } from '../db/webhooks/webhook-outcomes.ts';
import { verdictOf } from './classify-response.ts';
import { createPostingSlots, type DueWebhook, type Pick } from './posting-slots.ts';
import type { AttemptWebhook } from './webhook-attempt.ts';

export interface WebhookRunnerParts {
  listDue(now: number): Promise<DueWebhook[]>;
  claim(picks: Pick[], now: number): Promise<WebhookMessage[]>;
  /** All that this node has leased and does not try is due at once. */
  releaseLeases(now: number): Promise<void>;
  attemptWebhook: AttemptWebhook;
  record(one: WebhookTry): Promise<void>;
  /** Tries at once, in all. */
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
    beat,
    gapMs: 25,
    intervalMs: 1000,
    clock,
    onError: (error) => onError('webhooks that are due could not be read; trying again', error),
  });

  async function beat(): Promise<boolean> {
    if (slots.isFull()) return false;
    const now = clock.now();
    const due = await parts.listDue(now);
    const picks = slots.share(due);
    if (picks.length === 0) return false;
    const byId = new Map(due.map((one) => [one.id, one]));
    for (const message of await parts.claim(picks, now)) {
      const release = slots.take(byId.get(message.webhookId)!);
      const processing = process(message).finally(() => {
        release();
        inFlight.delete(processing);
        loop.wake();
      });
      inFlight.add(processing);
    }
    return false;
  }

  async function process(message: WebhookMessage): Promise<void> {
    const { signal } = stopping;
    const attempt = await parts.attemptWebhook(message, signal).catch(() => null);
    // It was cut short.
    if (attempt === null) return;
    // The event was deleted (retention) before its message was sent: there is no body to post, so a retry cannot help.
    const verdict =
      message.event === null
        ? ({ kind: 'failed', pausedUntil: null } as const)
        : verdictOf(attempt, message.attempts, attempt.endedAt);
    for (;;) {
      try {
        return await parts.record({ message, attempt, verdict });
      } catch (error) {
        onError('what came of a webhook could not be recorded; trying again', error);
        if (signal.aborted) return;
        await pause(clock, retryDelayMs, signal);
      }
    }
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
