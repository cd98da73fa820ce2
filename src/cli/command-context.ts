/**
 * The context of the commands: settings, database and secrets, each opened on first use. It is the database of the server,
 * running or not. Commands never create it or change its schema, except `postern migrate`.
 */
import { existsSync } from 'node:fs';
import { createOutput, type Output } from '#cli/render/output.ts';
import { type Clock, systemClock } from '#platform/base/clock.ts';
import { openSecrets, type Secrets, secretFile } from '#platform/base/secrets.ts';
import { reasonOf } from '#platform/base/system-error.ts';
import { refuseMoved } from '#platform/database/admin/moved-marker.ts';
import { type Db, openExisting } from '#platform/database/engine/open.ts';
import { requireSchema } from '#platform/database/schema/migrate.ts';
import { isServed } from '#platform/database/tables/server-running.ts';
import { type Config, loadConfig } from '#platform/settings/config.ts';
import { commandEnvironment, noDatabase, startService } from '#platform/settings/installation.ts';
import { type Environment, otherVariables } from '#platform/settings/setting-sources.ts';
import { Failure } from './failure.ts';

/** The part of its process that a command sees. A test passes its own. */
export type CommandProcess = Pick<NodeJS.Process, 'env' | 'stdin' | 'stdout' | 'stderr' | 'once'>;

export interface CommandContext {
  process: CommandProcess;
  out: Output;
  /** The exit code if the command does not fail. */
  exitCode: number;
  /** Aborts when the process exits, and on these signals, which then no longer end the process. */
  abortOn(...signals: NodeJS.Signals[]): AbortSignal;
  /** The source of the settings. */
  env(): Environment;
  config(): Config;
  db(): Promise<Db>;
  /** Whether a server is running that sends mail from the database. */
  isServed(): Promise<boolean>;
  secrets(): Secrets;
  now(): number;
  close(): Promise<void>;
}

/** A warning for commands that show waiting mail. */
export const notServed = `no server is running, so no mail is sent; start one (\`${startService}\` if it is a service)`;

export function createCommandContext(
  process: CommandProcess,
  { now } = systemClock as Pick<Clock, 'now'>,
): CommandContext {
  let env: Environment | undefined;
  let config: Config | undefined;
  let db: Db | undefined;
  const context: CommandContext = {
    process,
    out: createOutput(process, now),
    exitCode: 0,
    abortOn(...signals) {
      const controller = new AbortController();
      for (const event of [...signals, 'exit']) process.once(event, () => controller.abort());
      return controller.signal;
    },
    now,
    env() {
      env ??= commandEnvironment(process.env);
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
      refuseMoved(context.config());
      const opened = await openExisting(context.config());
      if (opened === null) throw noDatabase(context.config());
      db = opened;
      if (!(await requireSchema(db))) throw noDatabase(context.config());
      return db;
    },
    async isServed() {
      return isServed(await context.db(), context.config().dataDir);
    },
    secrets: () => secretsOf(context.config()),
    async close() {
      await db?.destroy();
      db = undefined;
    },
  };
  return context;
}

function secretsOf(config: Config): Secrets {
  const { dataDir, secret } = config;
  const file = secretFile(dataDir);
  if (secret === null && !existsSync(file)) {
    throw new Failure(
      `${file} does not exist, and a new secret could not decrypt this database: set POSTERN_DATA_DIR to the data ` +
        'directory of the server, or POSTERN_SECRET to its secret',
    );
  }
  try {
    return openSecrets(config);
  } catch (error) {
    const reason = reasonOf(error);
    throw new Failure(
      `the data directory ${dataDir} cannot be used: ${reason}; correct its owner and permissions, or set POSTERN_DATA_DIR`,
    );
  }
}
