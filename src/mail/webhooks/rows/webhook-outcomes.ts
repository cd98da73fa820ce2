/**
 * Records webhook attempts: the message's new state, the attempt, the next message with the same ordering key, and the
 * health of the endpoint; many in one transaction. A message is skipped if this node has lost its lease, or if it was
 * deleted with its endpoint.
 */

import type { WebhookAttempt, WebhookVerdict } from '#mail/webhooks/classify-response.ts';
import { endpointHealthAfter } from '#mail/webhooks/endpoint-health.ts';
import { newId } from '#platform/base/id.ts';
import { insertRows } from '#platform/database/engine/insert-rows.ts';
import { type JsonColumns, jsonItems, query } from '#platform/database/engine/json-rows.ts';
import { type Db, isPostgres, type Trx } from '#platform/database/engine/open.ts';
import { inSharedCommit } from '#platform/database/engine/shared-commit.ts';
import { eventRow } from '#platform/database/tables/event-row.ts';
import { promote, type WebhookMessage } from './webhook-outbox.ts';
import { lockWebhooks, saveEndpointHealth, type Webhook } from './webhooks.ts';

export interface WebhookTry {
  message: Pick<WebhookMessage, 'id' | 'webhookId' | 'eventId' | 'orderingKey' | 'attempts'>;
  attempt: WebhookAttempt;
  verdict: WebhookVerdict;
}

export interface Disabled {
  webhook: Webhook;
  reason: string;
}

/** Returns, for each attempt, the endpoint that it disabled, or null. */
export async function recordTries(db: Db, node: string, tries: WebhookTry[]): Promise<(Disabled | null)[]> {
  return inSharedCommit(db, async (trx) => {
    const webhooks = await lockWebhooks(
      trx,
      tries.map(({ message }) => message.webhookId),
    );
    const updated = await updateMessages(trx, node, tries);
    const kept = tries.filter(({ message }) => updated.has(message.id));
    await insertRows(trx, 'webhook_attempts', kept.map(attemptRow));
    const final = kept.filter(({ verdict }) => isFinal(verdict)).map(({ message }) => message);
    await promote(trx, final, Math.max(...tries.map(endOf)));
    const disabled = new Map<WebhookTry, Disabled>();
    for (const webhook of webhooks) {
      const own = kept
        .filter(({ message }) => message.webhookId === webhook.id)
        .sort((a, b) => endOf(a) - endOf(b));
      const last = own.at(-1);
      if (!last) continue;
      const health = endpointHealthAfter(webhook, own.map(healthInput));
      const at = endOf(last);
      if (!(await saveEndpointHealth(trx, webhook, health, at))) continue;
      const { id: webhookId, orgId, url } = webhook;
      const reason = health.disable!;
      disabled.set(last, { webhook, reason });
      await trx('events').insert(
        eventRow({ orgId, type: 'webhook.disabled', at, data: { webhookId, url, reason } }),
      );
    }
    return tries.map((one) => disabled.get(one) ?? null);
  });
}

const endOf = ({ attempt }: WebhookTry) => attempt.endedAt;

const healthInput = (one: WebhookTry) => ({
  startedAt: one.attempt.startedAt,
  endedAt: endOf(one),
  verdict: one.verdict,
  error: one.attempt.error,
});

const isFinal = ({ kind }: WebhookVerdict) => kind === 'delivered' || kind === 'failed';

async function updateMessages(trx: Trx, node: string, tries: WebhookTry[]): Promise<Set<string>> {
  const rows = jsonItems<WebhookTry>(trx, { id: ['uuid', ({ message }) => message.id], ...columns });
  const { from, column } = rows;
  const assignments = Object.keys(columns).map((name) => `${name} = ${column(name)}`);
  // The `+` keeps SQLite from using the index on lease_owner: it would read all that this node has leased for each row.
  const owner = `${isPostgres(trx) ? '' : '+'}webhook_messages.lease_owner`;
  const updated = await query<{ id: string }>(
    trx,
    `update webhook_messages set ${assignments.join(', ')}, lease_owner = null
     from ${from} where webhook_messages.id = ${column('id')} and ${owner} = ? returning webhook_messages.id`,
    [rows.json(tries), node],
  );
  return new Set(updated.map(({ id }) => id));
}

/** The columns that an attempt changes, besides the lease. */
const columns: JsonColumns<WebhookTry> = {
  status: ['text', ({ verdict }) => (isFinal(verdict) ? verdict.kind : 'queued')],
  attempts: ['integer', ({ message }) => message.attempts + 1],
  lane: ['uuid', ({ message, verdict }) => (isFinal(verdict) ? null : message.orderingKey)],
  due_at: ['bigint', dueAfter],
  updated_at: ['bigint', endOf],
};

/** 'gone' disables the endpoint; if it is enabled again, this message is tried first. */
function dueAfter(one: WebhookTry): number | null {
  if (one.verdict.kind === 'again') return one.verdict.dueAt;
  return one.verdict.kind === 'gone' ? endOf(one) : null;
}

export function attemptRow({ message, attempt }: Omit<WebhookTry, 'verdict'>): object {
  return {
    id: newId(),
    message_id: message.id,
    webhook_id: message.webhookId,
    number: message.attempts + 1,
    started_at: attempt.startedAt,
    duration: attempt.duration,
    url: attempt.url,
    status: attempt.answer?.status ?? null,
    answer: attempt.answer?.text ?? null,
    error: attempt.error,
  };
}
