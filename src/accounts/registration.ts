/** Sender domains as they are registered and looked at, from wherever. */
import { type DomainRecord, findDomain, insertDomain, listDomains, setDomainStatus } from '../db/domains.ts';
import type { Db } from '../db/open.ts';
import {
  type CheckedRecord,
  checkRecords,
  type Names,
  newDkimKey,
  recordsFor,
  statusAfter,
} from './domains.ts';
import { settleKey, type Watching } from './rotation.ts';
import type { Seal } from './seal.ts';

/** Each has a key that was costly to make. */
const mostDomains = 1000;

/** As an organization registers one for itself: what is wrong with that, in a sentence, is known before a key is made. */
export async function addDomain(
  db: Db,
  { orgId, name }: Pick<DomainRecord, 'orgId' | 'name'>,
  terms: { seal: Seal; now: number },
): Promise<DomainRecord | { fault: string }> {
  const taken = { fault: `The domain ${name} is registered in this organization already.` };
  const domains = await listDomains(db, orgId);
  if (domains.some((one) => one.name === name)) return taken;
  if (domains.length >= mostDomains)
    return { fault: `This organization has ${mostDomains} domains; remove one first.` };
  return (await registerDomain(db, { orgId, name }, terms)) ?? taken;
}

/** With a DKIM key of its own. Null where the organization has it already. */
export async function registerDomain(
  db: Db,
  { orgId, name }: Pick<DomainRecord, 'orgId' | 'name'>,
  { seal, now }: { seal: Seal; now: number },
): Promise<DomainRecord | null> {
  const dkim = await newDkimKey();
  const added = await insertDomain(
    db,
    {
      orgId,
      name,
      dkimSelector: dkim.selector,
      dkimPublicKey: dkim.publicKey,
      dkimPrivateKey: seal.close(dkim.privateKey),
    },
    now,
  );
  return added === null ? null : findDomain(db, orgId, name);
}

export interface Look {
  status: DomainRecord['status'];
  records: CheckedRecord[];
  /** Where DNS gave no answer nothing is known: the domain keeps the status that it has. */
  isKnown: boolean;
}

export async function verifyDomain(
  db: Db,
  domain: DomainRecord,
  { names, resolve, now, keepMs }: { names: Names } & Watching,
): Promise<Look> {
  const settled = await Promise.all(
    domain.otherKeys
      .filter(({ status }) => status !== 'signing')
      .map((key) => settleKey(db, domain.name, key, { resolve, now, keepMs })),
  );
  const isChanged = settled.some((one) => one !== null);
  const current = isChanged ? ((await findDomain(db, domain.orgId, domain.name)) ?? domain) : domain;
  const records = await checkRecords(recordsFor(current, names), resolve);
  const seen = statusAfter(records);
  if (seen !== null) await setDomainStatus(db, domain.id, seen, now);
  return { status: seen ?? current.status, records, isKnown: seen !== null };
}
