/**
 * Credits: one a recipient accepted, taken from the period's quota first, then from the wallet.
 *
 * Every movement is an entry of the ledger, and an organization's entries add up to its `ledger_total`. While the
 * quota is finite that sum is the balance (what is left of the quota plus the wallet). While it is unlimited there
 * is no balance, sends still count, and the entry that ends it squares the books.
 *
 * All functions here run inside the caller's transaction, with the organization locked.
 */

import { renewedAt, renewsAt } from '../../accounts/quota-period.ts';
import { newId } from '../../base/id.ts';
import { lockOrganization, type Organization } from '../accounts/organizations.ts';
import { jsonRows, query } from '../engine/json-rows.ts';
import type { Db, Trx } from '../engine/open.ts';

export interface LedgerEntry {
  id: string;
  at: number;
  change: number;
  reason: string;
  emailId: string | null;
  balance: number | null;
}

/** What can still be spent; null is without limit. */
export function balanceOf(org: Organization): number | null {
  return org.quotaLimit === null ? null : Math.max(org.quotaLimit - org.quotaUsed, 0) + org.wallet;
}

/** How an organization's credits stand after spending `count`, which the caller has seen to be available. */
export function spend(org: Organization, count: number): Organization {
  const left = org.quotaLimit === null ? count : Math.max(org.quotaLimit - org.quotaUsed, 0);
  const fromQuota = Math.min(left, count);
  return {
    ...org,
    quotaUsed: org.quotaUsed + fromQuota,
    wallet: org.wallet - (count - fromQuota),
    ledgerTotal: org.ledgerTotal - count,
  };
}

/** The organization in a new month, on its own day of the month, or null while its period lasts. */
export function renew(org: Organization, now: number): { org: Organization; given: number } | null {
  const since = renewedAt(org.createdAt, org.quotaSince, now);
  if (since === null) return null;
  const given = org.quotaLimit === null ? 0 : Math.min(org.quotaUsed, org.quotaLimit);
  const next = { ...org, quotaSince: since, quotaUsed: 0, ledgerTotal: org.ledgerTotal + given };
  return { org: untold(next), given };
}

export interface QuotaState {
  /** Null: unlimited. */
  limit: number | null;
  used: number;
  remaining: number | null;
  renewsAt: number;
}

/** As it stands today: a period that is over is renewed by the next send, and is shown as renewed before that. */
export function quotaState(org: Organization, now: number): QuotaState {
  const { quotaLimit: limit, quotaUsed: used } = renew(org, now)?.org ?? org;
  const remaining = limit === null ? null : Math.max(limit - used, 0);
  return { limit, used, remaining, renewsAt: renewsAt(org.createdAt, now) };
}

/** What is to be said again when it comes to it: there are credits once more. */
function untold(org: Organization): Organization {
  return { ...org, toldLow: false, toldExhausted: false };
}

/** What spending has made worth saying, each once until there are credits again. */
export function creditNews(org: Organization, lowShare: number): { org: Organization; news: CreditNews[] } {
  const balance = balanceOf(org);
  if (balance === null || org.quotaLimit === null) return { org, news: [] };
  const left = Math.max(org.quotaLimit - org.quotaUsed, 0);
  const data = { quota: { limit: org.quotaLimit, used: org.quotaUsed, remaining: left }, wallet: org.wallet };
  const news: CreditNews[] = [];
  const isLow = org.quotaLimit > 0 && left <= org.quotaLimit * lowShare;
  if (isLow && !org.toldLow) news.push({ type: 'credits.low', data });
  if (balance === 0 && !org.toldExhausted) news.push({ type: 'credits.exhausted', data });
  return {
    org: { ...org, toldLow: org.toldLow || isLow, toldExhausted: org.toldExhausted || balance === 0 },
    news,
  };
}

export interface CreditNews {
  type: 'credits.low' | 'credits.exhausted';
  data: object;
}

