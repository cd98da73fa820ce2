/**
 * Adds and changes endpoints, rotates their secrets and tests them, for API, command line and dashboard. A secret is shown once
 * and stored sealed. Invalid input throws a WebhookError whose message says what is wrong.
 */

import { insertWithin } from '#accounts/rows/organizations.ts';
import type { Seal } from '#accounts/seal.ts';
import { formatOf } from '#mail/webhooks/formats/all-formats.ts';
import { insertTried } from '#mail/webhooks/rows/webhook-attempts.ts';
import { attemptRow } from '#mail/webhooks/rows/webhook-outcomes.ts';
import {
  activateWebhook,
  disableWebhook,
  findWebhook,
  insertWebhook,
  type NewWebhook,
  replaceSecret,
  setWebhookTypes,
  type Webhook,
} from '#mail/webhooks/rows/webhooks.ts';
import type { Clock } from '#platform/base/clock.ts';
import { newId } from '#platform/base/id.ts';
import type { Db } from '#platform/database/engine/open.ts';
import { eventTypes } from '#platform/values/glossary.ts';
import { Refusal } from '#platform/values/refusal.ts';
import type { WebhookAttempt } from './classify-response.ts';
import { disabledByOwner } from './endpoint-health.ts';
import { secretsOf } from './endpoint-secrets.ts';
import { parseWebhookUrl } from './endpoint-url.ts';
import type { WebhookFormatName } from './subscribed-types.ts';
import type { AttemptWebhook } from './webhook-attempt.ts';

class WebhookError extends Error {}

/** Endpoints of one organization; each may get a copy of every event. The limit does not apply to operators. */
const maxWebhooks = 50;

/** How long the old secret also signs after a rotation. */
const overlapMs = 24 * 60 * 60_000;

export interface AddedWebhook {
  webhook: Webhook;
  /** Not available later; null if nobody needs to know it. */
  secret: string | null;
}

/** The members of the endpoint; no `types`: all; without a format: standard. */
export type WebhookRequest = Omit<NewWebhook, 'secret' | 'publicKey' | 'format'> & {
  format?: WebhookFormatName;
};

interface AddOptions {
  seal: Seal;
  allowPrivate: boolean;
  now: number;
  /** Operators have no limit. */
  requestedBy?: 'owner' | 'operator';
}

export async function addWebhook(
  db: Db,
  request: WebhookRequest,
  { seal, allowPrivate, now, requestedBy = 'operator' }: AddOptions,
): Promise<AddedWebhook> {
  const { orgId, url, types, format = 'standard' } = request;
  const parsed = parseWebhookUrl(url, allowPrivate, format);
  if ('problem' in parsed) throw new WebhookError(parsed.problem);
  const unknown = types.find((type) => !(eventTypes as readonly string[]).includes(type));
  if (unknown !== undefined) {
    throw new WebhookError(`"${unknown}" is not an event type; there are ${eventTypes.join(', ')}`);
  }
  const { secret, publicKey } = formatOf(format).newSecret();
  const row = {
    ...request,
    url: parsed.url,
    types: [...new Set(types)],
    format,
    secret: seal.close(secret || parsed.credentials),
    publicKey,
  };
  const max = requestedBy === 'owner' ? maxWebhooks : Number.POSITIVE_INFINITY;
  const id = await insertWithin(db, { orgId, table: 'webhooks', max }, (trx) => insertWebhook(trx, row, now));
  if (id === null)
    throw new Refusal('BAD_REQUEST', `This organization has ${maxWebhooks} webhooks; remove one first.`);
  return { webhook: (await findWebhook(db, id, orgId))!, secret: shownSecret(secret, publicKey) };
}

/** Absent members do not change. An endpoint that is enabled gets the events that wait for it. */
export async function changeWebhook(
  { db, now, eventSignal }: { db: Db; now: number; eventSignal?: { notify(): void } },
  { id }: Pick<Webhook, 'id'>,
  { types, enabled }: { types?: readonly string[] | undefined; enabled?: boolean | undefined },
): Promise<void> {
  if (types) await setWebhookTypes(db, id, types, now);
  if (enabled === false) await disableWebhook(db, id, disabledByOwner, now);
  if (enabled === true) {
    await activateWebhook(db, id, now);
    eventSignal?.notify();
  }
}

/** Whoever has a public key to verify posts must not get the key that signs them. */
function shownSecret(secret: string, publicKey: string | null): string | null {
  return secret === '' || publicKey !== null ? null : secret;
}

export interface RotatedSecret {
  secret: string | null;
  publicKey: string | null;
  /** Null if posts are signed only with the new secret, because the format has one signature. */
  oldSecretUntil: number | null;
}

/** Null if the endpoint has been deleted. */
export async function rotateSecret(
  db: Db,
  { id, format }: Pick<Webhook, 'id' | 'format'>,
  { seal, now }: { seal: Seal; now: number },
): Promise<RotatedSecret | null> {
  const { newSecret, hasSeveralSignatures } = formatOf(format);
  const { secret, publicKey } = newSecret();
  if (secret === '')
    throw new Refusal(
      'BAD_REQUEST',
      'Posts in this format are not signed. To change the user name and password, add the webhook again.',
    );
  const until = now + overlapMs;
  if (!(await replaceSecret(db, id, { secret: seal.close(secret), publicKey }, { now, until }))) return null;
  const oldSecretUntil = hasSeveralSignatures ? until : null;
  return { secret: shownSecret(secret, publicKey), publicKey, oldSecretUntil };
}

/**
 * Posts the event webhook.test once and immediately, even to a disabled endpoint, and stores the attempt. `signal` aborts when
 * the caller has gone away.
 */
export async function testWebhook(
  db: Db,
  webhook: Webhook,
  { attemptWebhook, clock }: { attemptWebhook: AttemptWebhook; clock: Pick<Clock, 'now'> },
  signal = new AbortController().signal,
): Promise<WebhookAttempt> {
  const now = clock.now();
  const { id: webhookId, orgId, url, format } = webhook;
  const event = {
    id: newId(),
    orgId,
    type: 'webhook.test',
    at: now,
    recipient: null,
    data: { webhookId, url },
    email: null,
    position: 0,
  };
  const secrets = secretsOf(webhook, now);
  const attempt = await attemptWebhook({ url, format, secrets, event }, signal);
  const message = { id: newId(), webhookId, eventId: event.id, orderingKey: event.id, attempts: 0 };
  await insertTried(db, {
    event: {
      id: event.id,
      org_id: orgId,
      email_id: null,
      type: event.type,
      recipient: null,
      at: now,
      data: JSON.stringify(event.data),
    },
    message: {
      id: message.id,
      webhook_id: webhookId,
      event_id: event.id,
      type: event.type,
      position: 0,
      lane: null,
      status: attempt.error === null ? 'delivered' : 'failed',
      attempts: 1,
      due_at: null,
      created_at: now,
      updated_at: now,
    },
    attempt: attemptRow({ message, attempt }),
  });
  return attempt;
}
