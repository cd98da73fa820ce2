/** The checks as a table, in groups by subject; what each of them looks at is in a file of its own. */

import { poolsOf } from '../../cluster/pool-assignment.ts';
import { isTrackingAtHome } from '../../db/accounts/domains-table.ts';
import { checkBaseUrl } from './checks/base-url.ts';
import { checkAddressBlocklists, checkDomainBlocklists, holdsAddress } from './checks/blocklists.ts';
import { checkCertificate } from './checks/certificate.ts';
import { checkDatabase, lookForServer } from './checks/database.ts';
import { measureSpace, measureSync } from './checks/disk.ts';
import { checkDnsServers, checkValidation } from './checks/dns-servers.ts';
import { lookForReadable } from './checks/file-permissions.ts';
import { checkForwardName, checkHostname, checkPtr } from './checks/host-names.ts';
import { checkIpPools } from './checks/ip-pools-present.ts';
import { checkClock } from './checks/machine-clock.ts';
import { checkOpenFiles } from './checks/open-files.ts';
import { checkPort25 } from './checks/port-25.ts';
import { checkReturnPathDns, checkReturnPathHost } from './checks/return-path-domain.ts';
import { checkSecret } from './checks/secret-file.ts';
import { dkimTasks, recordTasks } from './checks/sender-domain.ts';
import { checkSpf } from './checks/spf.ts';
import { type Check, failure, skipped, warning } from './finding.ts';
import { maxDomains, type SharedFacts } from './shared-facts.ts';

const machine = 'this machine';

function tasksOf(subject: string, looks: Record<string, Check['look']>): Check[] {
  return Object.entries(looks).map(([check, look]) => ({ check, subject, look }));
}

export function machineTasks({ config, surroundings, now, dns, openDb }: SharedFacts): Check[] {
  const { timeServers, patience } = surroundings;
  return tasksOf(machine, {
    database: () => checkDatabase(openDb),
    server: () => lookForServer(openDb, config.dataDir),
    secret: () => checkSecret(config, openDb),
    'source pools': () => checkIpPools(openDb, poolsOf(config.mtaSources), now()),
    'disk speed': () => measureSync(config.dataDir, surroundings),
    'disk space': () => measureSpace(config, surroundings),
    'open files': () => checkOpenFiles(config, surroundings),
    'file permissions': () => lookForReadable(config, surroundings),
    clock: () => checkClock({ dns, timeServers, now, timeoutMs: patience.time }),
    certificate: () => checkCertificate(config, now()),
    'base URL': async () => {
      const db = await openDb().catch(() => null);
      return checkBaseUrl(config, db !== null && (await isTrackingAtHome(db).catch(() => false)));
    },
  });
}

export function dnsTasks({ config, surroundings, dns }: SharedFacts): Check[] {
  const { signedName, patience } = surroundings;
  return tasksOf('DNS', {
    servers: async () => checkDnsServers(await dns.servers()),
    DNSSEC: () => checkValidation({ servers: config.dnsServers, signedName, timeoutMs: patience.dns }),
  });
}

/** Our ends of connections, and the names that they give. */
export function originTasks(scene: SharedFacts): Check[] {
  const { dns, senders, origins } = scene;
  const ports = origins.map(({ origin, knocks }) => ({
    check: origin.from === undefined && origin.family === 6 ? 'port 25 by IPv6' : 'port 25',
    subject: origin.from ?? machine,
    look: async () => checkPort25(origin, await knocks),
  }));
  const names = [...new Set(origins.map(({ origin }) => origin.name))];
  return [
    ...ports,
    ...names.flatMap((name) =>
      tasksOf(name, {
        hostname: async () => checkHostname(name),
        address: async () => checkForwardName(dns, name, await senders),
      }),
    ),
    ...blockedDomain(scene, names[0]!),
  ];
}

export async function addressTasks({ dns, senders, surroundings }: SharedFacts): Promise<Check[]> {
  return (await senders).flatMap((sender) => {
    const lists = surroundings.blocklists.filter((list) => holdsAddress(list, sender.address));
    return tasksOf(sender.address, {
      PTR: () => checkPtr(dns, sender),
      ...Object.fromEntries(
        lists.map((list) => [list.name, () => checkAddressBlocklists(dns, list, sender.address)]),
      ),
    });
  });
}

export function returnTasks(scene: SharedFacts): Check[] {
  const { config, ours, senders, dns } = scene;
  const { hostname, returnPathDomain } = config;
  return [
    ...tasksOf(returnPathDomain, {
      'return path': async () => checkReturnPathDns({ ...scene, ours: await ours }),
      'returned mail': async () => checkReturnPathHost({ ...scene, ours: await ours }),
      SPF: async () => checkSpf(returnPathDomain, { dns, senders: await senders, hostname, decides: true }),
    }),
    ...(returnPathDomain === hostname ? [] : blockedDomain(scene, returnPathDomain)),
  ];
}

export async function sendingDomains(scene: SharedFacts): Promise<Check[]> {
  const found = await scene.domains.catch(() => null);
  const domains = found?.slice(0, maxDomains) ?? [];
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
    ...(found && found.length > maxDomains ? [theRest()] : []),
  ];
}

function ownSpf({ config, dns, senders }: SharedFacts, name: string): Check {
  const { hostname } = config;
  return {
    check: 'SPF',
    subject: name,
    look: async () => checkSpf(name, { dns, senders: await senders, hostname, decides: false }),
  };
}

function blockedDomain({ dns, surroundings }: SharedFacts, name: string): Check[] {
  const lists = surroundings.blocklists.filter(({ of }) => of === 'domains');
  return lists.map((list) => ({
    check: list.name,
    subject: name,
    look: () => checkDomainBlocklists(dns, list, name),
  }));
}

function noDomain({ domain }: SharedFacts, isUnknown: boolean): Check {
  const look: Check['look'] = async () => {
    if (isUnknown) return skipped('not known: the database cannot be read');
    if (domain !== null) {
      return failure(
        'not registered here',
        `postern domain add ${domain} --org ORG, then publish its records`,
      );
    }
    return warning(
      'no domain is verified, so no mail can be sent',
      'postern domain add NAME --org ORG, publish its records, then postern domain verify NAME --org ORG',
    );
  };
  return { check: 'registered', subject: domain ?? 'sender domains', look };
}

function theRest(): Check {
  return {
    check: 'the rest',
    subject: 'sender domains',
    look: async () =>
      skipped(`more than ${maxDomains} are verified`, 'check any other one with postern doctor DOMAIN'),
  };
}
