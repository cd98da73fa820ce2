/** The table of checks, in groups by subject. Each check is in a file of its own under checks/. */

import { isTrackingAtHome } from '#accounts/rows/domains-table.ts';
import { readDestinationStatuses } from '#mail/record/rows/destination-status-rows.ts';
import { listCertificates } from '#operate/certificates/rows/certificates-table.ts';
import { maxListed } from '#operate/condition/certificate-state.ts';
import { noWaysOut } from '#operate/condition/no-way-out.ts';
import { checkBackupAge } from '#operate/doctor/checks/backup-age.ts';
import { checkBaseUrl } from '#operate/doctor/checks/base-url.ts';
import { checkBlocklistReplies } from '#operate/doctor/checks/blocklist-replies.ts';
import { checkBlocklist, covers } from '#operate/doctor/checks/blocklists.ts';
import { checkBulkMail } from '#operate/doctor/checks/bulk-mail.ts';
import { checkCertificate, checkHostCertificate } from '#operate/doctor/checks/certificate.ts';
import { checkDatabase, checkServerRunning } from '#operate/doctor/checks/database.ts';
import { checkDiskSpace, checkDiskSpeed } from '#operate/doctor/checks/disk.ts';
import { checkDnsServers, checkValidation } from '#operate/doctor/checks/dns-servers.ts';
import { checkFilePermissions } from '#operate/doctor/checks/file-permissions.ts';
import { checkFreePorts } from '#operate/doctor/checks/free-ports.ts';
import { checkForwardName, checkHostname, checkPtr } from '#operate/doctor/checks/host-names.ts';
import { checkIpPools } from '#operate/doctor/checks/ip-pools-present.ts';
import { checkClock } from '#operate/doctor/checks/machine-clock.ts';
import { checkNoticesSender } from '#operate/doctor/checks/notices-sender.ts';
import { checkOpenFiles } from '#operate/doctor/checks/open-files.ts';
import { checkAutoPauses } from '#operate/doctor/checks/pauses-in-force.ts';
import { checkPort25 } from '#operate/doctor/checks/port-25.ts';
import { checkReturnPathDns, checkReturnPathHost } from '#operate/doctor/checks/return-path-domain.ts';
import { checkSecret } from '#operate/doctor/checks/secret-file.ts';
import { dkimChecks, recordChecks } from '#operate/doctor/checks/sender-domain.ts';
import { checkSpf } from '#operate/doctor/checks/spf.ts';
import { checkFeedbackLoops, senderRuleChecks } from '#operate/sender-rules/check-sender-rules.ts';
import { type DoctorContext, maxDomains } from './doctor-context.ts';
import { type Check, failure, skipped, warning } from './finding.ts';

const machine = 'this server';

function checksOf(subject: string, checks: Record<string, Check['run']>): Check[] {
  return Object.entries(checks).map(([check, run]) => ({ check, subject, run }));
}

export function machineChecks(context: DoctorContext): Check[] {
  const { config, surroundings, now, openDb } = context;
  return checksOf(machine, {
    database: () => checkDatabase(openDb),
    server: () => checkServerRunning(openDb, config.dataDir),
    'secret key': () => checkSecret(config, openDb),
    'source addresses': () => checkIpPools(context),
    'blocklists named in replies': () => checkBlocklistReplies(context),
    'one-click unsubscribe': () => checkBulkMail(openDb),
    'auto-pauses': () => checkAutoPauses(openDb),
    'feedback loops': () => checkFeedbackLoops(context),
    'disk speed': () => checkDiskSpeed(config.dataDir, surroundings),
    'disk space': () => checkDiskSpace(config, surroundings),
    'open files': () => checkOpenFiles(config, surroundings),
    'file permissions': () => checkFilePermissions(config, surroundings),
    backup: () => checkBackupAge(config, now()),
    clock: () => checkClock(context),
    certificate: () => checkCertificate(config, now()),
    'base URL': async () => {
      const db = await openDb().catch(() => null);
      return checkBaseUrl(config, db !== null && (await isTrackingAtHome(db).catch(() => false)));
    },
    ...(config.noticesFrom !== null && { notices: () => checkNoticesSender(config.noticesFrom!, openDb) }),
  });
}

