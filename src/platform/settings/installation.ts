/**
 * Selects the installation that a command acts on if its environment does not: the development server of the current directory,
 * else the service on this machine, whose settings are in /etc/postern/postern.env, else the one beside the program. Also tells
 * how to run a command for an installation.
 */

import { accessSync, constants, existsSync, statSync } from 'node:fs';
import { hostname } from 'node:os';
import { join, resolve } from 'node:path';
import { serviceDataDir, serviceFile } from './env-file.ts';
import type { Environment } from './setting-sources.ts';
import { shellWord } from './shell-word.ts';

interface DatabaseLocation {
  dataDir: string;
  databaseUrl: string | null;
}

const root = join(import.meta.dirname, '../../..');
/** The installed copies of config/postern-command: the one made by hand, and that of the Debian package. */
const serviceCommands = ['/usr/local/bin/postern', '/usr/bin/postern'];

/** Starts the service, now and at each boot: after a purge and a new installation, it is disabled. */
export const startService = 'systemctl enable --now postern';

/** Settings that select an installation. */
const selectors = ['POSTERN_DATA_DIR', 'POSTERN_DATABASE_URL', 'POSTERN_CONFIG', 'POSTERN_ENV_FILE'];

/** The directory in which `postern dev` keeps its data by default. */
export const devDirectory = '.postern-dev';

/** `postern dev` writes its settings to this file in its data directory, without the data directory itself. */
export function devSettingsFile(directory: string): string {
  return join(directory, 'postern.env');
}

/** Adds the settings of the development server or of the service, unless the environment selects an installation. */
export function commandEnvironment(env: Environment = process.env): Environment {
  if (selectors.some((name) => env[name]?.trim())) return env;
  const directory = [devDirectory, '.'].map((path) => resolve(path)).find(isDevDirectory);
  if (directory) return { ...env, POSTERN_ENV_FILE: devSettingsFile(directory), POSTERN_DATA_DIR: directory };
  if (!existsSync(serviceFile)) return env;
  if (!canRead(serviceFile) || !isOwn(serviceDataDir)) {
    throw new Error(
      `${serviceFile} has the settings of the service on this machine, and this user is not the user of the service: ` +
        `run the command as \`${asService()}\`; for another installation, set POSTERN_DATA_DIR`,
    );
  }
  return { ...env, POSTERN_ENV_FILE: serviceFile };
}

/** The file with the settings of the installation that the environment selects; null if the environment has them itself. */
export function settingsFileOf(env: Environment): string | null {
  return env.POSTERN_ENV_FILE?.trim() || (selectors.some((name) => env[name]?.trim()) ? null : serviceFile);
}

/** A file that another user has written could make this one's commands act on any database. */
function isDevDirectory(directory: string): boolean {
  const files = [devSettingsFile(directory), join(directory, 'dev.json')];
  return files.every((file) => existsSync(file) && isOwn(file));
}

function canRead(path: string): boolean {
  try {
    accessSync(path, constants.R_OK);
    return true;
  } catch {
    return false;
  }
}

/** Files that another user, such as root, wrote there could not be read by the service. */
function isOwn(directory: string): boolean {
  const owner = statSync(directory, { throwIfNoEntry: false })?.uid;
  return owner === undefined || owner === process.getuid?.();
}

function asService(): string {
  if (serviceCommands.some((path) => existsSync(path))) return 'postern';
  return `sh ${join(root, 'config/postern-command')}`;
}

/** The error for a command that finds no database. */
export function noDatabase({ dataDir, databaseUrl }: DatabaseLocation): Error {
  const start = 'the first start of the server creates it';
  if (databaseUrl !== null) {
    return new Error(
      `the database of POSTERN_DATABASE_URL is empty: ${start}; for another installation, set POSTERN_DATABASE_URL to its own`,
    );
  }
  if (existsSync(dataDir) && !canRead(dataDir))
    return new Error(`this user may not read ${dataDir}; run the command as the user of the server`);
  return new Error(
    `there is no database in ${resolve(dataDir)}: ${start}; for another installation, ${howToSelect()}`,
  );
}

function howToSelect(): string {
  if (existsSync('/sys/fs/cgroup/system.slice/postern.service'))
    return `such as the service that runs on this machine, run \`${asService()}\``;
  if (existsSync(join(root, 'config/.env')))
    return 'such as that of Docker, run `docker compose -f config/compose.yaml exec postern postern`';
  return 'set POSTERN_DATA_DIR to the data directory of its server';
}

/** A warning for a server that was started by hand on a machine with the service; null if there is no service. */
export function besideService(
  { dataDir }: Pick<DatabaseLocation, 'dataDir'>,
  env: Environment = process.env,
): string | null {
  if (selectors.some((name) => env[name]?.trim()) || !existsSync(serviceFile)) return null;
  return `${serviceFile} is not read: this server is another installation, with its data in ${dataDir}; \`${startService}\` starts the service`;
}

/** The command line prefix for another terminal on the machine of a server with this environment. */
export function commandPrefix(
  { dataDir }: Pick<DatabaseLocation, 'dataDir'>,
  env: Environment = process.env,
): string {
  // In a container of our image. By default, its host name is its container id, which `docker exec` accepts.
  if (root === '/postern' && existsSync('/.dockerenv')) return `docker exec ${hostname()} postern`;
  if (root === '/postern' && existsSync('/run/.containerenv')) return `podman exec ${hostname()} postern`;
  if (resolve(dataDir) === serviceDataDir) return asService();
  const names = selectors.filter((name) => env[name]?.trim() && name !== 'POSTERN_DATABASE_URL');
  const settings = names.map((name) => `${name}=${shellWord(resolve(env[name]!.trim()))} `);
  if (env.POSTERN_DATABASE_URL?.trim()) settings.push('POSTERN_DATABASE_URL=URL ');
  else if (besideService({ dataDir }, env)) settings.push(`POSTERN_DATA_DIR=${shellWord(dataDir)} `);
  return `${settings.join('')}${shellWord(join(root, 'scripts/postern'))}`;
}
