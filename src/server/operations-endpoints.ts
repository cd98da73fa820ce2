/**
 * Builds what the machinery around us asks for: /metrics and /health, each part handed what it reads. main.ts puts it
 * before the API and stops it.
 */

import { openDatabase } from '../db/engine/open.ts';
import { oldestDue, queueDepth, webhookBacklog } from '../db/queue/queue-counts.ts';
import { createHealth } from '../operate/health.ts';
import { createReadings } from '../operate/metrics/readings.ts';
import { createProbes } from '../operate/probes.ts';
import type { ServerContext } from './context.ts';
import type { DeliveryEngine } from './delivery.ts';
import type { DiskGuard } from './disk-guard.ts';
import type { Listeners } from './smtp-listeners.ts';

interface Neighbours extends Pick<DiskGuard, 'obstacle' | 'freeSpace'> {
  load: DeliveryEngine['load'];
  clients: Listeners['clients'];
}

export async function openOperationsEndpoints(
  ground: ServerContext,
  { load, clients, obstacle, freeSpace }: Neighbours,
) {
  const { config, db, clock, onError } = ground;
  const { registry, meters } = ground.metrics;
  meters.diskReserve.set(config.minFreeSpace);
  ground.watchProcess(registry);
  // On SQLite a statement has its connection to itself: while a long queue is counted, mail would wait.
  const aside = await openDatabase({ ...config, databaseConnections: 2 }, ground.databaseTimeoutMs);
  const readings = createReadings({
    ...{ meters, load, clients, freeSpace, onError, clock },
    oldestDue: (now) => oldestDue(aside, now),
    queueDepth: (now) => queueDepth(aside, now),
    webhookBacklog: () => webhookBacklog(aside),
  });
  const health = createHealth({ ping: async () => db.raw('select 1'), obstacle, clock });
  const around = createProbes({
    health,
    token: config.metricsToken,
    async print() {
      await readings.take();
      return { type: registry.contentType, text: await registry.metrics() };
    },
    onError,
  });
  return {
    around,
    /** Says that we stop, and goes on serving for as long as that is to be heard. */
    async leave(): Promise<void> {
      health.stop();
      if (config.stopDelay > 0)
        await new Promise<void>((resolve) => void clock.after(config.stopDelay, resolve));
    },
    async close(): Promise<void> {
      await readings.stop();
      await aside.destroy();
    },
  };
}
