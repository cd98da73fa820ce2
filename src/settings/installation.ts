/**
 * Which installation a command acts on, if its environment does not say it: that of the service on this machine, whose
 * settings are in /etc/postern/postern.env; else the one beside the program. And how a command of an installation is given.
 */
import { accessSync, constants, existsSync, statSync } from 'node:fs';
import { hostname } from 'node:os';
import { join, resolve } from 'node:path';
import { serviceDataDir, serviceFile } from './env-file.ts';
import type { Environment } from './setting-sources.ts';

interface Place {
  dataDir: string;
  databaseUrl: string | null;
}

const root = join(import.meta.dirname, '../..');
/** config/postern-command, as it is installed. */
const serviceCommand = '/usr/local/bin/postern';

/** Each of them says where an installation is. */
const places = ['POSTERN_DATA_DIR', 'POSTERN_DATABASE_URL', 'POSTERN_CONFIG', 'POSTERN_ENV_FILE'];

/** The environment, with the service's settings file where one is there and nothing else is said. */
export function commandEnvironment(env: Environment = process.env): Environment {
  if (places.some((name) => env[name]?.trim()) || !existsSync(serviceFile)) return env;
  if (!canRead(serviceFile) || !isOwn(serviceDataDir)) {
    throw new Error(
      `${serviceFile} has the settings of the service on this machine, and this user is not the service's: ` +
        `give the command as \`${asService()}\`; for another installation, set POSTERN_DATA_DIR`,
    );
  }
  return { ...env, POSTERN_ENV_FILE: serviceFile };
}

function canRead(path: string): boolean {
  try {
    accessSync(path, constants.R_OK);
    return true;
  } catch {
    return false;
  }
}

/** What root wrote there the service could not read. */
function isOwn(directory: string): boolean {
  const owner = statSync(directory, { throwIfNoEntry: false })?.uid;
  return owner === undefined || owner === process.getuid?.();
}

function asService(): string {
  if (existsSync(serviceCommand)) return 'postern';
  return `sh ${join(root, 'config/postern-command')}`;
}

/** Why there is no database to act on, and what to do. */
export function noDatabase({ dataDir, databaseUrl }: Place): Error {
  const start = 'the first start of the server makes it';
  if (databaseUrl !== null) {
    return new Error(
      `the database of POSTERN_DATABASE_URL is empty: ${start}; for another installation, set POSTERN_DATABASE_URL to its own`,
    );
  }
  const isClosed = existsSync(dataDir) && !canRead(dataDir);
  if (isClosed)
    return new Error(
      `this user may not look into ${dataDir}; give the command as the user that the server runs as`,
    );
  return new Error(
    `there is no database in ${resolve(dataDir)}: ${start}; for another installation, ${elsewhere()}`,
  );
}

function elsewhere(): string {
  if (existsSync('/sys/fs/cgroup/system.slice/postern.service'))
    return `such as the service that runs on this machine, give \`${asService()}\``;
  if (existsSync(join(root, 'config/.env')))
    return 'such as that of Docker, give `docker compose -f config/compose.yaml exec postern postern`';
  return 'set POSTERN_DATA_DIR to the directory that its server has';
}

/** A server by hand, beside a service: which of the two is meant, nobody can know. Null: there is no service. */
export function besideService(
  { dataDir }: Pick<Place, 'dataDir'>,
  env: Environment = process.env,
): string | null {
  if (places.some((name) => env[name]?.trim()) || !existsSync(serviceFile)) return null;
  return `${serviceFile} is not read: this server is another installation, with its data in ${dataDir}; \`systemctl start postern\` starts the service`;
}

/** What to type before a command, for somebody at another terminal of the machine where a server has this environment. */
export function commandPrefix({ dataDir }: Pick<Place, 'dataDir'>, env: Environment = process.env): string {
  // A container of our image, whose name for its host is by default its own host name.
  if (root === '/postern' && existsSync('/.dockerenv')) return `docker exec ${hostname()} postern`;
  if (root === '/postern' && existsSync('/run/.containerenv')) return `podman exec ${hostname()} postern`;
  if (resolve(dataDir) === serviceDataDir) return asService();
  const given = places.filter((name) => env[name]?.trim() && name !== 'POSTERN_DATABASE_URL');
  const settings = given.map((name) => `${name}=${word(resolve(env[name]!.trim()))} `);
  if (env.POSTERN_DATABASE_URL?.trim()) settings.push('POSTERN_DATABASE_URL=URL ');
  else if (besideService({ dataDir }, env)) settings.push(`POSTERN_DATA_DIR=${word(dataDir)} `);
  return `${settings.join('')}${word(join(root, 'scripts/postern'))}`;
}

/** As a shell takes it. */
function word(text: string): string {
  return /^[\w./:@%+,-]+$/.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`;
}
