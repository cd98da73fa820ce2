/**
 * Credits: one for each accepted recipient, taken from the period's quota first, then from the wallet.
 *
 * Every change is an entry of the ledger, and an organization's entries add up to its `ledger_total`. With a finite quota, that
 * sum is the balance (the rest of the quota plus the wallet). With an unlimited quota there is no balance; sends still add
 * entries, and the entry that ends it makes the sum equal to the balance again.
 *
 * All functions that write run inside the caller's transaction, with the organization locked.
 */

import { renewedAt, renewsAt } from '#accounts/quota-period.ts';
import { lockOrganization, type Organization } from '#accounts/rows/organizations.ts';
import { newId } from '#platform/base/id.ts';
import { insertRows } from '#platform/database/engine/insert-rows.ts';
import { type JsonColumns, jsonItems, query } from '#platform/database/engine/json-rows.ts';
import type { Db, Trx } from '#platform/database/engine/open.ts';
import { number, orNull, records, text } from '#platform/database/engine/records.ts';
import { lastIdOf, timeOfId } from '#platform/database/tables/time-of-id.ts';

const ledgerEntries = records({
  id: text,
  at: number,
  change: number,
  reason: text,
  emailId: orNull(text),
  balance: orNull(number),
});

export type LedgerEntry = ReturnType<typeof ledgerEntries.read>;

/** Credits that can still be spent; null: unlimited. */
export function balanceOf(org: Organization): number | null {
  return org.quotaLimit === null ? null : Math.max(org.quotaLimit - org.quotaUsed, 0) + org.wallet;
}

/** Spends `count` credits; the caller has checked that they are available. */
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

/** Starts a new period on the organization's day of the month; null while the current one lasts. */
export function renew(org: Organization, now: number): { org: Organization; granted: number } | null {
  const since = renewedAt(org.createdAt, org.quotaSince, now);
  if (since === null) return null;
  const granted = org.quotaLimit === null ? 0 : Math.min(org.quotaUsed, org.quotaLimit);
  const next = { ...org, quotaSince: since, quotaUsed: 0, ledgerTotal: org.ledgerTotal + granted };
  return { org: withoutNotices(next), granted };
}

export interface QuotaState {
  /** Null: unlimited. */
  limit: number | null;
  used: number;
  remaining: number | null;
  renewsAt: number;
}

/** An expired period is renewed by the next send; until then it is already shown as renewed. */
export function quotaState(org: Organization, now: number): QuotaState {
  const { quotaLimit: limit, quotaUsed: used } = renew(org, now)?.org ?? org;
  const remaining = limit === null ? null : Math.max(limit - used, 0);
  return { limit, used, remaining, renewsAt: renewsAt(org.createdAt, now) };
}

/** There are credits again, so the events for low and exhausted credits may be added again. */
function withoutNotices(org: Organization): Organization {
  return { ...org, toldLow: false, toldExhausted: false };
}

/** Returns the events that follow from spending, each only once until there are credits again. */
export function creditEvents(
  org: Organization,
  lowShare: number,
): { org: Organization; events: CreditEvent[] } {
  const balance = balanceOf(org);
  if (balance === null || org.quotaLimit === null) return { org, events: [] };
  const left = Math.max(org.quotaLimit - org.quotaUsed, 0);
  const data = { quota: { limit: org.quotaLimit, used: org.quotaUsed, remaining: left }, wallet: org.wallet };
  const events: CreditEvent[] = [];
  const isLow = org.quotaLimit > 0 && left <= org.quotaLimit * lowShare;
  if (isLow && !org.toldLow) events.push({ type: 'credits.low', data });
  if (balance === 0 && !org.toldExhausted) events.push({ type: 'credits.exhausted', data });
  return {
    org: { ...org, toldLow: org.toldLow || isLow, toldExhausted: org.toldExhausted || balance === 0 },
    events,
  };
}

interface CreditEvent {
  type: 'credits.low' | 'credits.exhausted';
  data: object;
}

