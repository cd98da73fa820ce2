/** Webhooks and their attempts for a person; for --json in the form of the API (front/api/webhooks/present-webhook.ts). */

import { presentWebhook } from '#front/api/webhooks/present-webhook.ts';
import type { WebhookAttempt } from '#mail/webhooks/classify-response.ts';
import type { WebhookAttemptRecord } from '#mail/webhooks/rows/webhook-attempts.ts';
import type { Webhook } from '#mail/webhooks/rows/webhooks.ts';
import { span } from '#platform/base/span.ts';
import type { Cell } from './cells.ts';
import type { Rows } from './table.ts';

export function documentOf(webhook: Webhook) {
  const { id, ...members } = presentWebhook(webhook);
  return { id, orgId: webhook.orgId, ...members };
}

export function webhookFields(webhook: Webhook): Record<string, Cell> {
  return {
    id: webhook.id,
    url: webhook.url,
    events: webhook.types.join(' ') || 'all',
    format: webhook.format,
    'public key': webhook.publicKey,
    status: { state: webhook.status },
    reason: webhook.reason,
    'failing since': { time: webhook.failingSince, past: true },
    'paused until': { time: webhook.pausedUntil },
    created: { time: webhook.createdAt, past: true },
  };
}

export function rowsOf(webhooks: Webhook[]): Rows {
  return {
    head: ['ID', 'STATUS', 'FAILING SINCE', 'CREATED', 'EVENTS', 'URL'],
    rows: webhooks.map((webhook) => [
      { id: webhook.id },
      { state: webhook.status },
      { time: webhook.failingSince, past: true },
      { time: webhook.createdAt, past: true },
      webhook.types.join(' ') || 'all',
      webhook.url,
    ]),
    empty: 'There is no webhook yet; `postern webhook add` makes one.',
    cut: 'last',
  };
}

export function attemptFields({ startedAt, duration, answer, error }: WebhookAttempt): Record<string, Cell> {
  const { status = null, text = null } = answer ?? {};
  return { posted: { time: startedAt, past: true }, took: span(duration), status, answer: text, error };
}

export function attemptRows(records: WebhookAttemptRecord[]): Rows {
  return {
    head: ['AT', 'EVENT', 'TYPE', 'TRY', 'TOOK', 'STATUS', 'ANSWER'],
    rows: records.map(({ eventId, type, number, startedAt, duration, status, answer, error }) => [
      { time: startedAt, past: true },
      eventId,
      type,
      number,
      span(duration),
      status,
      status === null ? error : (answer ?? error),
    ]),
    empty: 'Nothing was tried yet.',
    cut: 'last',
  };
}
