/**
 * Turns new events into messages for the endpoints that want them (mail/webhooks/rows/webhook-feed.ts), whenever the event
 * signal says that there may be some. Without any active endpoint it reads no events and only advances its position, now and then,
 * and looks for one once a second at most: the first endpoint may get its first event that much later.
 */

import type { EventSignal } from '#mail/record/event-signal.ts';
import { settledPosition } from '#mail/record/rows/read-events.ts';
import { fanOut, passOver } from '#mail/webhooks/rows/webhook-feed.ts';
import { hasActiveWebhooks } from '#mail/webhooks/rows/webhooks.ts';
import { type Clock, systemClock } from '#platform/base/clock.ts';
import { pause } from '#platform/base/waits.ts';
import type { Db } from '#platform/database/engine/open.ts';

export interface FeedParts {
  db: Db;
  onMessages(): void;
  eventSignal: EventSignal;
  clock: Clock;
  onError(what: string, error: unknown): void;
}

const batchSize = 500;
const passOverIntervalMs = 60_000;
/** The first endpoint's first event comes after those that were not passed over. */
const maxBehind = 10_000;
const retryDelayMs = 1000;
/** The longest wait without a signal. */
const intervalMs = 10 * 60_000;
/** Counted by the real clock, as the rate at which the event signal wakes its readers. */
const idleIntervalMs = 1000;

export function createFeed(parts: FeedParts) {
  const { db, clock, eventSignal } = parts;
  const stopping = new AbortController();
  /** Events up to this position are done. */
  let seen = -1;
  let passedOverAt = Number.NEGATIVE_INFINITY;
  /** When no active endpoint was found. */
  let idleAt = Number.NEGATIVE_INFINITY;

  async function step(): Promise<boolean> {
    // In this order: an endpoint that is added after `settled` was read gets only events after that position.
    const settled = await settledPosition(db);
    if (settled <= seen) return false;
    const now = clock.now();
    if (!(await hasActiveWebhooks(db))) {
      idleAt = performance.now();
      if (now < passedOverAt + passOverIntervalMs && settled < seen + maxBehind) return false;
      passedOverAt = now;
      await passOver(db, settled);
      seen = settled;
      return false;
    }
    const { made, position, isMore } = await fanOut(db, { now, limit: batchSize });
    if (!isMore) seen = position;
    if (made > 0) parts.onMessages();
    return isMore;
  }

  async function follow(signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      const signals = eventSignal.count();
      try {
        if (performance.now() - idleAt < idleIntervalMs) await pause(systemClock, idleIntervalMs, signal);
        while ((await step()) && !signal.aborted);
        await eventSignal.wait(signals, intervalMs, signal);
      } catch (error) {
        parts.onError('events could not be read for webhooks; retrying', error);
        await pause(clock, retryDelayMs, signal);
      }
    }
  }

  let running = Promise.resolve();
  return {
    start(): void {
      running = follow(stopping.signal);
    },
    async stop(): Promise<void> {
      stopping.abort();
      await running;
    },
  };
}
