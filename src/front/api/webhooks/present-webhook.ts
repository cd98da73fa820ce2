/** Converts webhooks and their attempts to the members of responses, without secrets. */

import type { WebhookAttempt } from '#mail/webhooks/classify-response.ts';
import type { WebhookAttemptRecord } from '#mail/webhooks/rows/webhook-attempts.ts';
import type { Webhook } from '#mail/webhooks/rows/webhooks.ts';
import { iso, isoOrNull } from '#platform/base/clock.ts';
import type { EventType } from '#platform/values/glossary.ts';

export function presentWebhook(webhook: Webhook) {
  const { id, url, types, format, publicKey, status, reason } = webhook;
  return {
    id,
    url,
    events: types as EventType[],
    format,
    publicKey,
    status,
    reason,
    failingSince: isoOrNull(webhook.failingSince),
    pausedUntil: isoOrNull(webhook.pausedUntil),
    createdAt: iso(webhook.createdAt),
  };
}

/** An attempt that has just been made. */
export function presentAttempt({ startedAt, duration, url, answer, error }: WebhookAttempt) {
  const status = answer?.status ?? null;
  return { at: iso(startedAt), durationMs: duration, url, status, answer: answer?.text ?? null, error };
}

/** An attempt from the database. */
export function presentStoredAttempt({ startedAt, duration, type, ...attempt }: WebhookAttemptRecord) {
  const { id, eventId, number, url, status, answer, error } = attempt;
  return {
    id,
    eventId,
    type: type as EventType,
    number,
    at: iso(startedAt),
    durationMs: duration,
    url,
    status,
    answer,
    error,
  };
}
