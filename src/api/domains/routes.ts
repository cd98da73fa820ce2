/** /api/public/domains: sender domains, their DNS records, and whether DNS has these records. */
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
import { jsonResponse, pathParameter } from '../endpoint.ts';
import {
  doneContent,
  invalidMember,
  jsonBody,
  type Management,
  managementEndpoints,
  notFound,
  readJson,
  requireFound,
} from '../management.ts';
import * as examples from './domain-examples.ts';
import { type DomainOut, domainChange, domainSchemas, newDomain } from './schema.ts';

const parameters = [pathParameter('name', 'The name of the domain.', 'example.com')];
const errors = {
  BAD_REQUEST: {
    when: 'The name in the path is not a domain name, or the body is not JSON.',
    message: 'The name in the path is not a domain name.',
  },
  NOT_FOUND: notFound('domain'),
};

/** A verification looks up DNS records, which can take some seconds. */
const maxVerifications = 4;

export const domainEndpoints = managementEndpoints('Domains', [
  {
    route: 'GET /domains',
    operationId: 'listDomains',
    summary: 'List domains',
    description: 'All sender domains.',
    response: jsonResponse('The domains.', domainSchemas.DomainsAnswer, 'One domain', examples.listedDomains),
    respond: async (_, orgId, { db }) => ({ domains: (await listDomains(db, orgId)).map(present) }),
  },
  {
    route: 'POST /domains',
    operationId: 'addDomain',
    summary: 'Register a domain',
    description:
      'Registers a domain to send from and creates a DKIM key for it. Publish the DNS records in the response, then ' +
      'verify the domain. An organization can have a thousand domains.',
    body: jsonBody(newDomain, 'A domain', { name: 'example.com' }),
    response: jsonResponse(
      'The domain, and the DNS records to publish.',
      domainSchemas.DomainAnswer,
      'Registered',
      examples.pendingDomain,
    ),
    errors: {
      VALIDATION_ERROR: invalidMember('name', 'string', 'undefined'),
      BAD_REQUEST: {
        when: 'The domain is already registered in the organization, or the body is not JSON.',
        message: 'The domain example.com is registered in this organization already.',
      },
    },
    respond: add,
    maxInFlight: 1,
  },
  {
    route: 'GET /domains/{name}',
    operationId: 'getDomain',
    summary: 'Show a domain',
    description: 'A domain, and the DNS records to publish for it.',
    parameters,
    response: jsonResponse(
      'The domain.',
      domainSchemas.DomainAnswer,
      'Not verified yet',
      examples.pendingDomain,
    ),
    errors,
    respond: async (context, orgId, parts) => withRecords(await requireDomain(context, orgId, parts), parts),
  },
  {
    route: 'PATCH /domains/{name}',
    operationId: 'changeDomain',
    summary: 'Change a domain',
    description: 'Sets what is tracked in email from the domain, and the TLS protection that it requires.',
    parameters,
    body: jsonBody(domainChange, 'Track opens and require TLS', examples.change),
    response: jsonResponse(
      'The changed domain.',
      domainSchemas.DomainAnswer,
      'Changed',
      examples.changedDomain,
    ),
    errors: { VALIDATION_ERROR: invalidMember('tracking', 'object', 'boolean'), ...errors },
    respond: change,
  },
  {
    route: 'DELETE /domains/{name}',
    operationId: 'removeDomain',
    summary: 'Remove a domain',
    description: 'Deletes the domain and its DKIM key. You can no longer send from it.',
    parameters,
    response: { description: 'The domain is removed.', content: doneContent },
    errors,
    async respond(context, orgId, parts) {
      await deleteDomain(parts.db, (await requireDomain(context, orgId, parts)).id);
      return {};
    },
  },
  {
    route: 'POST /domains/{name}/verify',
    operationId: 'verifyDomain',
    summary: 'Verify a domain',
    description:
      'Looks up the DNS records. The domain is verified when its DKIM record is found. If DNS gives no answer, the status ' +
      'does not change.',
    parameters,
    response: jsonResponse(
      'The domain, and the records that were found.',
      domainSchemas.VerifyAnswer,
      'DKIM was found',
      examples.verifiedDomain,
    ),
    errors,
    respond: verify,
    maxInFlight: maxVerifications,
  },
]);

async function requireDomain(context: Context, orgId: string, { db }: Management): Promise<DomainRecord> {
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
  const { id, name } = await requireDomain(context, orgId, parts);
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
  const domain = await requireDomain(context, orgId, parts);
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
