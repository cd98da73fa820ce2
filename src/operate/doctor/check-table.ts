/** The checks as a table, in groups by subject; what each of them looks at is in a file of its own. */

import { poolsOf } from '../../cluster/pool-assignment.ts';
import { isTrackingAtHome } from '../../db/accounts/domains-table.ts';
import { judgeBaseUrl } from './checks/base-url.ts';
import { holdsAddress, lookForAddress, lookForDomain } from './checks/blocklists.ts';
import { lookAtCertificate } from './checks/certificate.ts';
import { lookAtDatabase, lookForServer } from './checks/database.ts';
import { measureSpace, measureSync } from './checks/disk.ts';
import { judgeServers, lookForValidation } from './checks/dns-servers.ts';
import { lookForReadable } from './checks/file-permissions.ts';
import { judgeName, lookUpName, lookUpPtr } from './checks/host-names.ts';
import { lookAtPools } from './checks/ip-pools-present.ts';
import { compareClock } from './checks/machine-clock.ts';
import { countFiles } from './checks/open-files.ts';
import { judgeKnocks } from './checks/port-25.ts';
import { knockAtReturnPath, lookUpReturnPath } from './checks/return-path-domain.ts';
import { lookAtSecret } from './checks/secret-file.ts';
import { dkimTasks, recordTasks } from './checks/sender-domain.ts';
import { lookUpSpf } from './checks/spf.ts';
import { failure, skipped, type Task, warning } from './finding.ts';
import { mostDomains, type Scene } from './shared-facts.ts';

const machine = 'this machine';

function tasksOf(subject: string, looks: Record<string, Task['look']>): Task[] {
  return Object.entries(looks).map(([check, look]) => ({ check, subject, look }));
}

export function machineTasks({ config, surroundings, now, dns, openDb }: Scene): Task[] {
  const { timeServers, patience } = surroundings;
  return tasksOf(machine, {
    database: () => lookAtDatabase(openDb),
    server: () => lookForServer(openDb, config.dataDir),
    secret: () => lookAtSecret(config, openDb),
    'source pools': () => lookAtPools(openDb, poolsOf(config.mtaSources), now()),
    'disk speed': () => measureSync(config.dataDir, surroundings),
    'disk space': () => measureSpace(config, surroundings),
    'open files': () => countFiles(config, surroundings),
    'file permissions': () => lookForReadable(config),
    clock: () => compareClock({ dns, timeServers, now, patienceMs: patience.time }),
    certificate: () => lookAtCertificate(config, now()),
    'base URL': async () => {
      const db = await openDb().catch(() => null);
      return judgeBaseUrl(config, db !== null && (await isTrackingAtHome(db).catch(() => false)));
    },
  });
}

export function dnsTasks({ config, surroundings, dns }: Scene): Task[] {
  const { signedName, patience } = surroundings;
  return tasksOf('DNS', {
    servers: async () => judgeServers(await dns.servers()),
    DNSSEC: () => lookForValidation({ servers: config.dnsServers, signedName, patienceMs: patience.dns }),
  });
}

/** Our ends of connections, and the names that they give. */
export function originTasks(scene: Scene): Task[] {
  const { dns, senders, origins } = scene;
  const ports = origins.map(({ origin, knocks }) => ({
    check: origin.from === undefined && origin.family === 6 ? 'port 25 by IPv6' : 'port 25',
    subject: origin.from ?? machine,
    look: async () => judgeKnocks(origin, await knocks),
  }));
  const names = [...new Set(origins.map(({ origin }) => origin.name))];
  return [
    ...ports,
    ...names.flatMap((name) =>
      tasksOf(name, {
        hostname: async () => judgeName(name),
        address: async () => lookUpName(dns, name, await senders),
      }),
    ),
    ...blockedDomain(scene, names[0]!),
  ];
}

export async function addressTasks({ dns, senders, surroundings }: Scene): Promise<Task[]> {
  return (await senders).flatMap((sender) => {
    const lists = surroundings.blocklists.filter((list) => holdsAddress(list, sender.address));
    return tasksOf(sender.address, {
      PTR: () => lookUpPtr(dns, sender),
      ...Object.fromEntries(
        lists.map((list) => [list.name, () => lookForAddress(dns, list, sender.address)]),
      ),
    });
  });
}

export function returnTasks(scene: Scene): Task[] {
  const { config, ours, senders, dns } = scene;
  const { hostname, returnPathDomain } = config;
  return [
    ...tasksOf(returnPathDomain, {
      'return path': async () => lookUpReturnPath({ ...scene, ours: await ours }),
      'returned mail': async () => knockAtReturnPath({ ...scene, ours: await ours }),
      SPF: async () => lookUpSpf(returnPathDomain, { dns, senders: await senders, hostname, decides: true }),
    }),
    ...(returnPathDomain === hostname ? [] : blockedDomain(scene, returnPathDomain)),
  ];
}

export async function sendingDomains(scene: Scene): Promise<Task[]> {
  const found = await scene.domains.catch(() => null);
  const domains = found?.slice(0, mostDomains) ?? [];
  const names = [...new Set(domains.map(({ name }) => name))];
  const { hostname, returnPathDomain } = scene.config;
  return [
    ...(domains.length === 0 ? [noDomain(scene, found === null)] : []),
    ...names.flatMap((name) => {
      const records = domains.filter((domain) => domain.name === name);
      return [
        ...records.flatMap((domain) => dkimTasks(domain, scene)),
        ...recordTasks(records[0]!, scene),
        ...(name === returnPathDomain ? [] : [ownSpf(scene, name)]),
        ...([hostname, returnPathDomain].includes(name) ? [] : blockedDomain(scene, name)),
      ];
    }),
    ...(found && found.length > mostDomains ? [theRest()] : []),
  ];
}

function ownSpf({ config, dns, senders }: Scene, name: string): Task {
  const { hostname } = config;
  return {
    check: 'SPF',
    subject: name,
    look: async () => lookUpSpf(name, { dns, senders: await senders, hostname, decides: false }),
  };
}

function blockedDomain({ dns, surroundings }: Scene, name: string): Task[] {
  const lists = surroundings.blocklists.filter(({ of }) => of === 'domains');
  return lists.map((list) => ({
    check: list.name,
    subject: name,
    look: () => lookForDomain(dns, list, name),
  }));
}

function noDomain({ domain }: Scene, isUnknown: boolean): Task {
  const look: Task['look'] = async () => {
    if (isUnknown) return skipped('not known: the database does not say');
    if (domain !== null) {
      return failure(
        'not registered here',
        `postern domain add ${domain} --org ORG, then publish its records`,
      );
    }
    return warning(
      'no domain is verified, so nobody can send',
      'postern domain add NAME --org ORG, publish its records, then postern domain verify NAME --org ORG',
    );
  };
  return { check: 'registered', subject: domain ?? 'sender domains', look };
}

function theRest(): Task {
  return {
    check: 'the rest',
    subject: 'sender domains',
    look: async () =>
      skipped(`more than ${mostDomains} are verified`, 'postern doctor DOMAIN looks at any one'),
  };
}
