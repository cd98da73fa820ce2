/** /api/public/webhooks in the document. */

import { query } from './list-paths.ts';
import {
  badId,
  badLimit,
  badMember,
  badType,
  doneAnswer,
  exampleId,
  idInPath,
  managing,
  missing,
  one,
  paging,
} from './management-parts.ts';
import type { Document } from './openapi-document.ts';

const tag = 'Webhooks';
const time = '2026-03-02T08:15:30.120Z';
const url = 'https://app.example.com/webhooks';
const events = ['email.bounced', 'email.complained'];
const nothingWrong = { reason: null, failingSince: null, pausedUntil: null, createdAt: time };
const active = { id: exampleId, url, events, status: 'active', ...nothingWrong };
const disabled = { ...active, events: [], status: 'disabled', reason: 'its owner has disabled it' };
const secret = 'whsec_dGhpcyBpcyBub3QgYSBzZWNyZXQhIQ==';
const tried = { at: time, durationMs: 84, url, status: 200, answer: 'thank you', error: null };
const attempt = { id: exampleId, eventId: exampleId, type: 'webhook.test', number: 1, ...tried };

const errors = { BAD_REQUEST: badId, NOT_FOUND: missing('webhook') };
const idParameter = { parameters: [idInPath], errors };
const [ofAll, ofOne] = ['HEAD, GET, POST', 'HEAD, GET, PATCH, DELETE'];
const ways = '`eventId`, or `failed`, or `since` with or without `until`';

export const webhookPaths: Document['paths'] = {
  '/api/public/webhooks': {
    get: managing({
      ...{ operationId: 'listWebhooks', tag, summary: 'List webhooks', allow: ofAll },
      ...{ description: 'All endpoints, without their secrets.', answerIs: 'The endpoints.' },
      answer: one('WebhooksAnswer', 'One endpoint', { success: true, webhooks: [active] }),
    }),
    post: managing({
      ...{ operationId: 'addWebhook', tag, summary: 'Add a webhook', allow: ofAll },
      description:
        'Has events posted to a URL from now on, signed as Standard Webhooks has it. The secret is shown in this answer and ' +
        'never again. An organization may have fifty.',
      body: one('NewWebhook', 'For bounces and complaints', { url, events }),
      answerIs: 'The endpoint, and its secret.',
      answer: one('NewWebhookAnswer', 'Added', { success: true, webhook: active, secret }),
      errors: { VALIDATION_ERROR: badMember('url', 'string', 'undefined'), BAD_REQUEST: badType },
    }),
  },
  '/api/public/webhooks/{id}': {
    get: managing({
      ...{ operationId: 'getWebhook', tag, summary: 'Show a webhook', allow: ofOne, ...idParameter },
      ...{
        description: 'An endpoint, and how much waits for it or was given up.',
        answerIs: 'The endpoint.',
      },
      answer: one('WebhookAnswer', 'All is told', { success: true, webhook: active, open: 0, failed: 0 }),
    }),
    patch: managing({
      ...{ operationId: 'changeWebhook', tag, summary: 'Change a webhook', allow: ofOne, ...idParameter },
      description:
        'Sets which events an endpoint is told, and disables or enables it. It is told nothing of what happens while it is ' +
        'disabled, unless that is replayed.',
      body: one('WebhookChange', 'All events; disabled', { events: [], enabled: false }),
      answerIs: 'The endpoint as it is now.',
      answer: one('WebhookAnswer', 'Disabled', { success: true, webhook: disabled, open: 0, failed: 0 }),
      errors: { VALIDATION_ERROR: badMember('enabled', 'boolean', 'string'), ...errors },
    }),
    delete: managing({
      ...{ operationId: 'removeWebhook', tag, summary: 'Remove a webhook', allow: ofOne, ...idParameter },
      ...{
        description: 'Forgets an endpoint, and what waits for it.',
        answerIs: 'It is gone.',
        answer: doneAnswer,
      },
    }),
  },
  '/api/public/webhooks/{id}/rotate': {
    post: managing({
      ...{ operationId: 'rotateWebhookSecret', tag, summary: "Rotate a webhook's secret", ...idParameter },
      ...{
        description: 'Makes a new secret; for 24 hours both sign.',
        allow: 'POST',
        answerIs: 'The new secret.',
      },
      answer: one('NewSecretAnswer', 'Made', { success: true, id: exampleId, secret, oldSecretUntil: time }),
    }),
  },
  '/api/public/webhooks/{id}/test': {
    post: managing({
      ...{ operationId: 'testWebhook', tag, summary: 'Test a webhook', allow: 'POST', ...idParameter },
      description: 'Posts the event `webhook.test` now and once, to an endpoint that is disabled too.',
      answerIs: 'What came of it.',
      answer: one('WebhookTestAnswer', 'It was taken', {
        ...{ success: true, id: exampleId, ok: true, attempt: tried },
      }),
    }),
  },
  '/api/public/webhooks/{id}/attempts': {
    get: managing({
      ...{ operationId: 'listWebhookAttempts', tag, summary: 'List what was posted', allow: 'HEAD, GET' },
      description: 'What was posted to an endpoint lately, and what it answered.',
      parameters: [
        idInPath,
        query('eventId', 'Posts of this event alone.', { type: 'string', format: 'uuid' }),
        ...paging(20, 1000),
      ],
      answerIs: 'A page of attempts.',
      answer: one('WebhookAttemptsAnswer', 'A test', { success: true, attempts: [attempt], next: null }),
      errors: { VALIDATION_ERROR: badLimit(1000), ...errors },
    }),
  },
  '/api/public/webhooks/{id}/replay': {
    post: managing({
      ...{ operationId: 'replayWebhook', tag, summary: 'Post again', allow: 'POST', ...idParameter },
      description:
        'Posts again: one event, all that was given up, or what happened in a time. What the endpoint was not told of and ' +
        'wants is told as well. A replay that was cut off can be given again.',
      body: one('Replay', 'What happened since then', { since: '2026-03-02T08:00:00Z' }),
      answerIs: 'It is posted within a second, where the endpoint takes it.',
      answer: one('ReplayAnswer', 'Nothing happened', { success: true, id: exampleId, replayed: 0 }),
      errors: {
        VALIDATION_ERROR: {
          issues: [
            {
              code: 'custom',
              expected: ways,
              received: 'object',
              path: [],
              message: `body: must be ${ways}`,
            },
          ],
        },
        ...errors,
      },
    }),
  },
};
