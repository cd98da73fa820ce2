/** Sender domains. `name` is the A-label in lower case; the private DKIM key is sealed (accounts/seal.ts). */

import { newId } from '#platform/base/id.ts';
import type { Db, Trx } from '#platform/database/engine/open.ts';
import { flag, number, orNull, records, text, value } from '#platform/database/engine/records.ts';
import type { TlsFloor } from '#platform/values/glossary.ts';
import { type DkimKeyRecord, dkimKeys } from './dkim-keys.ts';
import type { ReturnPathState } from './return-paths.ts';

export const domains = records({
  id: text,
  orgId: text,
  name: text,
  status: value<'pending' | 'verified'>(),
  /** The RSA key that signs all mail from the domain. */
  dkimSelector: text,
  /** The public key in the form for DNS: DER, base64. */
  dkimPublicKey: text,
  dkimPrivateKey: text,
  openTracking: flag,
  clickTracking: flag,
  /** Host of tracking links, a CNAME to this service; null: the service's own host. */
  trackingHost: orNull(text),
  /** Minimum TLS that mail from the domain requires. */
  tls: value<TlsFloor>(),
  /** Whether it receives mail, while it is verified (domain-receiving.ts). */
  receives: flag,
  /** Since when its MX record is not found, if it receives. */
  mxMissingSince: orNull(number),
  /** Minimum TLS that the organization requires of all its mail. */
  organizationTls: value<TlsFloor>(),
  createdAt: number,
  verifiedAt: orNull(number),
  checkedAt: orNull(number),
  /** When the server looks up the DKIM record next; null: never. */
  checkAt: orNull(number),
  /** How often in a row the DKIM record of the verified domain was missing. */
  failures: number,
  /** The first of these failures. */
  failingSince: orNull(number),
  returnPath: value<ReturnPathState>(),
});

export type DomainRecord = ReturnType<typeof domains.read> & {
  /** All other keys: the next one, one that signs in addition, retired ones. */
  otherKeys: DkimKeyRecord[];
};

export type NewDomain = Pick<
  DomainRecord,
  'orgId' | 'name' | 'dkimSelector' | 'dkimPublicKey' | 'dkimPrivateKey'
>;

/** Returns the new domain's id, or null if the organization already has that domain. */
export async function insertDomain(db: Db, domain: NewDomain, now: number): Promise<string | null> {
  const rows = await db('domains')
    .insert(
      domains.write({ ...domain, id: newId(), status: 'pending', createdAt: now, checkAt: now + 60_000 }),
    )
    .onConflict(['org_id', 'name'])
    .ignore()
    .returning('id');
  return rows[0]?.id ?? null;
}

export async function findDomain(db: Db, orgId: string, name: string): Promise<DomainRecord | null> {
  const rows = await select(db).where({ org_id: orgId, 'domains.name': name }).orderBy('dkim_keys.id');
  return fromRows(rows)[0] ?? null;
}

export async function listDomains(db: Db, orgId: string): Promise<DomainRecord[]> {
  return fromRows(await select(db).where({ org_id: orgId }).orderBy(['domains.name', 'dkim_keys.id']));
}

/** The first names, for a message. */
export async function firstDomainNames(db: Db, orgId: string, limit: number): Promise<string[]> {
  return db('domains').where({ org_id: orgId }).orderBy('name').limit(limit).pluck('name');
}

/** Lists the domains of all organizations that have the name; without a name, all verified ones. */
export async function listSenderDomains(db: Db, name: string | null, limit: number): Promise<DomainRecord[]> {
  const which = name === null ? { status: 'verified' } : { name };
  const chosen = db('domains').where(which).orderBy(['name', 'id']).limit(limit).select('id');
  const rows = await select(db)
    .whereIn('domains.id', chosen)
    .orderBy(['domains.name', 'domains.id', 'dkim_keys.id']);
  return fromRows(rows);
}

/** Whether tracking links of any domain lead to this service's own host. */
export async function isTrackingAtHome(db: Db): Promise<boolean> {
  const row = await db('domains')
    .where({ status: 'verified', tracking_host: null })
    .where((tracked) => tracked.where({ open_tracking: true }).orWhere({ click_tracking: true }))
    .select('id')
    .first();
  return row !== undefined;
}

/** A row for each of the domain's other keys, or one row if it has none. */
function select(db: Db) {
  return db('domains')
    .join('organizations', 'organizations.id', 'domains.org_id')
    .leftJoin('dkim_keys', 'dkim_keys.domain_id', 'domains.id')
    .select('domains.*', 'organizations.tls as organization_tls')
    .select(dkimKeys.columns.map((column) => `dkim_keys.${column} as key_${column}`));
}

/** `verified_at` keeps the time of the first success as long as the domain stays verified. */
export async function setDomainStatus(
  db: Db,
  id: string,
  status: DomainRecord['status'],
  now: number,
): Promise<void> {
  const verifiedAt = status === 'verified' ? db.raw('coalesce(verified_at, ?)', [now]) : null;
  await db('domains').where({ id }).update({ status, checked_at: now, verified_at: verifiedAt });
}

