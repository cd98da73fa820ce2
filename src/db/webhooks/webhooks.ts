/**
 * Endpoints of organizations. The secrets are kept sealed (accounts/seal.ts).
 *
 * An endpoint's row is also the lock of its messages: whoever makes messages of it or moves them between states takes
 * it first, and where there are several, in the order of their ids.
 */
import { newId } from '../../base/id.ts';
import type { EndpointHealth } from '../../webhooks/endpoint-health.ts';
import type { Db, Trx } from '../engine/open.ts';
import { settledPosition } from '../events/read-events.ts';

export interface Webhook {
  id: string;
  orgId: string;
  url: string;
  /** Which event types it wants; none: all. */
  types: string[];
  status: 'active' | 'disabled';
  /** Why it is disabled. */
  reason: string | null;
  secret: string;
  oldSecret: string | null;
  oldSecretUntil: number | null;
  failingSince: number | null;
  pausedUntil: number | null;
  createdAt: number;
  updatedAt: number;
}

export type NewWebhook = Pick<Webhook, 'orgId' | 'url' | 'types' | 'secret'>;

/** It is told what happens from now on. */
export async function insertWebhook(db: Db, webhook: NewWebhook, now: number): Promise<string> {
  const id = newId();
  await db('webhooks').insert({
    id,
    org_id: webhook.orgId,
    url: webhook.url,
    types: JSON.stringify(webhook.types),
    status: 'active',
    secret: webhook.secret,
    after_position: await settledPosition(db),
    created_at: now,
    updated_at: now,
  });
  return id;
}

/** `orgId`: only one of that organization; null: any. */
export async function findWebhook(db: Db, id: string, orgId: string | null): Promise<Webhook | null> {
  const row = await db('webhooks')
    .where(orgId === null ? { id } : { id, org_id: orgId })
    .first();
  return row ? webhookFrom(row) : null;
}

export async function listWebhooks(db: Db, orgId: string | null): Promise<Webhook[]> {
  const rows = db('webhooks').orderBy('id');
  return (await (orgId === null ? rows : rows.where({ org_id: orgId }))).map(webhookFrom);
}

export async function hasActiveWebhooks(db: Db): Promise<boolean> {
  const row = await db('webhooks').whereRaw("status = 'active'").select('id').first();
  return row !== undefined;
}

/** With its messages and their attempts. */
export async function deleteWebhook(db: Db, id: string): Promise<boolean> {
  return (await db('webhooks').where({ id }).delete()) > 0;
}

/** The new secret signs from now on, the one that it replaces beside it until `until`. */
export async function replaceSecret(
  db: Db,
  id: string,
  secret: string,
  times: { now: number; until: number },
): Promise<boolean> {
  const changed = await db('webhooks')
    .where({ id })
    .update({ old_secret: db.ref('secret'), old_secret_until: times.until, secret, updated_at: times.now });
  return changed > 0;
}

/** What waits for it goes on. */
export async function activateWebhook(db: Db, id: string, now: number): Promise<boolean> {
  const fresh = { status: 'active', reason: null, failing_since: null, paused_until: null, updated_at: now };
  return (await db('webhooks').where({ id }).update(fresh)) > 0;
}

/** Nothing is posted to it any more; what waits for it stays. One that is disabled keeps its reason. */
export async function disableWebhook(db: Db, id: string, reason: string, now: number): Promise<void> {
  await db('webhooks')
    .where({ id })
    .whereRaw("status = 'active'")
    .update({ status: 'disabled', reason, updated_at: now });
}

/** What is told from now on; none: all. */
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

/** Locks them; those that are gone are left out. */
export async function lockWebhooks(trx: Trx, ids: Iterable<string>): Promise<Webhook[]> {
  const rows = await trx('webhooks')
    .whereIn('id', [...new Set(ids)])
    .orderBy('id')
    .forUpdate();
  return rows.map(webhookFrom);
}

/** Its new standing, where it differs; true where it was disabled by this. */
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

// biome-ignore lint/suspicious/noExplicitAny: a row is what the driver gives
function webhookFrom(row: any): Webhook {
  return {
    id: row.id,
    orgId: row.org_id,
    url: row.url,
    types: JSON.parse(row.types),
    status: row.status,
    reason: row.reason,
    secret: row.secret,
    oldSecret: row.old_secret,
    oldSecretUntil: row.old_secret_until,
    failingSince: row.failing_since,
    pausedUntil: row.paused_until,
    createdAt: row.created_at,
    updatedAt: row.updated_at,
  };
}
