/** /api/public/domains: sender domains, their DNS records, and whether DNS has these records. */
import { switchReceiving } from '#accounts/domain-receiving.ts';
import { registerDomain, verifyDomain } from '#accounts/domain-registration.ts';
import { changeTracking } from '#accounts/domain-tracking.ts';
import { demandedTls, dkimKeys, type Names, recordsFor } from '#accounts/domains.ts';
import {
  type DomainRecord,
  deleteDomain,
  findDomain,
  listDomains,
  setDomainTls,
} from '#accounts/rows/domains-table.ts';
import { returnPathInUse } from '#accounts/rows/return-paths.ts';
import { pathParameter } from '#front/api/endpoint.ts';
import { answer, doneAnswer, requireFound, resource } from '#front/api/management.ts';
import { noBody } from '#front/http/body-limits.ts';
import { iso, isoOrNull } from '#platform/base/clock.ts';
import { toDomain } from '#platform/values/address.ts';
import { domainChange, domainSchemas, newDomain } from './schema.ts';

const domains = resource('Domains', {
  noun: 'domain',
  parameter: pathParameter('name', 'The name of the domain.', 'example.com'),
  invalid: 'The name in the path is not a domain name.',
  parse: toDomain,
  find: findDomain,
});
const { DomainAnswer, DomainsAnswer, VerifyAnswer } = domainSchemas;

/** A verification looks up DNS records, which can take some seconds. */
const maxVerifications = 4;

export const domainEndpoints = [
  domains.collection({
    route: 'GET /domains',
    operationId: 'listDomains',
    summary: 'List domains',
    description: 'All sender domains.',
    response: answer('The domains.', DomainsAnswer),
    respond: async ({ db, orgId }) => ({ domains: (await listDomains(db, orgId)).map(present) }),
  }),
  domains.collection({
    route: 'POST /domains',
    operationId: 'addDomain',
    summary: 'Register a domain',
    description:
      'Registers a domain to send from and creates a DKIM key for it. Publish the DNS records in the response, then ' +
      'verify the domain. An organization can have a thousand domains.',
    body: newDomain,
    response: answer('The domain, and the DNS records to publish.', DomainAnswer),
    errors: {
      VALIDATION_ERROR: true,
      BAD_REQUEST: 'The domain is already registered in the organization, or the body is not JSON.',
    },
    maxInFlight: 1,
    async respond({ db, orgId, body, seal, now, names }) {
      const domain = await registerDomain(
        db,
        { orgId, name: body.name },
        { seal, now, requestedBy: 'owner' },
      );
      return withRecords(domain, names);
    },
  }),
  domains.item({
    route: 'GET /domains/{name}',
    operationId: 'getDomain',
    summary: 'Show a domain',
    description: 'A domain, and the DNS records to publish for it.',
    response: answer('The domain.', DomainAnswer),
    respond: async ({ found, names }) => withRecords(found, names),
  }),
  domains.item({
    route: 'PATCH /domains/{name}',
    operationId: 'changeDomain',
    summary: 'Change a domain',
    description:
      'Sets what is tracked in email from the domain, the TLS protection that it requires, and whether it receives email. Its ' +
      'MX record is then among the records to publish. Of several organizations, only one receives the email for a domain.',
    body: domainChange,
    response: answer('The changed domain.', DomainAnswer),
    errors: {
      VALIDATION_ERROR: true,
      BAD_REQUEST:
        'The name is not a domain name, the body is not JSON, the domain cannot receive email, or the tracking host is in a domain of another organization.',
    },
    async respond({ db, orgId, found, body: { tracking = {}, tls, receives }, names }) {
      // The changes that can be refused come first.
      if (receives !== undefined) await switchReceiving(db, found, receives, names);
      const { openTracking: opens, clickTracking: clicks, host } = tracking;
      if ([opens, clicks, host].some((one) => one !== undefined)) {
        const change = { ...(opens !== undefined && { opens }), ...(clicks !== undefined && { clicks }) };
        await changeTracking(db, { id: found.id, orgId }, { ...change, ...(host !== undefined && { host }) });
      }
      if (tls) await setDomainTls(db, found.id, tls);
      return withRecords(requireFound(await findDomain(db, orgId, found.name), 'domain'), names);
    },
  }),
  domains.item({
    route: 'DELETE /domains/{name}',
    body: noBody,
    operationId: 'removeDomain',
    summary: 'Remove a domain',
    description: 'Deletes the domain and its DKIM key. You can no longer send from it.',
    response: doneAnswer('The domain is removed.'),
    async respond({ db, found }) {
      await deleteDomain(db, found);
      return {};
    },
  }),
  domains.item({
    route: 'POST /domains/{name}/verify',
    body: noBody,
    operationId: 'verifyDomain',
    summary: 'Verify a domain',
    description:
      'Looks up the DNS records. A pending domain is verified when its DKIM record is found. A verified domain stays verified; ' +
      'a record with `ok: false` is missing or wrong.',
    response: answer('The domain, and the records that were found.', VerifyAnswer),
    maxInFlight: maxVerifications,
    async respond({ db, found, names, resolve, now, keepKeysMs: keepMs, eventSignal }) {
      const { domain, records } = await verifyDomain(db, found, { names, resolve, now, keepMs, eventSignal });
      return { domain: present(domain), records };
    },
  }),
];

function withRecords(domain: DomainRecord, names: Names) {
  return { domain: present(domain), records: recordsFor(domain, names) };
}

function present(domain: DomainRecord) {
  const { id, name, status, openTracking, clickTracking, trackingHost, tls, receives } = domain;
  return {
    id,
    name,
    status,
    tracking: { openTracking, clickTracking, host: trackingHost },
    keys: dkimKeys(domain).map(({ keepUntil, ...key }) => ({ ...key, keepUntil: isoOrNull(keepUntil) })),
    returnPath: returnPathInUse(domain),
    tls,
    effectiveTls: demandedTls(domain),
    receives,
    mxMissingSince: isoOrNull(domain.mxMissingSince),
    createdAt: iso(domain.createdAt),
    verifiedAt: isoOrNull(domain.verifiedAt),
    checkedAt: isoOrNull(domain.checkedAt),
    failingSince: isoOrNull(domain.failingSince),
  };
}
