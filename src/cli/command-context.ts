/**
 * What the commands act on: the settings, the database and the secrets, each opened when it is first asked for, all
 * closed by `close`. The database is the server's own, whether it runs or not. A command makes none, and changes no schema:
 * the server does, and `postern migrate`.
 */
import { existsSync } from 'node:fs';
import { systemClock } from '../base/clock.ts';
import { openSecrets, type Secrets, secretFile } from '../base/secrets.ts';
import { type Config, loadConfig } from '../config.ts';
import { refuseLeft, refuseMoved } from '../db/admin/moved-marker.ts';
import { type Db, openExisting } from '../db/engine/open.ts';
import { isServed } from '../db/queue/server-running.ts';
import { requireSchema } from '../db/schema/migrate.ts';
import { commandEnvironment, noDatabase } from '../settings/installation.ts';
import { type Environment, otherVariables } from '../settings/setting-sources.ts';
import { Failure } from './failure.ts';
import { createOutput, type Output } from './render/output.ts';

export interface CommandContext {
  out: Output;
  /** Where the settings come from. */
  env(): Environment;
  config(): Config;
  db(): Promise<Db>;
  /** Whether a server is running that sends mail from the database. */
  isServed(): Promise<boolean>;
  secrets(): Secrets;
  now(): number;
  close(): Promise<void>;
}

/** For whoever looks at mail that waits. */
export const notServed =
  'no server is running, so no mail is sent; start one (`systemctl start postern` if it is a service)';

export function createCommandContext(): CommandContext {
  const { now } = systemClock;
  const out = createOutput(process, now);
  let env: Environment | undefined;
  let config: Config | undefined;
  let db: Db | undefined;
  const context: CommandContext = {
    out,
    now,
    env() {
      env ??= commandEnvironment();
      return env;
    },
    config() {
      if (config) return config;
      config = loadConfig(context.env());
      Object.assign(process.env, otherVariables(context.env()));
      return config;
    },
    async db() {
      if (db) return db;
      const { databaseUrl, dataDir } = context.config();
      if (databaseUrl === null) refuseLeft(dataDir);
      const opened = await openExisting(context.config());
      if (opened === null) throw noDatabase(context.config());
      db = opened;
      await refuseMoved(db, dataDir);
      if (!(await requireSchema(db))) throw noDatabase(context.config());
      return db;
    },
    async isServed() {
      return isServed(await context.db(), context.config().dataDir);
    },
    secrets() {
      const { dataDir, secret } = context.config();
      const file = secretFile(dataDir);
      if (secret === null && !existsSync(file)) {
        throw new Failure(
          `${file} does not exist, and a new secret could not decrypt this database: set POSTERN_DATA_DIR to the data ` +
            'directory of the server, or POSTERN_SECRET to its secret',
        );
      }
      try {
        return openSecrets(context.config());
      } catch (error) {
        const reason = (error as Error).message;
        throw new Failure(
          `the data directory ${dataDir} cannot be used: ${reason}; correct its owner and permissions, or set POSTERN_DATA_DIR`,
        );
      }
    },
    async close() {
      await db?.destroy();
      db = undefined;
    },
  };
  return context;
}
