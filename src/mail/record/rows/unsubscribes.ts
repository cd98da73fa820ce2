/**
 * Unsubscribing from a stream: the address goes to the list of that stream alone, with an event of the email. It is on disk when
 * the call resolves. A second time changes nothing.
 *
 * An email from before the address was taken off the list again belongs to an earlier subscription. Its link ends the present one
 * only if the person has confirmed that (`isConfirmed`). A time to come, at which a clock that was ahead took it off, says nothing:
 * until then, this person could not leave by one click.
 */
import { findSuppression, resubscribedAt, suppress, suppressionOf } from '#accounts/rows/suppressions.ts';
import type { Db } from '#platform/database/engine/open.ts';
import { eventRow } from '#platform/database/tables/event-row.ts';
import { timeOfId } from '#platform/database/tables/time-of-id.ts';
import { compareKey } from '#platform/values/address.ts';
import { isTestMail } from '#platform/values/test-route.ts';

/** What an email was sent for, so that its link works when the email has been deleted. */
export interface StreamSubscription {
  deliveryId: string;
  orgId: string;
  stream: string;
  address: string;
  /** Test mail suppresses no one. */
  isTest: boolean;
}

export interface Unsubscribing {
  via: 'one-click' | 'page' | 'mail';
  now: number;
  isConfirmed?: boolean;
}

export const unsubscribedReason = 'unsubscribed';

/**
 * `subscribed again`: after the email was sent; nothing was changed. Looks before it takes the database's lock: a stranger with one
 * link could otherwise keep everybody's mail waiting for it.
 */
export async function unsubscribe(
  db: Db,
  subscription: StreamSubscription,
  { via, now, isConfirmed = false }: Unsubscribing,
): Promise<'unsubscribed' | 'subscribed again'> {
  const { orgId, stream, address, isTest } = subscription;
  const before = await stateOf(db, subscription, now);
  if (before === 'unsubscribed' || (before === 'subscribed again' && !isConfirmed)) return before;
  if (!(await isOpen(db, subscription))) return 'unsubscribed';
  return db.transaction(async (trx) => {
    if (!isConfirmed && (await isOfEarlier(trx, subscription, now))) return 'subscribed again';
    const emailId = await emailOf(trx, subscription);
    const entry = {
      ...suppressionOf(orgId, address, unsubscribedReason),
      stream,
      ...(emailId && { emailId }),
    };
    const isNew = (await isOpen(trx, subscription)) && (isTest || (await suppress(trx, [entry], now)) > 0);
    if (!isNew) return 'unsubscribed';
    const data = { stream, via };
    const event = { orgId, emailId, recipient: address, type: 'email.unsubscribed', at: now, data } as const;
    await trx('events').insert(eventRow(event));
    return 'unsubscribed';
  });
}

/** Whether a click changes something: the organization may be gone, and test mail is on no list that says that it has been told. */
async function isOpen(db: Db, subscription: StreamSubscription): Promise<boolean> {
  const { orgId, address, isTest } = subscription;
  if ((await db('organizations').where({ id: orgId }).first('id')) === undefined) return false;
  if (!isTest) return true;
  const emailId = await emailOf(db, subscription);
  const told = { email_id: emailId, recipient: address, type: 'email.unsubscribed' };
  return emailId !== null && (await db('events').where(told).first('id')) === undefined;
}

/** Ids have the time of their machine, which is not exactly that of the clock. */
const maxAheadMs = 3_600_000;

async function isOfEarlier(
  db: Db,
  { deliveryId, orgId, stream, address }: StreamSubscription,
  now: number,
): Promise<boolean> {
  const at = await resubscribedAt(db, { orgId, stream, addressKey: compareKey(address) });
  return at !== null && at <= now + maxAheadMs && timeOfId(deliveryId) <= at;
}

async function emailOf(db: Db, { deliveryId, orgId }: StreamSubscription): Promise<string | null> {
  const row = await db('deliveries').where({ id: deliveryId, org_id: orgId }).first('email_id');
  return row?.email_id ?? null;
}

/** Of an email that is still there; null: it has no stream. */
export async function subscriptionOf(db: Db, deliveryId: string): Promise<StreamSubscription | null> {
  const row = await db('deliveries')
    .join('emails', 'emails.id', 'deliveries.email_id')
    .where('deliveries.id', deliveryId)
    .first('deliveries.org_id', 'deliveries.recipient', 'deliveries.domain', 'emails.stream');
  if (!row?.stream) return null;
  const { org_id: orgId, recipient: address, stream } = row;
  return { deliveryId, orgId, stream, address, isTest: isTestMail(row) };
}

/** The state of a subscription, for the page of its link. */
export async function stateOf(
  db: Db,
  subscription: StreamSubscription,
  now: number,
): Promise<'subscribed' | 'subscribed again' | 'unsubscribed'> {
  const { orgId, stream, address } = subscription;
  if (await findSuppression(db, orgId, compareKey(address), stream)) return 'unsubscribed';
  return (await isOfEarlier(db, subscription, now)) ? 'subscribed again' : 'subscribed';
}
