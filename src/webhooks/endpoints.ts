/**
 * What the owner of an endpoint does with it, from wherever: add, rotate its secret, test. A secret is shown when it is
 * made, and kept sealed. What cannot be done is a WebhookFault, whose message says why.
 */
import type { Seal } from '../accounts/seal.ts';
import type { Clock } from '../base/clock.ts';
import { newId } from '../base/id.ts';
import { insertWithin } from '../db/accounts/organizations.ts';
import type { Db } from '../db/engine/open.ts';
import { insertTried } from '../db/webhooks/webhook-attempts.ts';
import { attemptRow } from '../db/webhooks/webhook-outcomes.ts';
import { findWebhook, insertWebhook, replaceSecret, type Webhook } from '../db/webhooks/webhooks.ts';
import { eventTypes } from '../glossary.ts';
import type { WebhookAttempt } from './classify-response.ts';
import { parseWebhookUrl } from './endpoint-url.ts';
import { newSecret, secretsOf } from './signature.ts';
import type { AttemptWebhook } from './webhook-attempt.ts';

class WebhookFault extends Error {}

/** Of one organization, as it adds them itself: each is told of every event. */
const maxWebhooks = 50;

/** Why one that its owner has disabled is. */
export const disabledByOwner = 'its owner has disabled it';

/** How long the old secret signs beside the new one. */
const overlapMs = 24 * 60 * 60_000;

export interface AddedWebhook {
  webhook: Webhook;
  /** Shown this once. */
  secret: string;
}

export interface WebhookRequest {
  orgId: string;
  url: string;
  /** None: all. */
  types: readonly string[];
}

/** As an organization adds one for itself. The fault: it has as many as it may. */
export async function addOwnWebhook(
  db: Db,
  wanted: WebhookRequest,
  terms: Parameters<typeof addWebhook>[2],
): Promise<AddedWebhook | { fault: string }> {
  const limit = { orgId: wanted.orgId, table: 'webhooks', max: maxWebhooks };
  const added = await insertWithin(db, limit, (trx) => addWebhook(trx, wanted, terms));
  return added ?? { fault: `This organization has ${maxWebhooks} webhooks; remove one first.` };
}

export async function addWebhook(
  db: Db,
  { orgId, url, types }: WebhookRequest,
  { seal, allowPrivate, now }: { seal: Seal; allowPrivate: boolean; now: number },
): Promise<AddedWebhook> {
  const parsed = parseWebhookUrl(url, allowPrivate);
  if (typeof parsed === 'object') throw new WebhookFault(parsed.fault);
  const unknown = types.find((type) => !(eventTypes as readonly string[]).includes(type));
  if (unknown !== undefined) {
    throw new WebhookFault(`"${unknown}" is not an event type; there are ${eventTypes.join(', ')}`);
  }
  const secret = newSecret();
  const kept = { orgId, url: parsed, types: [...new Set(types)], secret: seal.close(secret) };
  const id = await insertWebhook(db, kept, now);
  return { webhook: (await findWebhook(db, id, orgId))!, secret };
}

/** Null where the endpoint is gone. */
export async function rotateSecret(
  db: Db,
  id: string,
  { seal, now }: { seal: Seal; now: number },
): Promise<{ secret: string; oldSecretUntil: number } | null> {
  const secret = newSecret();
  const until = now + overlapMs;
  return (await replaceSecret(db, id, seal.close(secret), { now, until }))
    ? { secret, oldSecretUntil: until }
    : null;
}

interface TestParts {
  attemptWebhook: AttemptWebhook;
  clock: Pick<Clock, 'now'>;
  /** Nobody waits for it any more. */
  signal?: AbortSignal;
}

/** The event webhook.test, posted at once and once, to an endpoint that is disabled too; kept like any other. */
export async function testWebhook(
  db: Db,
  webhook: Webhook,
  { attemptWebhook, clock, signal = new AbortController().signal }: TestParts,
): Promise<WebhookAttempt> {
  const now = clock.now();
  const { id: webhookId, orgId, url } = webhook;
  const event = {
    ...{ id: newId(), orgId, type: 'webhook.test', at: now, recipient: null },
    ...{ data: { webhookId, url }, email: null, position: 0 },
  };
  const secrets = secretsOf(webhook, now);
  const attempt = await attemptWebhook({ url, secrets, event }, signal);
  const message = { id: newId(), webhookId, eventId: event.id, lane: event.id, attempts: 0 };
  await insertTried(db, {
    event: {
      ...{ id: event.id, org_id: orgId, email_id: null, type: event.type, recipient: null, at: now },
      data: JSON.stringify(event.data),
    },
    message: {
      ...{ id: message.id, webhook_id: webhookId, event_id: event.id, type: event.type, position: 0 },
      ...{ lane: null, status: attempt.error === null ? 'delivered' : 'failed', attempts: 1, due_at: null },
      ...{ created_at: now, updated_at: now },
    },
    attempt: attemptRow({ message, attempt }),
  });
  return attempt;
}
