/** Organizations, which own keys, domains and credits. A null limit is no limit. */

import { newId } from '#platform/base/id.ts';
import { countOf, forUpdate, idList, query } from '#platform/database/engine/json-rows.ts';
import type { Db, Trx } from '#platform/database/engine/open.ts';
import { flag, json, number, orNull, records, text, value } from '#platform/database/engine/records.ts';
import type { HeldGroup } from '#platform/database/tables/mail-group.ts';
import { serverOrgId, type TlsFloor } from '#platform/values/glossary.ts';

const organizations = records({
  id: text,
  name: text,
  createdAt: number,
  quotaLimit: orNull(number),
  quotaUsed: number,
  quotaSince: number,
  wallet: number,
  ledgerTotal: number,
  requestsPerSecond: orNull(number),
  requestsPerDay: orNull(number),
  emailsPerDay: orNull(number),
  /** Minimum TLS that all its mail requires; a domain may require more. */
  tls: value<TlsFloor>(),
  /** The IP pool that its mail leaves from; null: the pool `default`. */
  pool: orNull(text),
  /** Its pages are open only to users with two-factor authentication. */
  requiresSecondFactor: flag,
  /** Whether the owner has been notified since the last time there were credits. */
  toldLow: flag,
  toldExhausted: flag,
  /** The mail that an auto-pause holds (mail/record/auto-pause/); null: none, which most have. */
  heldGroups: orNull(json<HeldGroup[]>()),
  /** Off, warn or hold; null: as POSTERN_AUTO_PAUSE says. */
  autoPause: orNull(value<'off' | 'warn' | 'hold'>()),
});

export type Organization = ReturnType<typeof organizations.read> & {
  /** Null: not paused (accounts/rows/pauses.ts). */
  pause: Pause | null;
};

export interface Pause {
  since: number;
  reason: string;
}

/** Another organization has the name. */
export class NameTaken extends Error {
  constructor(name: string) {
    super(`an organization is named "${name}" already; give this one another name`);
  }
}

/** docs/api.md section 8. */
const defaultLimits = { requests_per_second: 2, requests_per_day: 5000, emails_per_day: 5000 };

/** Throws a NameTaken if another organization has the name. */
export async function insertOrganization(db: Db, name: string, now: number): Promise<string> {
  const id = newId();
  const row = { id, name, created_at: now, quota_limit: 0, quota_since: now, ...defaultLimits };
  const inserted = await db('organizations').insert(row).onConflict().ignore().returning('id');
  if (inserted.length === 0) throw new NameTaken(name);
  return id;
}

/** Throws a NameTaken if another organization has the name. */
export async function renameOrganization(db: Db, id: string, name: string): Promise<void> {
  const other = await db('organizations').where({ name }).whereNot({ id }).first('id');
  if (other) throw new NameTaken(name);
  await db('organizations').where({ id }).update({ name });
}

/** Adds the owner of the server's own mail, unless it is there. It has no limits, and the name that no other can have. */
export async function addServerOrganization(db: Db): Promise<void> {
  const row = { id: serverOrgId, name: '', created_at: 0, quota_since: 0 };
  await db('organizations').insert(row).onConflict('id').ignore();
}

/** All but the owner of the server's own mail. */
export const realOrganizations = (db: Db) => db('organizations').whereNot('organizations.id', serverOrgId);

export async function listOrganizations(db: Db): Promise<Organization[]> {
  return (await realOrganizations(db).orderBy('id')).map(organizationFrom);
}

/** Organizations that had no credits left after their last send. */
export async function exhaustedOrganizations(db: Db, limit: number): Promise<Organization[]> {
  return (await realOrganizations(db).where({ told_exhausted: true }).orderBy('id').limit(limit)).map(
    organizationFrom,
  );
}

export async function hasOrganizations(db: Db): Promise<boolean> {
  return (await realOrganizations(db).select('id').first()) !== undefined;
}

export async function findOrganization(db: Db, id: string): Promise<Organization | null> {
  const row = await realOrganizations(db).where({ id }).first();
  return row ? organizationFrom(row) : null;
}

export async function findOrganizationByName(db: Db, name: string): Promise<Organization | null> {
  const row = await realOrganizations(db).where({ name }).first();
  return row ? organizationFrom(row) : null;
}

/** Holds the organization until the transaction ends, so that no other transaction charges it. SQLite has one writer anyway. */
export async function lockOrganization(trx: Trx, id: string): Promise<Organization | null> {
  const { sql, values, resultOf } = readOrganizations(trx, [id]);
  return resultOf(await query(trx, sql, values))[0] ?? null;
}

/** Locks them, in the order of their ids, so that two nodes never deadlock. */
export function readOrganizations(trx: Trx, ids: Iterable<string>) {
  const { select, value: list } = idList(trx, ids);
  return {
    sql: `select * from organizations where id in (${select}) order by id ${forUpdate(trx)}`,
    values: [list],
    columns: [...organizations.columns, 'paused_at', 'paused_reason'],
    resultOf: (rows: object[]) => rows.map(organizationFrom),
  };
}

/**
 * Calls `insert` unless the organization already has `max` rows in `table`; then null. Holds the organization, so that of two
 * inserts at the same time the second counts the first.
 */
export async function insertWithin<Result>(
  db: Db,
  { orgId, table, max }: { orgId: string; table: string; max: number },
  insert: (trx: Trx) => Promise<Result>,
): Promise<Result | null> {
  return db.transaction(async (trx) => {
    await lockOrganization(trx, orgId);
    return (await countOf(trx(table).where({ org_id: orgId }))) >= max ? null : insert(trx);
  });
}

export type Limits = Partial<Pick<Organization, 'requestsPerSecond' | 'requestsPerDay' | 'emailsPerDay'>>;

export async function setLimits(db: Db, id: string, limits: Limits): Promise<void> {
  await db('organizations').where({ id }).update(organizations.write(limits));
}

export async function setOrganizationTls(db: Db, id: string, tls: TlsFloor): Promise<void> {
  await db('organizations').where({ id }).update({ tls });
}

export async function setAutoPause(db: Db, id: string, autoPause: Organization['autoPause']): Promise<void> {
  await db('organizations').where({ id }).update(organizations.write({ autoPause }));
}

export async function requireSecondFactor(db: Db, id: string, requiresSecondFactor: boolean): Promise<void> {
  await db('organizations').where({ id }).update(organizations.write({ requiresSecondFactor }));
}

// biome-ignore lint/suspicious/noExplicitAny: the driver's rows have no type
export function organizationFrom(row: any): Organization {
  return { ...organizations.read(row), pause: pauseOf(row) };
}

export function pauseOf(row: { paused_at: number | null; paused_reason: string | null }): Pause | null {
  return row.paused_at === null ? null : { since: row.paused_at, reason: row.paused_reason! };
}
