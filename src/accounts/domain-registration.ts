/** Registers and verifies sender domains, for API, command line and dashboard. */
import {
  type DomainRecord,
  findDomain,
  insertDomain,
  listDomains,
  type NewDomain,
  setDomainStatus,
} from '../db/accounts/domains-table.ts';
import { insertWithin } from '../db/accounts/organizations.ts';
import type { Db } from '../db/engine/open.ts';
import { checkKey, type KeyCheck } from './dkim-rotation.ts';
import {
  type CheckedRecord,
  checkRecords,
  type Names,
  newDkimKey,
  recordsFor,
  statusAfter,
} from './domains.ts';
import type { Seal } from './seal.ts';

/** Each domain has an RSA key, which is costly to generate. */
const maxDomains = 1000;

/** For an organization that registers its own domain. Faults are sentences, found before the costly key generation. */
export async function addDomain(
  db: Db,
  { orgId, name }: Pick<DomainRecord, 'orgId' | 'name'>,
  terms: { seal: Seal; now: number },
): Promise<DomainRecord | { fault: string }> {
  const taken = { fault: `The domain ${name} is registered in this organization already.` };
  const full = { fault: `This organization has ${maxDomains} domains; remove one first.` };
  const domains = await listDomains(db, orgId);
  if (domains.some((one) => one.name === name)) return taken;
  if (domains.length >= maxDomains) return full;
  const domain = await withKey({ orgId, name }, terms.seal);
  // Other domains may have been added during the key generation.
  const limit = { orgId, table: 'domains', max: maxDomains };
  const added = await insertWithin(db, limit, async (trx) => ({
    id: await insertDomain(trx, domain, terms.now),
  }));
  if (added === null) return full;
  return added.id === null ? taken : ((await findDomain(db, orgId, name)) ?? taken);
}

/** With a new DKIM key. Null if the organization already has the domain. */
export async function registerDomain(
  db: Db,
  { orgId, name }: Pick<DomainRecord, 'orgId' | 'name'>,
  { seal, now }: { seal: Seal; now: number },
): Promise<DomainRecord | null> {
  const added = await insertDomain(db, await withKey({ orgId, name }, seal), now);
  return added === null ? null : findDomain(db, orgId, name);
}

async function withKey(domain: Pick<DomainRecord, 'orgId' | 'name'>, seal: Seal): Promise<NewDomain> {
  const dkim = await newDkimKey();
  return {
    ...domain,
    dkimSelector: dkim.selector,
    dkimPublicKey: dkim.publicKey,
    dkimPrivateKey: seal.close(dkim.privateKey),
  };
}

export interface DomainCheck {
  status: DomainRecord['status'];
  records: CheckedRecord[];
  /** False if DNS gave no answer; then the domain keeps its status. */
  isKnown: boolean;
}

export async function verifyDomain(
  db: Db,
  domain: DomainRecord,
  { names, resolve, now, keepMs }: { names: Names } & KeyCheck,
): Promise<DomainCheck> {
  const settled = await Promise.all(
    domain.otherKeys
      .filter(({ status }) => status !== 'signing')
      .map((key) => checkKey(db, domain.name, key, { resolve, now, keepMs })),
  );
  const isChanged = settled.some((one) => one !== null);
  const current = isChanged ? ((await findDomain(db, domain.orgId, domain.name)) ?? domain) : domain;
  const records = await checkRecords(recordsFor(current, names), resolve);
  const seen = statusAfter(records);
  if (seen !== null) await setDomainStatus(db, domain.id, seen, now);
  return { status: seen ?? current.status, records, isKnown: seen !== null };
}