/** Adds `amount` to the wallet; a negative one takes from it. Null when the wallet would fall below zero. */
export async function grant(
  trx: Trx,
  orgId: string,
  amount: number,
  at: number,
): Promise<Organization | null> {
  const org = await lockInPeriod(trx, orgId, at);
  if (org.wallet + amount < 0) return null;
  const next = untold({ ...org, wallet: org.wallet + amount, ledgerTotal: org.ledgerTotal + amount });
  await saveCredits(trx, [next]);
  await insertEntries(trx, [entry(next, amount, 'wallet', null, at)]);
  return next;
}

/** Sets the period's limit; null is unlimited. What was used in the period stays used. */
export async function setQuota(
  trx: Trx,
  orgId: string,
  limit: number | null,
  at: number,
): Promise<Organization> {
  const org = { ...(await lockInPeriod(trx, orgId, at)), quotaLimit: limit };
  const balance = balanceOf(org);
  const change = balance === null ? 0 : balance - org.ledgerTotal;
  const next = untold({ ...org, ledgerTotal: org.ledgerTotal + change });
  await saveCredits(trx, [next]);
  const reason = limit === null ? 'quota unlimited' : `quota ${limit}`;
  await insertEntries(trx, [entry(next, change, reason, null, at)]);
  return next;
}

/** The organization, locked, in the period that `at` lies in. */
async function lockInPeriod(trx: Trx, orgId: string, at: number): Promise<Organization> {
  const org = (await lockOrganization(trx, orgId))!;
  const renewal = renew(org, at);
  if (!renewal) return org;
  if (renewal.given > 0) await insertEntries(trx, [renewalEntry(renewal)]);
  return renewal.org;
}

export function renewalEntry({ org, given }: { org: Organization; given: number }): EntryRow {
  return entry(org, given, 'quota renewed', null, org.quotaSince);
}

export async function saveCredits(trx: Trx, orgs: Iterable<Organization>): Promise<void> {
  const { from, column } = jsonRows(trx, { id: 'uuid', ...saved });
  const assignments = Object.keys(saved).map((name) => `${name} = ${column(name)}`);
  const rows = [...orgs].map((org) => ({
    id: org.id,
    quota_limit: org.quotaLimit,
    quota_used: org.quotaUsed,
    wallet: org.wallet,
    ledger_total: org.ledgerTotal,
    quota_since: org.quotaSince,
    told_low: org.toldLow,
    told_exhausted: org.toldExhausted,
  }));
  await query(
    trx,
    `update organizations set ${assignments.join(', ')} from ${from} where organizations.id = ${column('id')}`,
    [JSON.stringify(rows)],
  );
}

/** The columns that credits are kept in. */
const saved = {
  quota_limit: 'bigint',
  quota_used: 'bigint',
  wallet: 'bigint',
  ledger_total: 'bigint',
  quota_since: 'bigint',
  told_low: 'boolean',
  told_exhausted: 'boolean',
};

export type EntryRow = ReturnType<typeof entry>;

/** A ledger entry for what has just been changed on `org`. */
export function entry(org: Organization, change: number, reason: string, emailId: string | null, at: number) {
  return { id: newId(), org_id: org.id, at, change, reason, email_id: emailId, balance: balanceOf(org) };
}

async function insertEntries(trx: Trx, entries: EntryRow[]): Promise<void> {
  await trx('credit_entries').insert(entries);
}

/** The newest entries first; `after`: those older than that one. */
export async function listLedger(
  db: Db,
  orgId: string,
  { limit, after }: { limit: number; after?: string | undefined },
): Promise<LedgerEntry[]> {
  const rows = db('credit_entries').where({ org_id: orgId }).orderBy('id', 'desc').limit(limit);
  if (after !== undefined) rows.where('id', '<', after);
  return (await rows).map((row) => ({
    id: row.id,
    at: row.at,
    change: row.change,
    reason: row.reason,
    emailId: row.email_id,
    balance: row.balance,
  }));
}
