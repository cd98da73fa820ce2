/**
 * Several Posterns on one PostgreSQL, each a process with its own directory, between a DNS server and one MX host on loopback
 * (test/lab/mx/sink.ts, a process of its own); organizations that may send; and the final comparison
 * (test/lab/load/reconciliation.ts).
 */
import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import { grant } from '#accounts/rows/credit-ledger.ts';
import { type Limits, setLimits } from '#accounts/rows/organizations.ts';
import { type Db, openDatabase } from '#platform/database/engine/open.ts';
import { migrate } from '#platform/database/schema/migrate.ts';
import { startPostgres } from '../database/postgres.ts';
import { startDns } from '../dns/dns.ts';
import { type Audit, audit, queueEmpty } from '../load/reconciliation.ts';
import type { Stage } from '../load/stage.ts';
import { startSink } from '../mx/sink.ts';
import { type PosternProcess, startProcess } from './process.ts';
import { insertTenant, testConfig, testSettings } from './world.ts';

export interface Tenant {
  key: string;
  orgId: string;
}

interface Terms {
  /** The quota, null for unlimited; the wallet is additional. */
  quota?: number | null;
  wallet?: number;
  limits?: Partial<Limits>;
}

export type Cluster = Awaited<ReturnType<typeof startCluster>>;

const host = '127.0.0.2';
const unlimited: Limits = { requestsPerSecond: null, requestsPerDay: null, emailsPerDay: null };

export async function startCluster(stage: Stage, more: Record<string, string> = {}) {
  const sink = await stage.start(startSink([{ host }]), (it) => it.stop());
  const zone = { 'there.invalid': { MX: ['10 mx.invalid'] }, 'mx.invalid': { A: [host] } };
  const dns = await stage.start(startDns(zone), (it) => it.close());
  const postgres = await stage.start(startPostgres(stage.directory), (it) => it.stop());
  const where = { dataDir: stage.directory, databaseUrl: postgres.url, dns, mtaPort: sink.port };
  const shared = { POSTERN_SECRET: 'one secret for all of these nodes', POSTERN_MTA_RETRY: '1s', ...more };
  const settings = testSettings(where, { ...shared, POSTERN_LOG_LEVEL: 'info' });
  const config = testConfig(where, shared);
  const db = await stage.start(openDatabase(config), (it) => it.destroy());
  await migrate(db);
  let creditsGranted = 0;

  return {
    db,
    postgres,
    async addTenant({ quota = null, wallet = 0, limits }: Terms = {}): Promise<Tenant> {
      const { key, orgId } = await insertTenant(db, config, dns, { quota });
      await setLimits(db, orgId, { ...unlimited, ...limits });
      if (wallet > 0) await db.transaction((trx) => grant(trx, orgId, wallet, Date.now()));
      creditsGranted += (quota ?? 0) + wallet;
      return { key, orgId };
    },
    /** Starts on the data directory that the node of this name left behind, if it ran before. */
    async launch(name: string): Promise<PosternProcess> {
      const dataDir = join(stage.directory, name);
      await mkdir(dataDir, { recursive: true });
      const starting = startProcess({ ...settings, POSTERN_DATA_DIR: dataDir });
      return stage.start(starting, (it) => it.end('SIGKILL'));
    },
    queueEmpty: (timeoutMs: number) => queueEmpty(db, timeoutMs),
    /** At the end: compares what was answered 200 with what arrived. */
    async compare(answered: string[]): Promise<Audit> {
      const accepted = await sink.records();
      const arrived = accepted.map(({ to }) => to);
      return audit(db, answered, arrived, creditsGranted);
    },
  };
}

/** Counts deliveries; `which` filters them. */
export async function countOf(db: Db, which: (rows: ReturnType<Db>) => unknown = () => {}): Promise<number> {
  const rows = db('deliveries');
  which(rows);
  return Number((await rows.count('* as n').first())?.n);
}
