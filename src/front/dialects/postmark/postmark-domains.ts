/**
 * Postmark's sender domains. Its SDKs call them with the account's token, which is the same key here. The name of the return
 * path under the domain is given, and its CNAME leads to the server's.
 */
import { z } from 'zod';
import { missingRecords } from '#accounts/check-records.ts';
import { addKeys, algorithmsOf } from '#accounts/dkim-rotation.ts';
import { registerDomain, verifyDomain } from '#accounts/domain-registration.ts';
import { dkimRecord, recordsFor } from '#accounts/domains.ts';
import { type DomainRecord, deleteDomain, listDomains } from '#accounts/rows/domains-table.ts';
import { returnPathOf } from '#accounts/rows/return-paths.ts';
import type { DialectCall, DialectRoute } from '#front/dialects/dialect.ts';
import { noBody, smallJson } from '#front/http/body-limits.ts';
import { checked } from '#front/http/issues.ts';
import { toDomain } from '#platform/values/address.ts';
import { trimBlanks, withoutHidden } from '#platform/values/hidden-characters.ts';
import { Refusal } from '#platform/values/refusal.ts';
import { findByNumber, numberOf } from './postmark-ids.ts';
import { pageOf } from './postmark-query.ts';

const grant = 'full_access';

export const postmarkDomainRoutes: DialectRoute[] = [
  { route: 'GET /domains', grant, respond: list },
  { route: 'POST /domains', grant, body: smallJson, respond: add },
  { route: 'GET /domains/:id', grant, respond: async (call) => details(call, await find(call)) },
  { route: 'PUT /domains/:id', grant, body: smallJson, respond: change },
  { route: 'DELETE /domains/:id', grant, body: noBody, respond: remove },
  { route: 'PUT /domains/:id/verifyDkim', grant, body: noBody, respond: verify },
  { route: 'PUT /domains/:id/verifyReturnPath', grant, body: noBody, respond: verify },
  { route: 'POST /domains/:id/verifySpf', grant, body: noBody, respond: verify },
  { route: 'POST /domains/:id/rotateDkim', grant, body: noBody, respond: rotate },
];

async function list(call: DialectCall) {
  const { count, offset } = pageOf(call.context, {});
  const domains = await listDomains(call.db, call.orgId);
  const page = domains.slice(offset, offset + count);
  return { TotalCount: domains.length, Domains: page.map(summary) };
}

async function find({ db, orgId, params }: DialectCall): Promise<DomainRecord> {
  return findByNumber(await listDomains(db, orgId), params.id!, 'domain');
}

/** SPF is that of the return path: no record at the domain itself counts. */
function summary({ id, name, status, returnPath }: DomainRecord) {
  return {
    ID: numberOf(id),
    Name: name,
    SPFVerified: returnPath === 'used',
    DKIMVerified: status === 'verified',
    WeakDKIM: false,
    ReturnPathDomainVerified: returnPath === 'used',
  };
}

/** A key that mail is not signed with yet is pending, as is one whose record is missing: that of a new domain, first of all. */
function details({ names }: DialectCall, domain: DomainRecord, isMissing = domain.status !== 'verified') {
  const first = recordsFor(domain, names).find(({ purpose }) => purpose === 'dkim')!;
  const recordOf = (wanted: string) => {
    const key = domain.otherKeys.find(({ status, algorithm }) => status === wanted && algorithm === 'rsa');
    return key && dkimRecord(domain.name, key);
  };
  const current = domain.status === 'verified' ? first : undefined;
  const pending = isMissing ? first : recordOf('pending');
  const revoked = recordOf('retired');
  return {
    ...summary(domain),
    SPFHost: '',
    SPFTextValue: '',
    DKIMHost: current?.name ?? '',
    DKIMTextValue: current?.value ?? '',
    DKIMPendingHost: pending?.name ?? '',
    DKIMPendingTextValue: pending?.value ?? '',
    DKIMRevokedHost: revoked?.name ?? '',
    DKIMRevokedTextValue: revoked?.value ?? '',
    SafeToRemoveRevokedKeyFromDNS: false,
    DKIMUpdateStatus: pending ? 'Pending' : 'Verified',
    ReturnPathDomain: returnPathOf(domain.name) ?? '',
    ReturnPathDomainCNAMEValue: names.returnPathDomain,
  };
}

const name = z
  .string()
  .overwrite(trimBlanks)
  .refine((text) => toDomain(text) !== null, {
    error: ({ input }) => `must be a domain name${withoutHidden(input as string)}`,
  });

async function add(call: DialectCall) {
  const { Name } = checked(z.object({ Name: name }), call.body);
  checkReturnPath(call, toDomain(Name)!);
  const { db, seal } = call;
  const wanted = { orgId: call.orgId, name: toDomain(Name)! };
  const domain = await registerDomain(db, wanted, { seal, now: call.now, requestedBy: 'owner' });
  return details(call, domain);
}

/** There is nothing else that Postmark's domains can change. */
async function change(call: DialectCall) {
  const domain = await find(call);
  checkReturnPath(call, domain.name);
  return details(call, domain);
}

function checkReturnPath({ body }: DialectCall, domain: string): void {
  const { ReturnPathDomain: given } = checked(
    z.object({ ReturnPathDomain: z.string().nullish() }),
    body ?? {},
  );
  const own = returnPathOf(domain);
  if (!given || given.toLowerCase() === own) return;
  throw new Refusal('BAD_REQUEST', `The ReturnPathDomain of ${domain} can only be ${own}. Leave it out.`);
}

async function remove(call: DialectCall) {
  const domain = await find(call);
  await deleteDomain(call.db, domain);
  return { ErrorCode: 0, Message: `The domain ${domain.name} is deleted.` };
}

async function verify(call: DialectCall) {
  const { db, names, resolve, keepKeysMs: keepMs, eventSignal } = call;
  const check = { names, resolve, now: call.now, keepMs, eventSignal };
  const { domain, records } = await verifyDomain(db, await find(call), check);
  return details(call, domain, domain.status !== 'verified' || missingRecords(records).length > 0);
}

async function rotate(call: DialectCall) {
  const { db, seal } = call;
  const domain = await find(call);
  await addKeys(db, domain, algorithmsOf(domain), { seal, now: call.now });
  return details(call, await find(call));
}
