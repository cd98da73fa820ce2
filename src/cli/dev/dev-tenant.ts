/** The contents of a new development server: an organization without limits, a verified domain, a test key, a user. */
import { makeKey } from '#accounts/create-key.ts';
import { makeOrganization } from '#accounts/create-organization.ts';
import { registerDomain, verifyDomain } from '#accounts/domain-registration.ts';
import { recordsFor } from '#accounts/domains.ts';
import { makeLink } from '#accounts/people/one-time-links.ts';
import { invite } from '#accounts/people/people.ts';
import { findDomain, listDomains } from '#accounts/rows/domains-table.ts';
import {
  findOrganization,
  findOrganizationByName,
  listOrganizations,
  setLimits,
} from '#accounts/rows/organizations.ts';
import { createSeal } from '#accounts/seal.ts';
import { Failure } from '#cli/failure.ts';
import { createResolver } from '#mail/deliver/route/resolver.ts';
import { openSecrets } from '#platform/base/secrets.ts';
import type { Db } from '#platform/database/engine/open.ts';
import type { Config } from '#platform/settings/config.ts';
import { testDomain } from '#platform/values/test-route.ts';
import { type DevState, readState, writeState } from './dev-directory.ts';
import type { PublishedRecord } from './dev-dns.ts';

export interface DevTenant extends DevState {
  /** Signs a browser in, as often as it is opened. */
  signInPath: string;
}

export async function prepareTenant(
  db: Db,
  { config, domain, now }: { config: Config; domain: string; now: number },
): Promise<DevTenant> {
  const known = readState(config.dataDir);
  const isKnown = known !== null && (await findOrganization(db, known.orgId)) !== null;
  const state = isKnown ? known : await makeTenant(db, config.dataDir, now);
  await addDomain(db, { config, orgId: state.orgId, name: domain, now });
  const member = { orgId: state.orgId, role: 'owner' } as const;
  const person = { email: `developer@${testDomain}`, name: 'Developer', isOperator: true, member };
  const { userId } = await invite(db, person, now);
  const { path } = await makeLink(db, { purpose: 'sign-in', userId }, now);
  return { ...state, signInPath: path };
}

async function makeTenant(db: Db, directory: string, now: number): Promise<DevState> {
  const name = 'Development';
  // A run that was killed early may have made it.
  const { id: orgId } =
    (await findOrganizationByName(db, name)) ?? (await makeOrganization(db, { name }, now));
  await setLimits(db, orgId, { requestsPerSecond: null, requestsPerDay: null, emailsPerDay: null });
  const scopes = ['full_access'];
  const { key } = await makeKey(db, { orgId, label: 'postern dev', scopes, test: true }, now);
  const state = { orgId, key };
  writeState(directory, state);
  return state;
}

interface WantedDomain {
  config: Config;
  orgId: string;
  name: string;
  now: number;
}

async function addDomain(db: Db, { config, orgId, name, now }: WantedDomain): Promise<void> {
  const known = await findDomain(db, orgId, name);
  if (known?.status === 'verified') return;
  const seal = createSeal(openSecrets(config));
  const domain = known ?? (await registerDomain(db, { orgId, name }, { seal, now }));
  const resolve = createResolver(config.dnsServers);
  const check = await verifyDomain(db, domain, { names: config, resolve, now, keepMs: config.mtaMaxAge });
  if (check.domain.status !== 'verified') throw new Failure(`the domain ${name} could not be verified`);
}

/** The DNS records of all domains, as if they were published. */
export async function publishedRecords(db: Db, config: Config): Promise<PublishedRecord[]> {
  const organizations = await listOrganizations(db);
  const domains = await Promise.all(organizations.map(({ id }) => listDomains(db, id)));
  return domains.flat().flatMap((domain) => recordsFor(domain, config));
}
