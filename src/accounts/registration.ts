/** Sender domains as they are registered and looked at, from wherever. */
import { type DomainRecord, findDomain, insertDomain, setDomainStatus } from '../db/domains.ts';
import type { Db } from '../db/open.ts';
import {
  type CheckedRecord,
  checkRecords,
  type Names,
  newDkimKey,
  type Resolve,
  recordsFor,
  statusAfter,
} from './domains.ts';
import type { Seal } from './seal.ts';

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
  { names, resolve, now }: { names: Names; resolve: Resolve; now: number },
): Promise<Look> {
  const records = await checkRecords(recordsFor(domain, names), resolve);
  const seen = statusAfter(records);
  if (seen !== null) await setDomainStatus(db, domain.id, seen, now);
  return { status: seen ?? domain.status, records, isKnown: seen !== null };
}