/** Adds `amount`, which may be negative, to the wallet. Null if the wallet would fall below zero. */
export async function grant(
  trx: Trx,
  orgId: string,
  amount: number,
  at: number,
): Promise<Organization | null> {
  const org = await lockInPeriod(trx, orgId, at);
  if (org.wallet + amount < 0) return null;
  const next = withoutNotices({ ...org, wallet: org.wallet + amount, ledgerTotal: org.ledgerTotal + amount });
  await saveCredits(trx, [next]);
  await trx('credit_entries').insert(entry(next, amount, 'wallet', null, at));
  return next;
}

interface Refund {
  emailId: string;
  count: number;
  fromWallet: number;
  createdAt: number;
}

/**
 * Gives back credits of canceled recipients: `counts` by email. They return to where they came from, those of the wallet
 * first. The quota of a period that has ended is not given back, because it would have lapsed unused as well.
 */
export async function refund(trx: Trx, counts: Map<string, number>, at: number): Promise<void> {
  if (counts.size === 0) return;
  const emails = await trx('emails')
    .whereIn('id', [...counts.keys()])
    // Test mail costs nothing.
    .whereRaw('not is_test')
    .orderBy('id')
    .select('id', 'org_id', 'wallet_credits', 'created_at');
  const orgIds = [...new Set<string>(emails.map((email) => email.org_id))].sort();
  for (const orgId of orgIds) {
    const own = emails.filter((email) => email.org_id === orgId);
    const refunds = own.map(({ id, wallet_credits, created_at }) => {
      const count = counts.get(id)!;
      return { emailId: id, count, fromWallet: Math.min(count, wallet_credits), createdAt: created_at };
    });
    await refundOrganization(trx, orgId, refunds, at);
  }
}

async function refundOrganization(trx: Trx, orgId: string, refunds: Refund[], at: number): Promise<void> {
  let org = await lockInPeriod(trx, orgId, at);
  const entries: object[] = [];
  const paid: { id: string; credits: number; fromWallet: number }[] = [];
  for (const { emailId, count, fromWallet, createdAt } of refunds) {
    // All email of the first period is of this period, whatever the clock of the node that accepted it.
    const isCurrent = createdAt >= org.quotaSince || org.quotaSince <= org.createdAt;
    const toQuota = isCurrent ? Math.min(count - fromWallet, org.quotaUsed) : 0;
    const next = { ...org, wallet: org.wallet + fromWallet, quotaUsed: org.quotaUsed - toQuota };
    // If the quota was lowered meanwhile, what is left of it may stay zero.
    const change = org.quotaLimit === null ? fromWallet + toQuota : balanceOf(next)! - balanceOf(org)!;
    org = { ...next, ledgerTotal: org.ledgerTotal + change };
    if (change === 0) continue;
    entries.push(entry(org, change, 'canceled', emailId, at));
    paid.push({ id: emailId, credits: change, fromWallet });
  }
  await saveCredits(trx, [org]);
  await insertRows(trx, 'credit_entries', entries);
  await lowerCredits(trx, paid);
}

/** The emails' cost, after a refund. */
async function lowerCredits(
  trx: Trx,
  refunds: { id: string; credits: number; fromWallet: number }[],
): Promise<void> {
  const { from, column, json } = jsonItems<(typeof refunds)[number]>(trx, {
    id: ['uuid', ({ id }) => id],
    credits: ['integer', ({ credits }) => credits],
    wallet: ['integer', ({ fromWallet }) => fromWallet],
  });
  await query(
    trx,
    `update emails set credits = emails.credits - ${column('credits')},
       wallet_credits = emails.wallet_credits - ${column('wallet')}
     from ${from} where emails.id = ${column('id')}`,
    [json(refunds)],
  );
}

/** Sets the period's limit; null: unlimited. Credits used in the period stay used. */
export async function setQuota(
  trx: Trx,
  orgId: string,
  limit: number | null,
  at: number,
): Promise<Organization> {
  const org = { ...(await lockInPeriod(trx, orgId, at)), quotaLimit: limit };
  const balance = balanceOf(org);
  const change = balance === null ? 0 : balance - org.ledgerTotal;
  const next = withoutNotices({ ...org, ledgerTotal: org.ledgerTotal + change });
  await saveCredits(trx, [next]);
  const reason = limit === null ? 'quota unlimited' : `quota ${limit}`;
  await trx('credit_entries').insert(entry(next, change, reason, null, at));
  return next;
}

