/** /api/public/domains: sender domains, their DNS records, and the look at what is published. */
import type { Context } from 'koa';
import { addDomain, verifyDomain } from '../../accounts/domain-registration.ts';
import { demandedTls, dkimKeys, recordsFor } from '../../accounts/domains.ts';
import { iso, isoOrNull } from '../../base/clock.ts';
import {
  type DomainRecord,
  deleteDomain,
  findDomain,
  listDomains,
  setDomainTls,
  setDomainTracking,
} from '../../db/accounts/domains-table.ts';
import { toDomain } from '../../mail/address.ts';
import { Refusal } from '../../mail/refusal.ts';
import {
  type AddManagementRoutes,
  type Management,
  management,
  readJson,
  requireFound,
} from '../management.ts';
import { createSlotsPerOrganization } from '../server-busy.ts';
import { type DomainOut, domainChange, newDomain } from './schema.ts';

/** DNS may take some seconds. */
const maxLooks = 4;

export const addDomainRoutes: AddManagementRoutes = (router, inBounds, parts) => {
  const { db } = parts;
  router.get(
    '/domains',
    inBounds,
    management(parts, async (_, orgId) => ({ domains: (await listDomains(db, orgId)).map(present) })),
  );
  router.post(
    '/domains',
    inBounds,
    management(parts, (context, orgId) => add(context, orgId, parts), createSlotsPerOrganization(1)),
  );
  router.get(
    '/domains/:name',
    inBounds,
    management(parts, async (context, orgId) => withRecords(await domainIn(context, orgId, parts), parts)),
  );
  router.patch(
    '/domains/:name',
    inBounds,
    management(parts, (context, orgId) => change(context, orgId, parts)),
  );
  router.delete(
    '/domains/:name',
    inBounds,
    management(parts, async (context, orgId) => {
      await deleteDomain(db, (await domainIn(context, orgId, parts)).id);
      return {};
    }),
  );
  router.post(
    '/domains/:name/verify',
    inBounds,
    management(
      parts,
      (context, orgId) => verify(context, orgId, parts),
      createSlotsPerOrganization(maxLooks),
    ),
  );
};

async function domainIn(context: Context, orgId: string, { db }: Management): Promise<DomainRecord> {
  const name = toDomain(context.params.name);
  if (name === null) throw new Refusal('BAD_REQUEST', 'The name in the path is not a domain name.');
  return requireFound(await findDomain(db, orgId, name), 'domain');
}

async function add(context: Context, orgId: string, parts: Management): Promise<object> {
  const { db, seal, clock } = parts;
  const { name } = await readJson(context, newDomain);
  const added = await addDomain(db, { orgId, name }, { seal, now: clock.now() });
  if ('fault' in added) throw new Refusal('BAD_REQUEST', added.fault);
  return withRecords(added, parts);
}

async function change(context: Context, orgId: string, parts: Management): Promise<object> {
  const { db } = parts;
  const { id, name } = await domainIn(context, orgId, parts);
  const { tracking = {}, tls } = await readJson(context, domainChange);
  const { openTracking: opens, clickTracking: clicks, host } = tracking;
  if ([opens, clicks, host].some((one) => one !== undefined)) {
    const changed = { ...(opens !== undefined && { opens }), ...(clicks !== undefined && { clicks }) };
    await setDomainTracking(db, id, { ...changed, ...(host !== undefined && { host }) });
  }
  if (tls) await setDomainTls(db, id, tls);
  return withRecords(requireFound(await findDomain(db, orgId, name), 'domain'), parts);
}

async function verify(context: Context, orgId: string, parts: Management): Promise<object> {
  const { db, names, resolve, clock, keepKeysMs: keepMs } = parts;
  const domain = await domainIn(context, orgId, parts);
  const { records } = await verifyDomain(db, domain, { names, resolve, now: clock.now(), keepMs });
  return { domain: present(requireFound(await findDomain(db, orgId, domain.name), 'domain')), records };
}

function withRecords(domain: DomainRecord, { names }: Management) {
  return { domain: present(domain), records: recordsFor(domain, names) };
}

function present(domain: DomainRecord): DomainOut {
  const { id, name, status, openTracking, clickTracking, trackingHost, tls } = domain;
  return {
    id,
    name,
    status,
    tracking: { openTracking, clickTracking, host: trackingHost },
    keys: dkimKeys(domain).map(({ keepUntil, ...key }) => ({ ...key, keepUntil: isoOrNull(keepUntil) })),
    tls,
    effectiveTls: demandedTls(domain),
    createdAt: iso(domain.createdAt),
    verifiedAt: isoOrNull(domain.verifiedAt),
    checkedAt: isoOrNull(domain.checkedAt),
  };
}
