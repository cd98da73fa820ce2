/**
 * What is looked up when somebody asks for the metrics, and not before. What memory knows is read each time. What the
 * database knows is read beside the answer: no sooner than five seconds after the last time, nor than fifty times as
 * long as that took, so that counting a long queue takes 2 % of one connection's time at most, and nobody's who asks
 * often. An answer waits a quarter of a second for it, and else says what was known before, and how old that is.
 */
import { setTimeout as rest } from 'node:timers/promises';
import type { Clock } from '../../base/clock.ts';
import type { QueueDepth, WebhookBacklog } from '../../db/queue/queue-counts.ts';
import type { Meters } from './registry.ts';

export interface ReadingParts {
  meters: Meters;
  /** Since when the delivery that has been due the longest has been. */
  oldestDue(now: number): Promise<number | null>;
  queueDepth(now: number): Promise<QueueDepth>;
  webhookBacklog(): Promise<WebhookBacklog>;
  /** Of the way out: connections to other servers, and deliveries under way. */
  load(): { connections: { busy: number; idle: number }; inFlight: number };
  /** Clients of the SMTP ports. */
  clients(): number;
  /** In bytes; null where it cannot be told. */
  freeSpace(): number | null;
  onError(what: string, error: unknown): void;
  clock: Clock;
}

const minRestMs = 5_000;
const restFactor = 50;
const timeoutMs = 250;

export function createReadings(parts: ReadingParts) {
  const { meters, clock } = parts;
  let reading: Promise<void> | null = null;
  /** By the stopwatch, for it follows from how long the database takes. */
  let nextReadAt = Number.NEGATIVE_INFINITY;
  let measuredAt: number | null = null;

  async function readDatabase(): Promise<void> {
    const begun = performance.now();
    try {
      const now = clock.now();
      const since = await parts.oldestDue(now);
      meters.queueOldestDue.set(since === null ? 0 : (now - since) / 1000);
      for (const [state, count] of Object.entries(await parts.queueDepth(now)))
        meters.queueDeliveries.set({ state }, count);
      const { open, oldestAt } = await parts.webhookBacklog();
      meters.webhookOpen.set(open);
      meters.webhookLag.set(oldestAt === null ? 0 : Math.max(now - oldestAt, 0) / 1000);
      measuredAt = now;
    } catch (error) {
      parts.onError('the queue could not be counted for the metrics', error);
    }
    const ended = performance.now();
    nextReadAt = ended + Math.max(minRestMs, restFactor * (ended - begun));
    reading = null;
  }

  function readMemory(): void {
    const { connections, inFlight } = parts.load();
    meters.smtpConnections.set({ state: 'busy' }, connections.busy);
    meters.smtpConnections.set({ state: 'idle' }, connections.idle);
    meters.inFlight.set(inFlight);
    meters.inboundConnections.set(parts.clients());
    const free = parts.freeSpace();
    if (free !== null) meters.diskFree.set(free);
  }

  return {
    async collect(): Promise<void> {
      if (reading === null && performance.now() >= nextReadAt) reading = readDatabase();
      readMemory();
      if (reading) await Promise.race([reading, rest(timeoutMs)]);
      if (measuredAt !== null) meters.measuredAge.set(Math.max(clock.now() - measuredAt, 0) / 1000);
    },
    /** Before the database closes. */
    async stop(): Promise<void> {
      nextReadAt = Number.POSITIVE_INFINITY;
      await reading;
    },
  };
}