/** Locks the organization, and renews its period if `at` is after its end. */
async function lockInPeriod(trx: Trx, orgId: string, at: number): Promise<Organization> {
  const org = (await lockOrganization(trx, orgId))!;
  const renewal = renew(org, at);
  if (!renewal) return org;
  if (renewal.granted > 0) await trx('credit_entries').insert(renewalEntry(renewal));
  return renewal.org;
}

export function renewalEntry({ org, granted }: { org: Organization; granted: number }) {
  return entry(org, granted, 'quota renewed', null, org.quotaSince);
}

/** The columns of the credits. */
const saved: JsonColumns<Organization> = {
  quota_limit: ['bigint', (org) => org.quotaLimit],
  quota_used: ['bigint', (org) => org.quotaUsed],
  wallet: ['bigint', (org) => org.wallet],
  ledger_total: ['bigint', (org) => org.ledgerTotal],
  quota_since: ['bigint', (org) => org.quotaSince],
  told_low: ['boolean', (org) => org.toldLow],
  told_exhausted: ['boolean', (org) => org.toldExhausted],
};

export async function saveCredits(trx: Trx, orgs: Iterable<Organization>): Promise<void> {
  const { from, column, json } = jsonItems<Organization>(trx, { id: ['uuid', (org) => org.id], ...saved });
  const assignments = Object.keys(saved).map((name) => `${name} = ${column(name)}`);
  await query(
    trx,
    `update organizations set ${assignments.join(', ')} from ${from} where organizations.id = ${column('id')}`,
    [json(orgs)],
  );
}

/** The row of a ledger entry; `org` is the organization after the change. */
export function entry(org: Organization, change: number, reason: string, emailId: string | null, at: number) {
  return { id: newId(), org_id: org.id, at, change, reason, email_id: emailId, balance: balanceOf(org) };
}

/** Lists entries, the newest first; `after`: those older than that one. */
export async function listLedger(
  db: Db,
  orgId: string,
  { limit, after }: { limit: number; after?: string | undefined },
): Promise<LedgerEntry[]> {
  const rows = db('credit_entries').where({ org_id: orgId }).orderBy('id', 'desc').limit(limit);
  if (after !== undefined) rows.where('id', '<', after);
  return (await rows).map(ledgerEntries.read);
}

export interface LedgerDay {
  /** Begin of the UTC day. */
  day: number;
  reasons: { reason: string; entries: number; change: number }[];
  /** After the day's last entry; null: unlimited. */
  balance: number | null;
}

const dayMs = 86_400_000;

/**
 * The ledger by day and reason, newest first: days before `before` until so many entries are read, at most `limit` days. Each day
 * is a range of the primary key, because ids contain the time at which an entry was added.
 */
export async function ledgerByDay(
  db: Db,
  orgId: string,
  { before, limit, maxEntries }: { before: number; limit: number; maxEntries: number },
): Promise<{ days: LedgerDay[]; isMore: boolean }> {
  const days: LedgerDay[] = [];
  const own = () => db('credit_entries').where({ org_id: orgId });
  let read = 0;
  let until = before;
  for (;;) {
    const last = await own()
      .where('id', '<=', lastIdOf(until - 1))
      .orderBy('id', 'desc')
      .first('id', 'balance');
    if (!last) return { days, isMore: false };
    if (days.length === limit || read >= maxEntries) return { days, isMore: true };
    const time = timeOfId(last.id);
    const day = time - (time % dayMs);
    const rows: { reason: string; entries: number | string; change: number | string }[] = await own()
      .where('id', '>', lastIdOf(day - 1))
      .where('id', '<=', lastIdOf(until - 1))
      .groupBy('reason')
      .orderBy('reason')
      .select('reason', db.raw('count(*) as entries'), db.raw('sum(change) as change'));
    const reasons = rows.map((row) => ({
      reason: row.reason,
      entries: Number(row.entries),
      change: Number(row.change),
    }));
    days.push({ day, reasons, balance: orNull(number).read(last.balance) });
    read += reasons.reduce((sum, { entries }) => sum + entries, 0);
    until = day;
  }
}
