/** Builds /metrics and /health. start.ts puts them before the API and stops them. */

import { oldestDue, queueDepth, webhookBacklog } from '#mail/queue/rows/queue-counts.ts';
import { listCertificates } from '#operate/certificates/rows/certificates-table.ts';
import { maxListed } from '#operate/condition/certificate-state.ts';
import { createHealth } from '#operate/health.ts';
import { createReadings } from '#operate/metrics/readings.ts';
import { createProbes } from '#operate/probes.ts';
import { readStatus } from '#operate/status/read-status.ts';
import { readLastBackup } from '#platform/database/admin/last-backup.ts';
import { openDatabase } from '#platform/database/engine/open.ts';
import { ping } from '#platform/database/engine/ping.ts';
import type { ServerContext } from './context.ts';
import type { DeliveryEngine } from './delivery.ts';
import type { DiskGuard } from './disk-guard.ts';
import type { Listeners } from './smtp-listeners.ts';

interface Parts {
  diskGuard: DiskGuard;
  load: DeliveryEngine['load'];
  clients: Listeners['clients'];
}

export async function openOperationsEndpoints(context: ServerContext, { load, clients, diskGuard }: Parts) {
  const { config, db, clock, onError } = context;
  const { registry, meters } = context.metrics;
  meters.diskReserve.set(config.minFreeSpace);
  context.watchProcess(registry);
  // On SQLite a statement occupies its connection: on the shared one, mail would wait while a long queue is counted.
  const countingDb = await openDatabase({ ...config, databaseConnections: 2 }, context.databaseTimeoutMs);
  const readings = createReadings({
    meters,
    load,
    clients,
    freeSpace: () => diskGuard.freeSpace(),
    lastBackupAt: () => readLastBackup(config.dataDir)?.at ?? null,
    onError,
    clock,
    oldestDue: (now) => oldestDue(countingDb, now),
    queueDepth: (now) => queueDepth(countingDb, now),
    webhookBacklog: async () => {
      const { open, oldestAt } = await webhookBacklog(countingDb);
      return { open, oldestAt: oldestAt && Math.max(oldestAt, context.lastLeap.at) };
    },
    status: (now) => readStatus({ db: countingDb, config, now }),
    certificates: async (now) =>
      config.acme === null ? [] : listCertificates(countingDb, { now, limit: maxListed }),
  });
  const health = createHealth({
    ping: () => ping(db),
    obstacle: () => diskGuard.obstacle(),
    clock,
  });
  const around = createProbes({
    health,
    token: config.metricsToken,
    async print() {
      await readings.collect();
      return { type: registry.contentType, text: await registry.metrics() };
    },
    onError,
  });
  return {
    around,
    /** Reports "stopping", and keeps serving for POSTERN_STOP_DELAY so that a load balancer notices. */
    async leave(): Promise<void> {
      health.stop();
      if (config.stopDelay > 0)
        await new Promise<void>((resolve) => void clock.after(config.stopDelay, resolve));
    },
    async close(): Promise<void> {
      await readings.stop();
      await countingDb.destroy();
    },
  };
}
