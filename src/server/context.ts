/**
 * The context that all parts of a node share: settings, secrets, the database, logs; and the overrides with which tests
 * replace time, randomness and limits.
 */
import { Worker, type WorkerOptions } from 'node:worker_threads';
import { type Cost, defaultCost } from '#accounts/people/passwords.ts';
import { countSealed } from '#accounts/rows/sealed-columns.ts';
import { createSeal, type Seal, SealError } from '#accounts/seal.ts';
import { createResolver, defaultTimeouts } from '#mail/deliver/route/resolver.ts';
import { createNotify, type Notify } from '#mail/queue/rows/notify.ts';
import { createEventSignal, type EventSignal } from '#mail/record/event-signal.ts';
import { settledPosition } from '#mail/record/rows/read-events.ts';
import { timeoutMs } from '#mail/webhooks/guarded-post.ts';
import { freeBytes, type Surroundings } from '#operate/doctor/surroundings.ts';
import { createMetrics, type Metrics } from '#operate/metrics/metrics.ts';
import type { Clock } from '#platform/base/clock.ts';
import { createLog, type Log } from '#platform/base/log.ts';
import type { Resolve } from '#platform/base/net/resolve.ts';
import { loadSecrets, type Secrets } from '#platform/base/secrets.ts';
import { readVersion } from '#platform/base/version.ts';
import { refuseMoved } from '#platform/database/admin/moved-marker.ts';
import { requireUsable } from '#platform/database/admin/usable.ts';
import { lockDataDir } from '#platform/database/engine/data-dir-lock.ts';
import { nodeId } from '#platform/database/engine/node-id.ts';
import { type Db, isPostgres, openDatabase, type Trx } from '#platform/database/engine/open.ts';
import { createTokenReader, type TokenReader } from '#platform/database/engine/quiet-check.ts';
import { migrate, type Upgrade, upgradeNotice } from '#platform/database/schema/migrate.ts';
import { refuseOtherNodes, register } from '#platform/database/tables/nodes.ts';
import type { Config } from '#platform/settings/config.ts';
import { createMailLog, type MailLog } from '#platform/values/mail-log.ts';
import { createDatabaseClock, type DatabaseClock } from './database-clock.ts';

/** The members that a test may replace; the defaults are in `createContext`. */
export interface Overrides {
  clock: Clock;
  random: () => number;
  log: Log;
  /** Port that MTA-STS policies are fetched from and TLS reports are posted to. */
  policyPort: number;
  /** How long a mail waits for such a policy, and its fetch may take; undefined: as usual. */
  policyTimeoutMs?: number;
  /** Between two looks at an order of a certificate; undefined: as usual. */
  acmePollMs?: number;
  /** How long a webhook endpoint may take to answer. */
  webhookTimeoutMs: number;
  /** scrypt parameters of password hashes. */
  passwordCost: Cost;
  /** The outside world as the doctor sees it. */
  surroundings: Partial<Surroundings>;
  /** How long PostgreSQL may take for a statement. */
  databaseTimeoutMs: number;
  /** Bytes that the file system of a directory has left for us. */
  freeBytes(directory: string): Promise<number>;
  /** Starts a thread, whose entry is this file. */
  startThread(entry: URL, options: WorkerOptions): Worker;
  /**
   * All mail is test mail (platform/values/test-route.ts), and every recipient behaves as its local part says; for `postern
   * dev`.
   */
  allIsTest: boolean;
  /** Adds metrics about the process; only main.ts sets it, because a test process runs many nodes. */
  watchProcess(registry: Metrics['registry']): void;
}

export { leaseMs } from '#platform/database/tables/nodes.ts';

export interface ServerContext extends Overrides {
  config: Config;
  db: Db;
  node: string;
  secrets: Secrets;
  mailLog: MailLog;
  metrics: Metrics;
  /** Aborts when the service begins to stop. */
  stopping: AbortSignal;
  /** Looks up DNS records while the service is not stopping. */
  resolve: Resolve;
  /** When the clock last leapt forward (clock-jump.ts), and by an hour or more: what waits has not waited since before. */
  lastLeap: { at: number; farAt: number };
  /** Signals each commit of events, on this node and (through `notify`) on the others. */
  eventSignal: EventSignal;
  /** Another one than before: something was committed in between. */
  changeToken: TokenReader['read'];
  /** Transactions after which nothing is new. */
  ignoreTransaction: TokenReader['ignore'];
  notify: Notify;
  onError(what: string, error: unknown): void;
}

