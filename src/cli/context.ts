/**
 * What the commands act on: the settings, the database and the secrets, each opened when it is first asked for, all
 * closed by `close`. The database is the server's own, whether it runs or not: brought up to date before use, and
 * made, with its directory, where this is the first start.
 */
import { existsSync } from 'node:fs';
import { resolve } from 'node:path';
import { systemClock } from '../clock.ts';
import { type Config, loadConfig } from '../config.ts';
import { migrate, upgradeNotice } from '../db/migrate.ts';
import { refuseMoved } from '../db/moved.ts';
import { type Db, openDatabase } from '../db/open.ts';
import { loadSecrets, type Secrets } from '../secret.ts';
import { Failure } from './failure.ts';
import { createOutput, type Output } from './output.ts';

export interface Context {
  out: Output;
  config(): Config;
  db(): Promise<Db>;
  secrets(): Secrets;
  now(): number;
  close(): Promise<void>;
}

export function createContext(): Context {
  const { now } = systemClock;
  const out = createOutput(process, now);
  let config: Config | undefined;
  let db: Db | undefined;
  const context: Context = {
    out,
    now,
    config() {
      config ??= loadConfig();
      return config;
    },
    async db() {
      if (db) return db;
      const { databaseUrl, dataDir } = context.config();
      if (databaseUrl === null) makeDataDir(context);
      db = await openDatabase(context.config());
      await refuseMoved(db, dataDir);
      await migrate(db, (upgrade) => out.warn(upgradeNotice(upgrade)));
      return db;
    },
    secrets() {
      const { dataDir } = context.config();
      try {
        return loadSecrets(context.config());
      } catch (error) {
        const reason = (error as Error).message;
        throw new Failure(
          `the data directory ${dataDir} cannot be used: ${reason}; mend its owner and permissions, or set POSTERN_DATA_DIR`,
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

/** A directory made by mistake, by a command run from elsewhere, would look like an empty service: it is told. */
function makeDataDir(context: Context): void {
  const { dataDir } = context.config();
  const isNew = !existsSync(dataDir);
  context.secrets();
  if (isNew) context.out.note(`${resolve(dataDir)} is new: the data directory of a service that begins here`);
}
