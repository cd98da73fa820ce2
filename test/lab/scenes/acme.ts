/**
 * A server with an organization "Acme" and eight days of its mail, for screenshots. The mail is sent through the API and
 * delivered to MX hosts on loopback, which a DNS server on loopback names, while the clock is advanced from hour to hour. Only
 * users, keys and limits are put into the database directly.
 */
import { join } from 'node:path';
import { makeKey } from '#accounts/create-key.ts';
import { makeOrganization } from '#accounts/create-organization.ts';
import { registerDomain } from '#accounts/domain-registration.ts';
import { recordsFor } from '#accounts/domains.ts';
import { createPasswords } from '#accounts/people/passwords.ts';
import type { Role } from '#accounts/people/roles.ts';
import { setDomainStatus, setDomainTracking } from '#accounts/rows/domains-table.ts';
import { setMembership } from '#accounts/rows/memberships.ts';
import { setLimits } from '#accounts/rows/organizations.ts';
import { changeUser, insertUser } from '#accounts/rows/users.ts';
import { createSeal } from '#accounts/seal.ts';
import { wellKnownBlocklists } from '#operate/doctor/checks/blocklists.ts';
import { createLog } from '#platform/base/log.ts';
import { loadSecrets } from '#platform/base/secrets.ts';
import { type Db, openDatabase } from '#platform/database/engine/open.ts';
import type { Config } from '#platform/settings/config.ts';
import { start } from '#server/start.ts';
import { password } from '../browser/browser.ts';
import { type ManualClock, manualClock } from '../clock.ts';
import { type Dns, startDns, type Zone } from '../dns/dns.ts';
import { freePort } from '../load/ports.ts';
import type { Stage } from '../load/stage.ts';
import { type Mx, startMxs } from '../mx/mx.ts';
import { hosts } from './acme-mail.ts';
import { testConfig } from './world.ts';

const hostname = 'mail.example.net';
const returnPathDomain = 'bounces.example.net';
export const days = 8;

export interface Acme {
  url: string;
  orgId: string;
  key: string;
  /** The operator's email address. */
  email: string;
  config: Config;
  db: Db;
  clock: ManualClock;
}

export async function startAcme(stage: Stage): Promise<Acme> {
  const mxs = await stage.start(
    startMxs(
      hosts
        .filter(({ script }) => script)
        .map(({ address, name, script }) => ({ host: address, hostname: `mx.${name}`, script: script! })),
    ),
    (all) => Promise.all(all.map((one) => one.close())),
  );
  const dns = await stage.start(startDns(zone()), (it) => it.close());
  const config = await configure(stage, dns, mxs[0]!);
  const clock = manualClock(Date.now() - days * 86_400_000);
  const surroundings = {
    probes: hosts.slice(0, 2).map(({ name }) => name),
    signedName: 'signed.example',
    timeServers: [],
    ownAddresses: () => ['127.0.0.1'],
    returnPort: config.inboundPort ?? 25,
  };
  const overrides = { clock, random: () => 0.5, passwordCost, surroundings, log: createLog(config) };
  const postern = await stage.start(start(config, overrides), (it) => it.stop());
  const db = await stage.start(openDatabase(config), (it) => it.destroy());
  const { id: orgId } = await makeOrganization(db, { name: 'Acme', quota: 5000, wallet: 2500 }, clock.now());
  await setLimits(db, orgId, { requestsPerSecond: 25, requestsPerDay: 20_000, emailsPerDay: 5000 });
  const scene = { db, dns, config, clock, orgId };
  await addDomains(scene);
  const email = await addPeople(scene);
  const { key } = await addKeys(scene);
  return { url: postern.url, orgId, key, email, config, db, clock };
}

type Scene = Pick<Acme, 'db' | 'config' | 'clock' | 'orgId'> & { dns: Dns };

const passwordCost = { N: 2, r: 1, p: 1 };

/** DNS records that do not depend on keys. */
function zone(): Zone {
  const listed = { A: ['127.0.0.2'] };
  return {
    ...Object.fromEntries(hosts.map(({ name }) => [name, { MX: [`10 mx.${name}`] }])),
    ...Object.fromEntries(hosts.map(({ name, address }) => [`mx.${name}`, { A: [address] }])),
    ...Object.fromEntries(wellKnownBlocklists.map((list) => [`${list.testEntry}.${list.zone}`, listed])),
    [hostname]: { A: ['127.0.0.1'] },
    [returnPathDomain]: { MX: [`10 ${hostname}`], TXT: [`v=spf1 a:${hostname} -all`] },
    [`example.com._report._dmarc.${returnPathDomain}`]: { TXT: ['v=DMARC1'] },
    '1.0.0.127.in-addr.arpa': { PTR: [hostname] },
    'signed.example': { A: ['192.0.2.1'], secure: true },
    'hooks.example.com': { A: ['127.0.0.1'] },
    'crm.example.com': { A: ['127.0.0.1'] },
  };
}

async function configure(stage: Stage, dns: Dns, mx: Mx): Promise<Config> {
  const where = { dataDir: join(stage.directory, 'postern'), databaseUrl: null, dns, mtaPort: mx.port };
  return testConfig(where, {
    POSTERN_HOSTNAME: hostname,
    POSTERN_RETURN_PATH_DOMAIN: returnPathDomain,
    POSTERN_INBOUND_PORT: String(await freePort('127.0.0.1')),
    POSTERN_WEBHOOK_ALLOW_PRIVATE: 'true',
  });
}

/** One domain whose records are found, and one whose records are not published. */
async function addDomains({ db, dns, config, clock, orgId }: Scene): Promise<void> {
  const terms = { seal: createSeal(loadSecrets(config)), now: clock.now() };
  const domain = (await registerDomain(db, { orgId, name: 'example.com' }, terms))!;
  await setDomainStatus(db, domain.id, 'verified', clock.now());
  const tracking = { opens: true, clicks: true, host: 'links.example.com' };
  await setDomainTracking(db, domain.id, tracking);
  const records = recordsFor({ ...domain, trackingHost: tracking.host }, config);
  const own = records.filter(({ name }) => name.endsWith('example.com'));
  dns.set(Object.fromEntries(own.map(({ name, type, value }) => [name, { [type]: [value] }])));
  await registerDomain(db, { orgId, name: 'news.example.org' }, terms);
}

/** Returns the operator's address. */
async function addPeople({ db, clock, orgId }: Scene): Promise<string> {
  const passwordHash = await createPasswords(passwordCost).hash(password, 'test');
  const people: [name: string, role: Role | null, signsIn: boolean][] = [
    ['Olga Berg', null, true],
    ['Ann Lee', 'owner', true],
    ['Ben Ortiz', 'developer', true],
    ['Carla Rossi', 'developer', false],
    ['David Kim', 'viewer', true],
  ];
  const emails: string[] = [];
  for (const [name, role, signsIn] of people) {
    const email = `${name.split(' ')[0]!.toLowerCase()}@example.com`;
    const id = (await insertUser(db, { email, name, isOperator: role === null }, clock.now()))!;
    if (signsIn) await changeUser(db, id, { passwordHash });
    if (role !== null) await setMembership(db, { userId: id, orgId, role }, clock.now());
    emails.push(email);
  }
  return emails[0]!;
}

async function addKeys({ db, clock, orgId }: Scene) {
  const add = (label: string, scopes: string[]) => makeKey(db, { orgId, label, scopes }, clock.now());
  await add('reports', ['email:read']);
  await add('website, staging', ['email:send', 'domain_scope:example.com']);
  return add('shop, production', ['full_access']);
}
