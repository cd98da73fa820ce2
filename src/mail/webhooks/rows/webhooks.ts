/**
 * Webhook endpoints of organizations. The secrets are sealed (accounts/seal.ts).
 *
 * An endpoint's row is also the lock of its messages: lock it before messages are added or change their state, and lock
 * several endpoints in the order of their ids.
 */

import { settledPosition } from '#mail/record/rows/read-events.ts';
import type { EndpointHealth } from '#mail/webhooks/endpoint-health.ts';
import type { WebhookFormatName } from '#mail/webhooks/subscribed-types.ts';
import { newId } from '#platform/base/id.ts';
import type { Db, Trx } from '#platform/database/engine/open.ts';
import { json, number, orNull, records, text, value } from '#platform/database/engine/records.ts';

export const webhooks = records({
  id: text,
  orgId: text,
  url: text,
  /** The event types that it gets; none: all. */
  types: json<string[]>(),
  format: value<WebhookFormatName>(),
  status: value<'active' | 'disabled'>(),
  /** The reason why it is disabled. */
  reason: orNull(text),
  secret: text,
  /** Verifies posts, in a format whose secret only signs. */
  publicKey: orNull(text),
  oldSecret: orNull(text),
  oldSecretUntil: orNull(number),
  failingSince: orNull(number),
  pausedUntil: orNull(number),
  createdAt: number,
  updatedAt: number,
});

export type Webhook = ReturnType<typeof webhooks.read>;

export type NewWebhook = Pick<Webhook, 'orgId' | 'url' | 'types' | 'format' | 'secret' | 'publicKey'>;

/** The endpoint gets the events from now on. */
export async function insertWebhook(db: Db, webhook: NewWebhook, now: number): Promise<string> {
  const id = newId();
  const row = webhooks.write({
    ...webhook,
    id,
    status: 'active',
    createdAt: now,
    updatedAt: now,
  });
  await db('webhooks').insert({ ...row, after_position: await settledPosition(db) });
  return id;
}

/** `orgId` null: an endpoint of any organization. */
export async function findWebhook(db: Db, id: string, orgId: string | null): Promise<Webhook | null> {
  const row = await db('webhooks')
    .where(orgId === null ? { id } : { id, org_id: orgId })
    .first();
  return row ? webhooks.read(row) : null;
}

export async function listWebhooks(db: Db, orgId: string | null): Promise<Webhook[]> {
  const rows = db('webhooks').orderBy('id');
  return (await (orgId === null ? rows : rows.where({ org_id: orgId }))).map(webhooks.read);
}

export async function hasActiveWebhooks(db: Db): Promise<boolean> {
  const row = await db('webhooks').whereRaw("status = 'active'").select('id').first();
  return row !== undefined;
}

/**
 * Also deletes its messages and their attempts. Receiving routes that post to it keep their mail from now on: to post it to all
 * other endpoints is not what their owner said.
 */
export async function deleteWebhook(db: Db, id: string): Promise<boolean> {
  return db.transaction(async (trx) => {
    await trx('receiving_routes').where({ webhook_id: id }).update({ action: 'store', webhook_id: null });
    return (await trx('webhooks').where({ id }).delete()) > 0;
  });
}

/** The new secret signs from now on; the old one signs as well until `until`. */
export async function replaceSecret(
  db: Db,
  id: string,
  { secret, publicKey }: Pick<Webhook, 'secret' | 'publicKey'>,
  times: { now: number; until: number },
): Promise<boolean> {
  const changed = await db('webhooks')
    .where({ id })
    .update({
      old_secret: db.ref('secret'),
      old_secret_until: times.until,
      secret,
      public_key: publicKey,
      updated_at: times.now,
    });
  return changed > 0;
}

/** Its waiting messages continue. */
export async function activateWebhook(db: Db, id: string, now: number): Promise<boolean> {
  const fresh = { status: 'active', reason: null, failing_since: null, paused_until: null, updated_at: now };
  return (await db('webhooks').where({ id }).update(fresh)) > 0;
}

/** Stops posting to the endpoint; its waiting messages stay. A disabled endpoint keeps its reason. */
export async function disableWebhook(db: Db, id: string, reason: string, now: number): Promise<void> {
  await db('webhooks')
    .where({ id })
    .whereRaw("status = 'active'")
    .update({ status: 'disabled', reason, updated_at: now });
}

/** Sets the event types that it gets from now on; none: all. */
export async function setWebhookTypes(
  db: Db,
  id: string,
  types: readonly string[],
  now: number,
): Promise<void> {
  await db('webhooks')
    .where({ id })
    .update({ types: JSON.stringify([...new Set(types)]), updated_at: now });
}

/** Locks and returns the endpoints that still exist. */
export async function lockWebhooks(trx: Trx, ids: Iterable<string>): Promise<Webhook[]> {
  const rows = await trx('webhooks')
    .whereIn('id', [...new Set(ids)])
    .orderBy('id')
    .forUpdate();
  return rows.map(webhooks.read);
}

/** Saves the new health if it differs; true if this disables the endpoint. */
export async function saveEndpointHealth(
  trx: Trx,
  before: Webhook,
  after: EndpointHealth,
  now: number,
): Promise<boolean> {
  const isDisabled = after.disable !== null && before.status === 'active';
  const { failingSince, pausedUntil } = after;
  if (!isDisabled && failingSince === before.failingSince && pausedUntil === before.pausedUntil) return false;
  await trx('webhooks')
    .where({ id: before.id })
    .update({
      failing_since: failingSince,
      paused_until: pausedUntil,
      updated_at: now,
      ...(isDisabled && { status: 'disabled', reason: after.disable }),
    });
  return isDisabled;
}
