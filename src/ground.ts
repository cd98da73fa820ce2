/** What everything stands on: settings, secret, database, logs, and the hands that a test may turn. */
import { randomUUID } from 'node:crypto';
import { readFileSync, writeFileSync } from 'node:fs';
import { statfs } from 'node:fs/promises';
import { join } from 'node:path';
import { createSeal } from './accounts/seal.ts';
import { type Clock, systemClock } from './clock.ts';
import type { Config } from './config.ts';
import { someSealedKey } from './db/domains.ts';
import { settledPosition } from './db/events.ts';
import { lockDataDir } from './db/lock.ts';
import { migrate } from './db/migrate.ts';
import { type Db, openDatabase } from './db/open.ts';
import { createLog, type Log } from './log.ts';
import { createMailLog, type MailLog } from './maillog.ts';
import { loadSecret } from './secret.ts';
import { createWatch, type Watch } from './status/watch.ts';
import { patienceMs } from './webhooks/post.ts';

/** What tests turn by hand. */
export interface Hands {
  clock: Clock;
  random: () => number;
  log: Log;
  /** Where MTA-STS policies are fetched: the port of HTTPS. */
  policyPort: number;
  /** How long an endpoint of webhooks may take to answer. */
  webhookTimeoutMs: number;
  /** What the file system of a directory has left for us, in bytes. */
  freeBytes(directory: string): Promise<number>;
}

/** How long a node may hold what it leases. */
export const leaseMs = 5 * 60_000;

/** Everything that the parts share. */
export interface Ground extends Hands {
  config: Config;
  db: Db;
  node: string;
  secret: string;
  mailLog: MailLog;
  /** Rung after each commit of events. */
  watch: Watch;
  onTrouble(what: string, error: unknown): void;
}

/** Rejects with an error that says what to do; what is open by then is among the `stops`. */
export async function layGround(
  config: Config,
  hands: Partial<Hands>,
  stops: (() => Promise<void>)[],
): Promise<Ground> {
  const { clock = systemClock, random = Math.random, log = createLog(config), policyPort = 443 } = hands;
  const { freeBytes = freeSpace, webhookTimeoutMs = patienceMs } = hands;
  const secret = loadSecret(config);
  stops.push(await lockDataDir(config.dataDir));
  const db = await openDatabase(config);
  stops.push(() => db.destroy());
  await migrate(db);
  const sealed = await someSealedKey(db);
  // With another secret every send would fail, and every bounce and tracking link of old mail be refused.
  if (sealed !== null) createSeal(secret).open(sealed);
  const mailLog = createMailLog(config.dataDir, clock, log);
  stops.push(() => mailLog.close());
  const onTrouble = (what: string, error: unknown) => log.error({ err: error }, what);
  const watch = createWatch({ position: () => settledPosition(db), clock, onTrouble });
  return {
    config,
    clock,
    random,
    log,
    policyPort,
    webhookTimeoutMs,
    freeBytes,
    secret,
    db,
    mailLog,
    watch,
    onTrouble,
    node: nodeId(config.dataDir),
  };
}

/** This node's name in leases: kept, so that a node that was killed knows its own when it starts again. */
function nodeId(dataDir: string): string {
  const file = join(dataDir, 'node-id');
  try {
    return readFileSync(file, 'utf8').trim();
  } catch {
    const id = randomUUID();
    writeFileSync(file, `${id}\n`, { flush: true });
    return id;
  }
}

async function freeSpace(directory: string): Promise<number> {
  const { bavail, bsize } = await statfs(directory);
  return bavail * bsize;
}