export async function setDomainTracking(
  db: Db,
  id: string,
  { opens, clicks, host }: { opens?: boolean; clicks?: boolean; host?: string | null },
): Promise<void> {
  const tracking = { open_tracking: opens, click_tracking: clicks, tracking_host: host };
  await db('domains').where({ id }).update(tracking);
}

/**
 * Whether the host is in a verified domain of another organization, and in none of this one; of one that is in nobody's, whether
 * another organization has it already.
 */
export async function isHostOfAnother(db: Db, orgId: string, host: string): Promise<boolean> {
  const verified = db('domains').whereIn('name', withParents(host)).where({ status: 'verified' });
  const owners: string[] = await verified.pluck('org_id');
  if (owners.length > 0) return !owners.includes(orgId);
  const taken = await db('domains').where({ tracking_host: host }).whereNot({ org_id: orgId }).first('id');
  return taken !== undefined;
}

/** The domain is verified: hosts in it are no more those of others' links, unless a domain of theirs has them, too. */
export async function takeBackHosts(
  trx: Trx,
  { orgId, name }: Pick<DomainRecord, 'orgId' | 'name'>,
): Promise<void> {
  const foreign = await trx('domains')
    .whereNot({ org_id: orgId })
    .where((inside) => inside.where({ tracking_host: name }).orWhere('tracking_host', 'like', `%.${name}`))
    .select('id', 'org_id', 'tracking_host');
  for (const { id, org_id, tracking_host } of foreign)
    if (await isHostOfAnother(trx, org_id, tracking_host)) await setDomainTracking(trx, id, { host: null });
}

export async function setDomainTls(db: Db, id: string, tls: TlsFloor): Promise<void> {
  await db('domains').where({ id }).update({ tls });
}

/** With its receiving routes. */
export async function deleteDomain(
  db: Db,
  { id, orgId, name }: Pick<DomainRecord, 'id' | 'orgId' | 'name'>,
): Promise<void> {
  await db.transaction(async (trx) => {
    await trx('receiving_routes').where({ org_id: orgId, domain: name }).delete();
    await trx('domains').where({ id }).delete();
  });
}

// biome-ignore lint/suspicious/noExplicitAny: the driver's rows have no type
function fromRows(rows: any[]): DomainRecord[] {
  const found = new Map<string, DomainRecord>();
  for (const row of rows) {
    const domain = found.get(row.id) ?? { ...domains.read(row), otherKeys: [] };
    found.set(row.id, domain);
    if (row.key_id === null) continue;
    const key = Object.fromEntries(dkimKeys.columns.map((column) => [column, row[`key_${column}`]]));
    domain.otherKeys.push(dkimKeys.read(key));
  }
  return [...found.values()];
}

/** The oldest first. */
export async function listSenderHosts(
  db: Db,
): Promise<{ orgId: string; name: string; trackingHost: string | null }[]> {
  const rows = await db('domains')
    .where({ status: 'verified' })
    .orderBy('id')
    .select('org_id', 'name', 'tracking_host');
  return rows.map(senderHosts.read);
}

export interface TrackingHost {
  /** The organizations that have it: if there are any, those that have it in a verified domain of theirs. */
  owners: string[];
  isOwnDomain: boolean;
}

/** The tracking hosts of customers. Two lists, because one organization may have a thousand hosts and a thousand domains. */
export async function listTrackingHosts(db: Db): Promise<Map<string, TrackingHost>> {
  const having = () => db('domains').whereNotNull('tracking_host');
  const rows: { org_id: string; tracking_host: string }[] = await having().select('org_id', 'tracking_host');
  const verified: { org_id: string; name: string }[] = await db('domains')
    .where({ status: 'verified' })
    .whereIn('org_id', having().select('org_id'))
    .select('org_id', 'name');
  const own = new Set(verified.map(({ org_id, name }) => `${org_id} ${name}`));
  const hosts = new Map<string, TrackingHost>();
  for (const { org_id: org, tracking_host: host } of rows) {
    const isOwnDomain = withParents(host).some((name) => own.has(`${org} ${name}`));
    const known = hosts.get(host);
    if (!known || (isOwnDomain && !known.isOwnDomain)) hosts.set(host, { owners: [org], isOwnDomain });
    else if (known.isOwnDomain === isOwnDomain && !known.owners.includes(org)) known.owners.push(org);
  }
  return hosts;
}

/** mail.example.org, example.org. */
function withParents(host: string): string[] {
  const labels = host.split('.');
  return labels.slice(0, -1).map((_, at) => labels.slice(at).join('.'));
}

const senderHosts = domains.pick('orgId', 'name', 'trackingHost');

/** The organization that has the domain, verified: the first one; null if there is none. */
export async function findVerifiedOwner(db: Db, name: string): Promise<string | null> {
  const row = await db('domains').where({ name, status: 'verified' }).orderBy('id').first('org_id');
  return row?.org_id ?? null;
}
