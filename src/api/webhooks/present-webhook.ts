/** Converts webhooks and their attempts to the members of responses, without secrets. */
import { iso, isoOrNull } from '../../base/clock.ts';
import type { WebhookAttemptRecord } from '../../db/webhooks/webhook-attempts.ts';
import type { Webhook } from '../../db/webhooks/webhooks.ts';
import type { EventType } from '../../glossary.ts';
import type { WebhookAttempt } from '../../webhooks/classify-response.ts';
import type { AttemptOut, WebhookAttemptsOut, WebhookOut } from './schema.ts';

export function presentWebhook(webhook: Webhook): WebhookOut {
  const { id, url, types, status, reason } = webhook;
  return {
    id,
    url,
    events: types as EventType[],
    status,
    reason,
    failingSince: isoOrNull(webhook.failingSince),
    pausedUntil: isoOrNull(webhook.pausedUntil),
    createdAt: iso(webhook.createdAt),
  };
}

export function presentAttempts({
  startedAt,
  duration,
  url,
  answer,
  error,
}: WebhookAttempt): WebhookAttemptsOut {
  const [status, text] = [answer?.status ?? null, answer?.text ?? null];
  return { at: iso(startedAt), durationMs: duration, url, status, answer: text, error };
}

export function presentAttempt({ startedAt, duration, type, ...attempt }: WebhookAttemptRecord): AttemptOut {
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
