/** Organizations: who sends. A null limit is no limit. */

import { newId } from '../../base/id.ts';
import type { TlsFloor } from '../../glossary.ts';
import { forUpdate, jsonRows, query } from '../engine/json-rows.ts';
import type { Db, Trx } from '../engine/open.ts';

export interface Organization {
  id: string;
  name: string;
  createdAt: number;
  quotaLimit: number | null;
  quotaUsed: number;
  quotaSince: number;
  wallet: number;
  ledgerTotal: number;
  requestsPerSecond: number | null;
  requestsPerDay: number | null;
  emailsPerDay: number | null;
  /** The least protection of connections that all its mail demands; a domain may demand more. */
  tls: TlsFloor;
  /** The pool of source addresses that its mail leaves from; null: pinned to none, so from the pool `default`. */
  pool: string | null;
  /** Whether the owner has been told, since there were credits last. */
  toldLow: boolean;
  toldExhausted: boolean;
  /** Null: not paused (db/accounts/pauses.ts). */
  pause: Pause | null;
}

/** Since when an organization is paused, and why. */
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

/** Throws a NameTaken where another has the name. */
export async function insertOrganization(db: Db, name: string, now: number): Promise<string> {
  const id = newId();
  const row = { id, name, created_at: now, quota_limit: 0, quota_since: now, ...defaultLimits };
  const inserted = await db('organizations').insert(row).onConflict().ignore().returning('id');
  if (inserted.length === 0) throw new NameTaken(name);
  return id;
}

export async function listOrganizations(db: Db): Promise<Organization[]> {
  return (await db('organizations').orderBy('id')).map(fromRow);
}

export async function hasOrganizations(db: Db): Promise<boolean> {
  return (await db('organizations').select('id').first()) !== undefined;
}

export async function findOrganization(db: Db, id: string): Promise<Organization | null> {
  const row = await db('organizations').where({ id }).first();
  return row ? fromRow(row) : null;
}

export async function findOrganizationByName(db: Db, name: string): Promise<Organization | null> {
  const row = await db('organizations').where({ name }).first();
  return row ? fromRow(row) : null;
}

/** As by findOrganization, holding it until the transaction ends: nobody else charges it meanwhile. SQLite has one writer anyway. */
export async function lockOrganization(trx: Trx, id: string): Promise<Organization | null> {
  return (await lockOrganizations(trx, [id]))[0] ?? null;
}

/** In the order of their ids, so that two nodes never wait for each other. */
export async function lockOrganizations(trx: Trx, ids: Iterable<string>): Promise<Organization[]> {
  const { from, column } = jsonRows(trx, { id: 'uuid' });
  const rows = await query(
    trx,
    `select * from organizations where id in (select ${column('id')} from ${from}) order by id ${forUpdate(trx)}`,
    [JSON.stringify([...ids].map((id) => ({ id })))],
  );
  return rows.map(fromRow);
}

/**
 * Inserts into `table`, one of the organization's, unless that has `max` rows already: then null. Holds the organization,
 * so that of two that are added at once the second counts the first.
 */
export async function insertWithin<Result>(
  db: Db,
  { orgId, table, max }: { orgId: string; table: string; max: number },
  insert: (trx: Trx) => Promise<Result>,
): Promise<Result | null> {
  return db.transaction(async (trx) => {
    await lockOrganization(trx, orgId);
    const row = await trx(table).where({ org_id: orgId }).count({ count: '*' }).first();
    return Number(row?.count) >= max ? null : insert(trx);
  });
}

export interface Limits {
  requestsPerSecond?: number | null;
  requestsPerDay?: number | null;
  emailsPerDay?: number | null;
}

export async function setLimits(db: Db, id: string, limits: Limits): Promise<void> {
  await db('organizations').where({ id }).update({
    requests_per_second: limits.requestsPerSecond,
    requests_per_day: limits.requestsPerDay,
    emails_per_day: limits.emailsPerDay,
  });
}

export async function setOrganizationTls(db: Db, id: string, tls: TlsFloor): Promise<void> {
  await db('organizations').where({ id }).update({ tls });
}

// biome-ignore lint/suspicious/noExplicitAny: a row is what the driver gives
function fromRow(row: any): Organization {
  return {
    id: row.id,
    name: row.name,
    createdAt: row.created_at,
    quotaLimit: row.quota_limit,
    quotaUsed: row.quota_used,
    quotaSince: row.quota_since,
    wallet: row.wallet,
    ledgerTotal: row.ledger_total,
    requestsPerSecond: row.requests_per_second,
    requestsPerDay: row.requests_per_day,
    emailsPerDay: row.emails_per_day,
    tls: row.tls,
    pool: row.pool,
    toldLow: Boolean(row.told_low),
    toldExhausted: Boolean(row.told_exhausted),
    pause: pauseOf(row),
  };
}

/** Of the columns `paused_at` and `paused_reason`. */
export function pauseOf(row: { paused_at: number | null; paused_reason: string | null }): Pause | null {
  return row.paused_at === null ? null : { since: row.paused_at, reason: row.paused_reason! };
}
