/** Resend's domains and API keys. A domain's id is its name or our id. */
import { z } from 'zod';
import type { CheckedRecord } from '#accounts/check-records.ts';
import { findManagedKey, makeKey } from '#accounts/create-key.ts';
import { registerDomain, verifyDomain } from '#accounts/domain-registration.ts';
import { type DnsRecord, recordsFor } from '#accounts/domains.ts';
import {
  type DomainRecord,
  deleteDomain,
  listDomains,
  setDomainTls,
  setDomainTracking,
} from '#accounts/rows/domains-table.ts';
import { type KeyRecord, listKeys, revokeKey } from '#accounts/rows/keys.ts';
import { newDomain } from '#front/api/domains/schema.ts';
import { oneLine } from '#front/api/management.ts';
import { type DialectCall, type DialectRoute, requireById, requireItem } from '#front/dialects/dialect.ts';
import { noBody, smallJson } from '#front/http/body-limits.ts';
import { checked } from '#front/http/issues.ts';
import { iso, isoOrNull } from '#platform/base/clock.ts';
import { listOf, pageOf } from './resend-lists.ts';

const grant = 'full_access';

export const resendSetUpRoutes: DialectRoute[] = [
  { route: 'POST /domains', grant, body: smallJson, respond: addDomain },
  {
    route: 'GET /domains',
    grant,
    respond: async (call) => listOf(call, await listDomains(call.db, call.orgId), domainFields),
  },
  {
    route: 'GET /domains/:id',
    grant,
    respond: async (call) => presentDomain(call, await findDomain(call)),
  },
  { route: 'PATCH /domains/:id', grant, body: smallJson, respond: changeDomain },
  { route: 'DELETE /domains/:id', grant, body: noBody, respond: removeDomain },
  { route: 'POST /domains/:id/verify', grant, body: noBody, respond: checkDomain },
  { route: 'POST /api-keys', grant, manages: 'keys', body: smallJson, respond: addKey },
  {
    route: 'GET /api-keys',
    grant,
    manages: 'keys',
    // The oldest first, as `after` of our own list is.
    respond: (call) =>
      pageOf(call, (page) => listKeys(call.db, call.orgId, page, call.caller.isTest), presentKey),
  },
  { route: 'DELETE /api-keys/:id', grant, manages: 'keys', body: noBody, respond: removeKey },
];

const settings = z.object({
  open_tracking: z.boolean().nullish(),
  click_tracking: z.boolean().nullish(),
  tls: z.enum(['enforced', 'opportunistic']).nullish(),
});

async function addDomain(call: DialectCall) {
  const { name, ...given } = checked(newDomain.extend(settings.shape), call.body);
  const { db, orgId, seal, now } = call;
  const { id } = await registerDomain(db, { orgId, name }, { seal, now, requestedBy: 'owner' });
  await applySettings(call, id, given);
  call.context.status = 201;
  return presentDomain(call, await findDomain({ ...call, params: { id } }));
}

async function applySettings({ db }: DialectCall, id: string, given: z.output<typeof settings>) {
  const { open_tracking: opens, click_tracking: clicks, tls } = given;
  if (opens != null || clicks != null)
    await setDomainTracking(db, id, { ...(opens != null && { opens }), ...(clicks != null && { clicks }) });
  if (tls != null) await setDomainTls(db, id, tls === 'enforced' ? 'encrypted' : 'opportunistic');
}

async function findDomain({ db, orgId, params }: DialectCall): Promise<DomainRecord> {
  const domains = await listDomains(db, orgId);
  const name = params.id!.toLowerCase();
  return requireItem(domains.find((one) => one.id === name || one.name === name) ?? null, 'domain');
}

function domainFields({ id, name, status, receives, createdAt }: DomainRecord) {
  return {
    id,
    name,
    status: status === 'verified' ? 'verified' : 'pending',
    created_at: iso(createdAt),
    region: 'us-east-1',
    capabilities: { sending: 'enabled', receiving: receives ? 'enabled' : 'disabled' },
  };
}

function presentDomain(
  { names }: DialectCall,
  domain: DomainRecord,
  records: (DnsRecord | CheckedRecord)[] = recordsFor(domain, names),
) {
  return {
    object: 'domain',
    ...domainFields(domain),
    open_tracking: domain.openTracking,
    click_tracking: domain.clickTracking,
    records: records.map((record) => presentRecord(record, domain)),
  };
}

const recordKinds: Partial<Record<DnsRecord['purpose'], string>> = {
  dkim: 'DKIM',
  tracking: 'Tracking',
  receiving: 'Receiving',
};

function presentRecord(record: DnsRecord | CheckedRecord, domain: DomainRecord) {
  const isFound = 'ok' in record ? record.ok : isLastFound(record, domain);
  return {
    record: recordKinds[record.purpose] ?? 'SPF',
    name: record.name,
    type: record.type,
    ttl: 'Auto',
    status: isFound ? 'verified' : 'pending',
    value: record.value,
  };
}

/** The row keeps the result of the last check for the record of the return path, and for all others that of DKIM. */
function isLastFound({ purpose }: DnsRecord, domain: DomainRecord): boolean {
  return purpose === 'return_path' ? domain.returnPath === 'used' : domain.status === 'verified';
}

async function changeDomain(call: DialectCall) {
  const given = checked(settings, call.body ?? {});
  const { id } = await findDomain(call);
  await applySettings(call, id, given);
  return { object: 'domain', id };
}

async function removeDomain(call: DialectCall) {
  const domain = await findDomain(call);
  await deleteDomain(call.db, domain);
  return { object: 'domain', id: domain.id, deleted: true };
}

async function checkDomain(call: DialectCall) {
  const { db, names, resolve, keepKeysMs: keepMs, eventSignal } = call;
  const found = await findDomain(call);
  const check = { names, resolve, now: call.now, keepMs, eventSignal };
  const { domain, records } = await verifyDomain(db, found, check);
  // Resend's answer has no records. A verified domain keeps its status, so only these say that one is missing.
  return { object: 'domain', id: found.id, records: records.map((record) => presentRecord(record, domain)) };
}

const newKey = z.object({
  name: oneLine(100),
  permission: z.enum(['full_access', 'sending_access']).default('full_access'),
  domain_id: z.string().optional(),
});

async function addKey(call: DialectCall) {
  const { name: label, permission, domain_id: id } = checked(newKey, call.body);
  const domain = id === undefined ? null : await findDomain({ ...call, params: { id } });
  const scopes = permission === 'full_access' ? ['full_access'] : ['email:send'];
  if (domain) scopes.push(`domain_scope:${domain.name}`);
  const wanted = { orgId: call.orgId, label, scopes, test: call.caller.isTest };
  const made = await makeKey(call.db, wanted, call.now);
  call.context.status = 201;
  return { id: made.id, token: made.key };
}

function presentKey({ id, label, createdAt, usedAt }: KeyRecord) {
  return { id, name: label, created_at: iso(createdAt), last_used_at: isoOrNull(usedAt) };
}

async function removeKey({ db, orgId, caller, params, now }: DialectCall) {
  const { id } = await requireById(
    params.id!,
    (given) => findManagedKey(db, given, orgId, caller),
    'API key',
  );
  await revokeKey(db, id, now);
  return { object: 'api_key', id, deleted: true };
}
