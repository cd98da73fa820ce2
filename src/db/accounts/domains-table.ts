/** Sender domains. `name` is the A-label in lower case; the private DKIM key is kept sealed (accounts/seal.ts). */

import { newId } from '../../base/id.ts';
import type { TlsFloor } from '../../glossary.ts';
import type { Db } from '../engine/open.ts';
import { type DkimKeyRecord, keyFrom } from './dkim-keys.ts';

export interface DomainRecord {
  id: string;
  orgId: string;
  name: string;
  status: 'pending' | 'verified';
  /** The RSA key that signs all mail from here. */
  dkimSelector: string;
  /** The public key as DNS carries it: DER, base64. */
  dkimPublicKey: string;
  dkimPrivateKey: string;
  /** All others: the next one, one that signs beside it, those that have signed. */
  otherKeys: DkimKeyRecord[];
  openTracking: boolean;
  clickTracking: boolean;
  /** Where tracking links lead, a CNAME to this service; null: to the service's own address. */
  trackingHost: string | null;
  /** The least protection of connections that mail from here demands. */
  tls: TlsFloor;
  /** What its organization demands of all mail. */
  organizationTls: TlsFloor;
  createdAt: number;
  verifiedAt: number | null;
  checkedAt: number | null;
}

export type NewDomain = Pick<
  DomainRecord,
  'orgId' | 'name' | 'dkimSelector' | 'dkimPublicKey' | 'dkimPrivateKey'
>;

/** The new domain's id, or null where the organization has that domain already. */
export async function insertDomain(db: Db, domain: NewDomain, now: number): Promise<string | null> {
  const rows = await db('domains')
    .insert({
      id: newId(),
      org_id: domain.orgId,
      name: domain.name,
      status: 'pending',
      dkim_selector: domain.dkimSelector,
      dkim_public_key: domain.dkimPublicKey,
      dkim_private_key: domain.dkimPrivateKey,
      created_at: now,
    })
    .onConflict(['org_id', 'name'])
    .ignore()
    .returning('id');
  return rows[0]?.id ?? null;
}

export async function findDomain(db: Db, orgId: string, name: string): Promise<DomainRecord | null> {
  const rows = await domains(db).where({ org_id: orgId, 'domains.name': name }).orderBy('dkim_keys.id');
  return fromRows(rows)[0] ?? null;
}

export async function listDomains(db: Db, orgId: string): Promise<DomainRecord[]> {
  return fromRows(await domains(db).where({ org_id: orgId }).orderBy(['domains.name', 'dkim_keys.id']));
}

/** Of all organizations: those of that name, or, without one, the verified ones. */
export async function listSenderDomains(db: Db, name: string | null, limit: number): Promise<DomainRecord[]> {
  const which = name === null ? { status: 'verified' } : { name };
  const chosen = db('domains').where(which).orderBy(['name', 'id']).limit(limit).select('id');
  const rows = await domains(db)
    .whereIn('domains.id', chosen)
    .orderBy(['domains.name', 'domains.id', 'dkim_keys.id']);
  return fromRows(rows);
}

/** Whether mail of any domain leads readers to this service's own address. */
export async function isTrackingAtHome(db: Db): Promise<boolean> {
  const row = await db('domains')
    .where({ status: 'verified', tracking_host: null })
    .where((counted) => counted.where({ open_tracking: true }).orWhere({ click_tracking: true }))
    .select('id')
    .first();
  return row !== undefined;
}

/** A row for each of its other keys; one where it has none. */
function domains(db: Db) {
  return db('domains')
    .join('organizations', 'organizations.id', 'domains.org_id')
    .leftJoin('dkim_keys', 'dkim_keys.domain_id', 'domains.id')
    .select('domains.*', 'organizations.tls as organization_tls')
    .select(keyColumns.map((column) => `dkim_keys.${column} as key_${column}`));
}

/** Keeps the time of the first success as long as the domain stays verified. */
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
  tracking: { opens?: boolean; clicks?: boolean; host?: string | null },
): Promise<void> {
  await db('domains').where({ id }).update({
    open_tracking: tracking.opens,
    click_tracking: tracking.clicks,
    tracking_host: tracking.host,
  });
}

export async function setDomainTls(db: Db, id: string, tls: TlsFloor): Promise<void> {
  await db('domains').where({ id }).update({ tls });
}

export async function deleteDomain(db: Db, id: string): Promise<void> {
  await db('domains').where({ id }).delete();
}

const keyColumns = [
  ...['id', 'domain_id', 'algorithm', 'selector', 'public_key', 'private_key'],
  ...['status', 'created_at', 'checked_at', 'keep_until'],
];

// biome-ignore lint/suspicious/noExplicitAny: rows are what the driver gives
function fromRows(rows: any[]): DomainRecord[] {
  const found = new Map<string, DomainRecord>();
  for (const row of rows) {
    const domain = found.get(row.id) ?? fromRow(row);
    found.set(row.id, domain);
    if (row.key_id === null) continue;
    domain.otherKeys.push(
      keyFrom(Object.fromEntries(keyColumns.map((column) => [column, row[`key_${column}`]]))),
    );
  }
  return [...found.values()];
}

// biome-ignore lint/suspicious/noExplicitAny: a row is what the driver gives
function fromRow(row: any): DomainRecord {
  return {
    id: row.id,
    orgId: row.org_id,
    name: row.name,
    status: row.status,
    dkimSelector: row.dkim_selector,
    dkimPublicKey: row.dkim_public_key,
    dkimPrivateKey: row.dkim_private_key,
    otherKeys: [],
    openTracking: Boolean(row.open_tracking),
    clickTracking: Boolean(row.click_tracking),
    trackingHost: row.tracking_host,
    tls: row.tls,
    organizationTls: row.organization_tls,
    createdAt: row.created_at,
    verifiedAt: row.verified_at,
    checkedAt: row.checked_at,
  };
}
