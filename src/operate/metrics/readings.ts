/**
 * Values that are read only when the metrics are scraped. Values in memory are read each time. Counts of the database are
 * read in the background: at most every five seconds, and with a pause of fifty times the duration of the last read, so
 * that counting a long queue takes at most 2 % of the time of one connection. A scrape waits up to 250 ms for them; after
 * that it returns the previous counts and their age.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import type { QueueDepth, WebhookBacklog } from '#mail/queue/rows/queue-counts.ts';
import type { ListedCertificate } from '#operate/certificates/rows/certificates-table.ts';
import type { Status } from '#operate/status/read-status.ts';
import type { Clock } from '#platform/base/clock.ts';
import { setCertificates } from './certificate-metrics.ts';
import type { Meters } from './registry.ts';
import { setStatus } from './status-metrics.ts';

export interface ReadingParts {
  meters: Meters;
  /** When the oldest due delivery became due; null if there is none. */
  oldestDue(now: number): Promise<number | null>;
  queueDepth(now: number): Promise<QueueDepth>;
  webhookBacklog(): Promise<WebhookBacklog>;
  status(now: number): Promise<Status>;
  certificates(now: number): Promise<ListedCertificate[]>;
  /** Connections to other servers, and deliveries in progress. */
  load(): { connections: { busy: number; idle: number }; inFlight: number };
  /** Number of clients connected to the SMTP ports. */
  clients(): number;
  /** In bytes; null if it cannot be read. */
  freeSpace(): number | null;
  /** Null: there was none. */
  lastBackupAt(): number | null;
  onError(what: string, error: unknown): void;
  clock: Clock;
}

const minPauseMs = 5_000;
const pauseFactor = 50;
const timeoutMs = 250;

export function createReadings(parts: ReadingParts) {
  const { meters, clock } = parts;
  let reading: Promise<void> | null = null;
  /** A time of performance.now(), because it follows from how long the database took. */
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
      setStatus(meters, await parts.status(now));
      setCertificates(meters, await parts.certificates(now));
      measuredAt = now;
    } catch (error) {
      parts.onError('the queue could not be counted for the metrics', error);
    }
    const ended = performance.now();
    nextReadAt = ended + Math.max(minPauseMs, pauseFactor * (ended - begun));
    reading = null;
  }

  function readMemory(): void {
    const { connections, inFlight } = parts.load();
    meters.smtpConnections.set({ state: 'busy' }, connections.busy);
    meters.smtpConnections.set({ state: 'idle' }, connections.idle);
    meters.inFlight.set(inFlight);
    meters.smtpClientConnections.set(parts.clients());
    const free = parts.freeSpace();
    if (free !== null) meters.diskFree.set(free);
    meters.lastBackup.set((parts.lastBackupAt() ?? 0) / 1000);
  }

  return {
    async collect(): Promise<void> {
      if (reading === null && performance.now() >= nextReadAt) reading = readDatabase();
      readMemory();
      if (reading) await Promise.race([reading, sleep(timeoutMs)]);
      if (measuredAt !== null) meters.measuredAge.set(Math.max(clock.now() - measuredAt, 0) / 1000);
    },
    /** Called before the database closes. */
    async stop(): Promise<void> {
      nextReadAt = Number.POSITIVE_INFINITY;
      await reading;
    },
  };
}