/** The certificates that the server gets itself. */
export async function certificateChecks({ config, now, openDb }: DoctorContext): Promise<Check[]> {
  const db = config.acme === null ? null : await openDb().catch(() => null);
  // An old schema, which the check of the database reports, has no such table.
  const rows =
    db === null ? [] : await listCertificates(db, { now: now(), limit: maxListed }).catch(() => []);
  return rows.flatMap((row) =>
    checksOf(row.host, { certificate: async () => checkHostCertificate(row, config, now()) }),
  );
}

/** The checks of the machine that need neither a data directory nor a server. */
export function setUpChecks(context: DoctorContext, isRunning: boolean): Check[] {
  return checksOf(machine, {
    clock: () => checkClock(context),
    ...(!isRunning && { 'free ports': () => checkFreePorts(context.config) }),
  });
}

export function dnsChecks(context: DoctorContext): Check[] {
  return checksOf('DNS', {
    servers: async () => checkDnsServers(await context.dns.servers()),
    DNSSEC: () => checkValidation(context),
  });
}

/** The source addresses of our connections, and the names that we give in EHLO. */
export function originChecks(context: DoctorContext): Check[] {
  const { dns, senders, origins } = context;
  const ports = origins.map(({ origin, results }) => ({
    check: origin.from === undefined && origin.family === 6 ? 'port 25 by IPv6' : 'port 25',
    subject: origin.from ?? machine,
    run: async () => {
      const found = await results;
      return checkPort25(origin, found, found.length === 0 ? await silentHosts(context) : 0);
    },
  }));
  const names = [...new Set(origins.map(({ origin }) => origin.name))];
  return [
    ...ports,
    ...names.flatMap((name) =>
      checksOf(name, {
        hostname: async () => checkHostname(name),
        address: async () => checkForwardName(dns, name, await senders),
      }),
    ),
    ...blocklistChecks(context, names[0]!),
  ];
}

/** As `no_way_out` of the status. */
async function silentHosts({ openDb, now }: DoctorContext): Promise<number> {
  const db = await openDb().catch(() => null);
  const statuses = db && (await readDestinationStatuses(db, now()).catch(() => null));
  const shut = statuses && noWaysOut(statuses.silent).find(({ cause }) => cause === 'port');
  return shut?.destinations.size ?? 0;
}

export async function addressChecks(context: DoctorContext): Promise<Check[]> {
  return (await context.senders).flatMap((sender) => [
    ...checksOf(sender.address, { PTR: () => checkPtr(context.dns, sender) }),
    ...blocklistChecks(context, sender.address),
  ]);
}

export function returnPathChecks(context: DoctorContext): Check[] {
  const { hostname, returnPathDomain } = context.config;
  return [
    ...checksOf(returnPathDomain, {
      'return path': () => checkReturnPathDns(context),
      'returned mail': () => checkReturnPathHost(context),
      SPF: () => checkSpf(context),
    }),
    ...(returnPathDomain === hostname ? [] : blocklistChecks(context, returnPathDomain)),
  ];
}

export async function senderDomainChecks(context: DoctorContext): Promise<Check[]> {
  const found = await context.domains.catch(() => null);
  const domains = found?.slice(0, maxDomains) ?? [];
  const names = [...new Set(domains.map(({ name }) => name))];
  const { hostname, returnPathDomain } = context.config;
  return [
    ...(domains.length === 0 ? [noDomainCheck(context, found === null)] : []),
    ...names.flatMap((name) => {
      const records = domains.filter((domain) => domain.name === name);
      return [
        ...records.flatMap((domain) => dkimChecks(domain, context)),
        ...recordChecks(records[0]!, context),
        ...([hostname, returnPathDomain].includes(name) ? [] : blocklistChecks(context, name)),
      ];
    }),
    ...senderRuleChecks(domains, context),
    ...(found && found.length > maxDomains ? [tooManyDomainsCheck] : []),
  ];
}

/** `subject`: an address or a domain. */
function blocklistChecks({ dns, surroundings }: DoctorContext, subject: string): Check[] {
  const lists = surroundings.blocklists.filter((list) => covers(list, subject));
  return lists.map((list) => ({ check: list.name, subject, run: () => checkBlocklist(dns, list, subject) }));
}

function noDomainCheck({ domain }: DoctorContext, isUnknown: boolean): Check {
  const run: Check['run'] = async () => {
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
  return { check: 'registered', subject: domain ?? 'sender domains', run };
}

const tooManyDomainsCheck: Check = {
  check: 'the rest',
  subject: 'sender domains',
  run: async () =>
    skipped(`more than ${maxDomains} are verified`, 'check any other one with postern doctor DOMAIN'),
};
