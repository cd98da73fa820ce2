/**
 * Postmark's sender domains. Its SDKs call them with the account's token, which is the same key here. The return path is the
 * server's: one MX record serves all domains, and no CNAME.
 */
import { z } from 'zod';
import { type CheckedRecord, checkRecords } from '../../accounts/check-records.ts';
import { addKeys, algorithmsOf } from '../../accounts/dkim-rotation.ts';
import { registerDomain, verifyDomain } from '../../accounts/domain-registration.ts';
import { dkimRecord, type RecordPurpose, recordsFor } from '../../accounts/domains.ts';
import { noBody, smallJson } from '../../api/body-limits.ts';
import { checked } from '../../api/issues.ts';
import { type DomainRecord, deleteDomain, listDomains } from '../../db/accounts/domains-table.ts';
import { toDomain } from '../../mail/address.ts';
import { Refusal } from '../../mail/refusal.ts';
import type { DialectCall, DialectRoute } from '../dialect.ts';
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
  const [first] = page;
  const hasReturnPath =
    first !== undefined && isOk(await lookUp(call, first, ['return_path']), 'return_path');
  return {
    TotalCount: domains.length,
    Domains: page.map((domain) => summary(domain, { hasReturnPath, hasSpf: false })),
  };
}

async function find({ db, orgId, params }: DialectCall): Promise<DomainRecord> {
  return findByNumber(await listDomains(db, orgId), params.id!, 'domain');
}

/** No row keeps the results of these checks. The return path is the same for all domains. */
async function lookUp({ names, resolve }: DialectCall, domain: DomainRecord, purposes: RecordPurpose[]) {
  const wanted = recordsFor(domain, names).filter(({ purpose }) => purposes.includes(purpose));
  return checkRecords(wanted, resolve);
}

function isOk(records: CheckedRecord[], wanted: RecordPurpose): boolean {
  return records.some(({ purpose, ok }) => purpose === wanted && ok);
}

function summary({ id, name, status }: DomainRecord, found: { hasReturnPath: boolean; hasSpf: boolean }) {
  return {
    ID: numberOf(id),
    Name: name,
    SPFVerified: found.hasSpf,
    DKIMVerified: status === 'verified',
    WeakDKIM: false,
    ReturnPathDomainVerified: found.hasReturnPath,
  };
}

/** A key that mail is not signed with yet is pending, as is the first one of a new domain. */
async function details(call: DialectCall, domain: DomainRecord, checked?: CheckedRecord[]) {
  const { names } = call;
  const records = checked ?? (await lookUp(call, domain, ['spf', 'return_path']));
  const spf = records.find(({ purpose }) => purpose === 'spf')!;
  const first = recordsFor(domain, names).find(({ purpose }) => purpose === 'dkim')!;
  const recordOf = (wanted: string) => {
    const key = domain.otherKeys.find(({ status, algorithm }) => status === wanted && algorithm === 'rsa');
    return key && dkimRecord(domain.name, key);
  };
  const isVerified = domain.status === 'verified';
  const current = isVerified ? first : undefined;
  const pending = isVerified ? recordOf('pending') : first;
  const revoked = recordOf('retired');
  return {
    ...summary(domain, { hasReturnPath: isOk(records, 'return_path'), hasSpf: isOk(records, 'spf') }),
    SPFHost: spf.name,
    SPFTextValue: spf.value,
    DKIMHost: current?.name ?? '',
    DKIMTextValue: current?.value ?? '',
    DKIMPendingHost: pending?.name ?? '',
    DKIMPendingTextValue: pending?.value ?? '',
    DKIMRevokedHost: revoked?.name ?? '',
    DKIMRevokedTextValue: revoked?.value ?? '',
    SafeToRemoveRevokedKeyFromDNS: false,
    DKIMUpdateStatus: pending ? 'Pending' : 'Verified',
    ReturnPathDomain: names.returnPathDomain,
    ReturnPathDomainCNAMEValue: '',
  };
}

const name = z.string().refine((text) => toDomain(text) !== null, 'must be a domain name');

async function add(call: DialectCall) {
  const { Name } = checked(z.object({ Name: name }), call.body);
  checkReturnPath(call);
  const { db, seal } = call;
  const wanted = { orgId: call.orgId, name: toDomain(Name)! };
  const domain = await registerDomain(db, wanted, { seal, now: call.now, requestedBy: 'owner' });
  return details(call, domain, unchecked(call, domain));
}

/** Nothing of a new domain is in DNS yet. */
function unchecked({ names }: DialectCall, domain: DomainRecord): CheckedRecord[] {
  return recordsFor(domain, names).map((record) => ({
    ...record,
    ok: false,
    found: [],
    problem: null,
  }));
}

/** There is nothing else that Postmark's domains can change. */
async function change(call: DialectCall) {
  const domain = await find(call);
  checkReturnPath(call);
  return details(call, domain);
}

function checkReturnPath({ body, names }: DialectCall): void {
  const { ReturnPathDomain: given } = checked(
    z.object({ ReturnPathDomain: z.string().nullish() }),
    body ?? {},
  );
  if (!given || given.toLowerCase() === names.returnPathDomain) return;
  throw new Refusal(
    'BAD_REQUEST',
    `All domains have the return path of the server, ${names.returnPathDomain}. Leave ReturnPathDomain out.`,
  );
}

async function remove(call: DialectCall) {
  const { id, name: removed } = await find(call);
  await deleteDomain(call.db, id);
  return { ErrorCode: 0, Message: `The domain ${removed} is deleted.` };
}

async function verify(call: DialectCall) {
  const { db, names, resolve, keepKeysMs: keepMs, eventSignal } = call;
  const check = { names, resolve, now: call.now, keepMs, eventSignal };
  const { domain, records } = await verifyDomain(db, await find(call), check);
  return details(call, domain, records);
}

async function rotate(call: DialectCall) {
  const { db, seal } = call;
  const domain = await find(call);
  await addKeys(db, domain, algorithmsOf(domain), { seal, now: call.now });
  return details(call, await find(call));
}
