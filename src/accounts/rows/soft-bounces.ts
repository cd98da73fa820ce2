/**
 * Suppresses an address that keeps bouncing softly because of its mailbox: on three different days (UTC) within a month, with
 * no delivery in between. A full or closed mailbox that is not read any more costs the sender's reputation like a dead one.
 * Mail that expires because its mailbox is full counts as such a bounce on the day it expires (mail/deliver/transition.ts).
 *
 * An address has rows here only after such a bounce. From then on acceptance notes the mail sent to it (`watchRow`), which
 * is how a delivery in between is found without an index of all deliveries by recipient.
 */
import { isRecent } from '#platform/base/clock.ts';
import { newId } from '#platform/base/id.ts';
import { deleteOldest } from '#platform/database/engine/delete-old.ts';
import { insertRows } from '#platform/database/engine/insert-rows.ts';
import type { Db, Trx } from '#platform/database/engine/open.ts';
import { compareKey } from '#platform/values/address.ts';
import type { Reply } from '#platform/values/glossary.ts';
import type { NewSuppression } from './suppressions.ts';

const dayMs = 86_400_000;
const monthMs = 30 * dayMs;
const daysToSuppress = 3;
/** Rows read for one address, the newest. */
const maxRows = 1000;

export interface SoftBounce {
  orgId: string;
  recipient: string;
  emailId: string;
  category: string;
  at: number;
  reply: Reply;
}

/** The row of a mail accepted for a watched address. */
export function watchRow(orgId: string, addressKey: string, emailId: string, at: number): object {
  return {
    id: newId(),
    org_id: orgId,
    address_key: addressKey,
    email_id: emailId,
    created_at: at,
    bounced_at: null,
  };
}

/** Notes the bounces, and returns the suppressions that follow. */
export async function noteSoftBounces(trx: Trx, bounces: SoftBounce[]): Promise<NewSuppression[]> {
  const rows = bounces.map(({ orgId, recipient, emailId, at }) => ({
    ...watchRow(orgId, compareKey(recipient), emailId, at),
    bounced_at: at,
  }));
  await insertRows(trx, 'soft_bounces', rows);
  const suppressions: NewSuppression[] = [];
  for (const { orgId, recipient, emailId, category, at, reply } of bounces) {
    const addressKey = compareKey(recipient);
    if (!(await bouncesOnly(trx, { orgId, addressKey, at }))) continue;
    const reason = `soft bounces on ${daysToSuppress} days: ${category}`;
    suppressions.push({ orgId, address: recipient, addressKey, reason, emailId, reply });
    // After somebody has removed the suppression, the count starts again.
    await trx('soft_bounces').where({ org_id: orgId, address_key: addressKey }).delete();
  }
  return suppressions;
}

async function bouncesOnly(
  trx: Trx,
  { orgId, addressKey, at }: { orgId: string; addressKey: string; at: number },
): Promise<boolean> {
  const rows: { email_id: string; bounced_at: number | null }[] = await trx('soft_bounces')
    .where({ org_id: orgId, address_key: addressKey })
    .orderBy('id', 'desc')
    .limit(maxRows)
    .select('email_id', 'bounced_at');
  const times = rows
    .flatMap(({ bounced_at }) => bounced_at ?? [])
    .filter((time) => isRecent(time, at, monthMs));
  if (daysOf(times) < daysToSuppress) return false;
  const emailIds = [...new Set(rows.map(({ email_id }) => email_id))];
  const delivered: { recipient: string; delivered_at: number }[] = await trx('deliveries')
    .whereIn('email_id', emailIds)
    .whereIn('status', ['delivered', 'complained'])
    .whereNotNull('delivered_at')
    .select('recipient', 'delivered_at');
  const own = delivered.filter(({ recipient }) => compareKey(recipient) === addressKey);
  const last = Math.max(0, ...own.map(({ delivered_at }) => delivered_at));
  return daysOf(times.filter((time) => time > last)) >= daysToSuppress;
}

function daysOf(times: number[]): number {
  return new Set(times.map((time) => Math.floor(time / dayMs))).size;
}

export function forgetSoftBounces(db: Db, now: number): Promise<number> {
  return deleteOldest(db, { table: 'soft_bounces', key: 'id', time: 'created_at' }, now - monthMs);
}