/** Rejects with an error that says what to do; whatever is open by then has its stop in `stops`. */
export async function createContext(
  config: Config,
  overrides: Partial<Overrides>,
  stops: (() => Promise<void>)[],
  stopping: AbortSignal,
): Promise<ServerContext> {
  const all = { ...defaultOverrides, log: overrides.log ?? createLog(config), ...overrides };
  const { log } = all;
  const databaseClock = createDatabaseClock(log);
  const clock = overrides.clock ?? databaseClock;
  const secrets = loadSecrets(config);
  stops.push(await lockDataDir(config.dataDir));
  const node = nodeId(config.dataDir);
  await upgrade(config, { log, node, clock, databaseClock });
  const db = await openDatabase(config, all.databaseTimeoutMs);
  stops.push(() => db.destroy());
  stops.push(databaseClock.follow(db));
  await requireSecrets(db, createSeal(secrets));
  const mailLog = createMailLog(config.dataDir, clock, log);
  stops.push(() => mailLog.close());
  const onError = (what: string, error: unknown) => log.error({ err: error }, what);
  const sends = config.roles.includes('mta');
  const notify = createNotify({ databaseUrl: config.databaseUrl, node, sends, onError });
  stops.push(notify.close);
  const { read: changeToken, ignore: ignoreTransaction } = createTokenReader(db, clock);
  const eventSignal = createEventSignal({
    changeToken,
    position: () => settledPosition(db),
    settlesLate: isPostgres(db),
    clock,
    onError,
    notifyOthers: notify.events,
  });
  const metrics = createMetrics(readVersion(), onError);
  const lastLeap = { at: Number.NEGATIVE_INFINITY, farAt: Number.NEGATIVE_INFINITY };
  return {
    ...all,
    clock,
    config,
    db,
    node,
    secrets,
    mailLog,
    metrics,
    stopping,
    resolve: createResolver(config.dnsServers, { ...defaultTimeouts, stopping }),
    lastLeap,
    eventSignal,
    changeToken,
    ignoreTransaction,
    notify,
    onError,
  };
}

/** Except `log`, which needs the settings, and `clock`, which asks the database. */
const defaultOverrides: Omit<Overrides, 'log' | 'clock'> = {
  random: Math.random,
  policyPort: 443,
  webhookTimeoutMs: timeoutMs,
  passwordCost: defaultCost,
  surroundings: {},
  databaseTimeoutMs: 20_000,
  freeBytes,
  startThread: (entry, options) => new Worker(entry, options),
  allIsTest: false,
  watchProcess() {},
};

/**
 * On a connection of its own, because a migration may take much longer over a statement than the service allows. The node
 * registers inside the upgrade's lock, so that no other node can upgrade the database under it; on SQLite the lock of the
 * data directory does that.
 */
async function upgrade(
  config: Config,
  { log, node, clock, databaseClock }: { log: Log; node: string; clock: Clock; databaseClock: DatabaseClock },
): Promise<void> {
  const db = await openDatabase(config);
  try {
    await requireUsable(db);
    await databaseClock.compare(db);
    refuseMoved(config);
    const onUpgrade = async (step: Upgrade, trx: Trx) => {
      await refuseOtherNodes(trx, { self: node, now: clock.now() });
      log.warn(upgradeNotice(step));
    };
    await migrate(db, onUpgrade, async (trx) => {
      if (isPostgres(trx)) await register(trx, { node, version: readVersion(), at: clock.now() });
    });
  } finally {
    await db.destroy();
  }
}

/** With a different secret, every send would fail, and bounces and tracking links of earlier mail would be rejected. */
async function requireSecrets(db: Db, seal: Seal): Promise<void> {
  const { all, closed } = await countSealed(db, seal.opens);
  if (closed === 0) return;
  throw new SealError(
    `${closed} of the ${all} keys in the database were sealed with another POSTERN_SECRET; restore that secret, add it ` +
      'to POSTERN_SECRET_OTHERS, or remove the domains (postern domain remove) and add them again',
  );
}
