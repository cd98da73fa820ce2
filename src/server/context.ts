/** What everything stands on: settings, secret, database, logs, and the hands that a test may turn. */
import { statfs } from 'node:fs/promises';
import { type Cost, defaultCost } from '../accounts/passwords.ts';
import { createSeal, type Seal, SealError } from '../accounts/seal.ts';
import { type Clock, systemClock } from '../base/clock.ts';
import { createLog, type Log } from '../base/log.ts';
import { loadSecrets, type Secrets } from '../base/secrets.ts';
import { readVersion } from '../base/version.ts';
import { createNotify, type Notify } from '../cluster/notify.ts';
import type { Config } from '../config.ts';
import { countSealed } from '../db/accounts/sealed-columns.ts';
import { refuseMoved } from '../db/admin/moved-marker.ts';
import { lockDataDir } from '../db/engine/data-dir-lock.ts';
import { nodeId } from '../db/engine/node-id.ts';
import { type Db, isPostgres, openDatabase, type Trx } from '../db/engine/open.ts';
import { settledPosition } from '../db/events/read-events.ts';
import { refuseOtherNodes, register } from '../db/queue/nodes.ts';
import { migrate, type Upgrade, upgradeNotice } from '../db/schema/migrate.ts';
import { createMailLog, type MailLog } from '../mail/mail-log.ts';
import type { Surroundings } from '../operate/doctor/surroundings.ts';
import { createMetrics, type Metrics } from '../operate/metrics/metrics.ts';
import { createEventSignal, type EventSignal } from '../record/event-signal.ts';
import { timeoutMs } from '../webhooks/guarded-post.ts';

/** What tests turn by hand. */
export interface Overrides {
  clock: Clock;
  random: () => number;
  log: Log;
  /** Where MTA-STS policies are fetched: the port of HTTPS. */
  policyPort: number;
  /** How long an endpoint of webhooks may take to answer. */
  webhookTimeoutMs: number;
  /** What guessing a password costs, and checking it. */
  passwordCost: Cost;
  /** What the doctor reaches out to. */
  surroundings: Partial<Surroundings>;
  /** How long PostgreSQL may take over a statement. */
  databaseTimeoutMs: number;
  /** What the file system of a directory has left for us, in bytes. */
  freeBytes(directory: string): Promise<number>;
  /** Adds what there is to say of the process, where it is ours alone. */
  watchProcess(registry: Metrics['registry']): void;
}

export { leaseMs } from '../db/queue/nodes.ts';

/** Everything that the parts share. */
export interface ServerContext extends Overrides {
  config: Config;
  db: Db;
  node: string;
  secrets: Secrets;
  mailLog: MailLog;
  metrics: Metrics;
  /** Rung after each commit of events, here and, over `bell`, on other nodes. */
  watch: EventSignal;
  bell: Notify;
  onError(what: string, error: unknown): void;
}

/** Rejects with an error that says what to do; what is open by then is among the `stops`. */
export async function createContext(
  config: Config,
  hands: Partial<Overrides>,
  stops: (() => Promise<void>)[],
): Promise<ServerContext> {
  const { clock = systemClock, random = Math.random, log = createLog(config), policyPort = 443 } = hands;
  const { freeBytes = freeSpace, webhookTimeoutMs = timeoutMs, passwordCost = defaultCost } = hands;
  const { watchProcess = () => {}, surroundings = {}, databaseTimeoutMs = 20_000 } = hands;
  const secrets = loadSecrets(config);
  stops.push(await lockDataDir(config.dataDir));
  const node = nodeId(config.dataDir);
  await upgrade(config, { log, node, now: clock.now });
  const db = await openDatabase(config, databaseTimeoutMs);
  stops.push(() => db.destroy());
  await requireSecrets(db, createSeal(secrets));
  const mailLog = createMailLog(config.dataDir, clock, log);
  stops.push(() => mailLog.close());
  const onError = (what: string, error: unknown) => log.error({ err: error }, what);
  const sends = config.roles.includes('mta');
  const bell = createNotify({ databaseUrl: config.databaseUrl, node, sends, onError });
  stops.push(bell.close);
  const watch = createEventSignal({
    position: () => settledPosition(db),
    clock,
    onError,
    notifyOthers: bell.events,
  });
  return {
    config,
    clock,
    random,
    log,
    policyPort,
    webhookTimeoutMs,
    passwordCost,
    surroundings,
    databaseTimeoutMs,
    freeBytes,
    watchProcess,
    secrets,
    db,
    mailLog,
    metrics: createMetrics(readVersion(), onError),
    watch,
    bell,
    onError,
    node,
  };
}

/**
 * It may take long over one statement, and what serves may not. A node is registered before anybody else can upgrade; on
 * SQLite the lock of the data directory says that one runs.
 */
async function upgrade(
  config: Config,
  { log, node, now }: { log: Log; node: string; now: () => number },
): Promise<void> {
  const db = await openDatabase(config);
  try {
    await refuseMoved(db, config.dataDir);
    const onUpgrade = async (step: Upgrade, trx: Trx) => {
      await refuseOtherNodes(trx, { self: node, now: now() });
      log.warn(upgradeNotice(step));
    };
    await migrate(db, onUpgrade, async (trx) => {
      if (isPostgres(trx)) await register(trx, { node, version: readVersion(), at: now() });
    });
  } finally {
    await db.destroy();
  }
}

/** With another secret every send would fail, and every bounce and tracking link of old mail be refused. */
async function requireSecrets(db: Db, seal: Seal): Promise<void> {
  const { all, closed } = await countSealed(db, seal.opens);
  if (closed === 0) return;
  throw new SealError(
    `${closed} of the ${all} keys in the database were sealed with another POSTERN_SECRET; restore that secret, name it ` +
      'in POSTERN_SECRET_OTHERS, or remove the domains (postern domain remove) and add them anew',
  );
}

async function freeSpace(directory: string): Promise<number> {
  const { bavail, bsize } = await statfs(directory);
  return bavail * bsize;
}
