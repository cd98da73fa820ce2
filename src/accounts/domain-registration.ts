/** Registers and verifies sender domains, for API, command line and dashboard. */
import { type DomainRecord, findDomain, insertDomain, listDomains } from '#accounts/rows/domains-table.ts';
import { insertWithin } from '#accounts/rows/organizations.ts';
import type { Db } from '#platform/database/engine/open.ts';
import { isPublicSuffix } from '#platform/values/organizational-domain.ts';
import { Refusal } from '#platform/values/refusal.ts';
import { type CheckedRecord, checkRecords } from './check-records.ts';
import { checkKey, type KeyCheck } from './dkim-rotation.ts';
import { type Names, newDkimKey, recordsFor } from './domains.ts';
import type { Seal } from './seal.ts';
import { applyCheck } from './watch-domains.ts';

/** Each domain has an RSA key, which is costly to generate. The limit does not apply to operators. */
const maxDomains = 1000;

interface Registration {
  seal: Seal;
  now: number;
  /** Operators have no limit. */
  requestedBy?: 'owner' | 'operator';
}

/** Adds the domain, with a new DKIM key. Refused if the organization already has the domain, or has too many. */
export async function registerDomain(
  db: Db,
  { orgId, name }: Pick<DomainRecord, 'orgId' | 'name'>,
  { seal, now, requestedBy = 'operator' }: Registration,
): Promise<DomainRecord> {
  const max = requestedBy === 'owner' ? maxDomains : Number.POSITIVE_INFINITY;
  const isTaken = `The domain ${name} is already registered in this organization.`;
  const isFull = `This organization has ${maxDomains} domains; remove one first.`;
  const whose = ownerOtherThan(name);
  if (whose !== null)
    throw new Refusal('BAD_REQUEST', `${name} is ${whose}. Use a domain whose DNS records you can change.`);
  // Before the key generation, which is costly.
  const domains = await listDomains(db, orgId);
  if (domains.some((one) => one.name === name)) throw new Refusal('BAD_REQUEST', isTaken);
  if (domains.length >= max) throw new Refusal('BAD_REQUEST', isFull);
  const { selector, publicKey, privateKey } = await newDkimKey();
  const dkimPrivateKey = seal.close(privateKey);
  const domain = { orgId, name, dkimSelector: selector, dkimPublicKey: publicKey, dkimPrivateKey };
  // Other domains may have been added during the key generation.
  const added = await insertWithin(db, { orgId, table: 'domains', max }, async (trx) => ({
    id: await insertDomain(trx, domain, now),
  }));
  if (added === null) throw new Refusal('BAD_REQUEST', isFull);
  const registered = added.id === null ? null : await findDomain(db, orgId, name);
  if (registered) return registered;
  throw new Refusal('BAD_REQUEST', isTaken);
}

/** Names what the domain is, if its DNS is certainly another's: a public suffix, or a mailbox provider's own domain. */
function ownerOtherThan(name: string): string | null {
  if (isPublicSuffix(name)) return 'a public suffix, below which others register domains';
  return mailboxProviders.has(name) ? "a mailbox provider's domain" : null;
}

const mailboxProviders = new Set([
  'aol.com',
  'gmail.com',
  'gmx.de',
  'gmx.net',
  'googlemail.com',
  'hotmail.com',
  'icloud.com',
  'live.com',
  'me.com',
  'outlook.com',
  'proton.me',
  'protonmail.com',
  'web.de',
  'yahoo.com',
  'yandex.ru',
]);

export interface DomainCheck {
  /** The domain after the check. */
  domain: DomainRecord;
  records: CheckedRecord[];
  /** False if DNS gave no answer; then the domain keeps its status. */
  isKnown: boolean;
}

/**
 * Looks up the domain's records because a person asked. Verifies a pending domain and starts new keys; a verified domain stays
 * verified whatever is missing, for only the watch (watch-domains.ts) takes a verification away.
 */
export async function verifyDomain(
  db: Db,
  domain: DomainRecord,
  { names, resolve, now, keepMs, eventSignal }: { names: Names; eventSignal?: { notify(): void } } & KeyCheck,
): Promise<DomainCheck> {
  const readAgain = async () => (await findDomain(db, domain.orgId, domain.name)) ?? domain;
  const changes = await Promise.all(
    domain.otherKeys
      .filter(({ status }) => status !== 'signing')
      .map((key) => checkKey(db, domain.name, key, { resolve, now, keepMs })),
  );
  const isChanged = changes.some((change) => change !== null);
  const records = await checkRecords(recordsFor(isChanged ? await readAgain() : domain, names), resolve);
  const isKnown = await applyCheck(db, domain.id, records, { now, isAsked: true });
  eventSignal?.notify();
  return { domain: await readAgain(), records, isKnown };
}
