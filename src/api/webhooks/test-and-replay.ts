/**
 * The calls that post events to a webhook: a test at once, and a replay; and the list of past attempts. A test and a
 * replay end when their caller disconnects; a replay can be repeated.
 */
import type { z } from 'zod';
import { listWebhookAttempts } from '../../db/webhooks/webhook-attempts.ts';
import { type ReplaySelection, replay } from '../../db/webhooks/webhook-replay-rows.ts';
import { Refusal } from '../../mail/refusal.ts';
import { testWebhook } from '../../webhooks/endpoints.ts';
import { answer, exampleId, exampleTime, goneSignal, readPage } from '../management.ts';
import { presentAttempt, presentStoredAttempt } from './present-webhook.ts';
import { webhooks } from './routes.ts';
import { attemptsQuery, expectedReplay, replayRequest, webhookSchemas } from './schema.ts';

/** A webhook can take up to 15 seconds to respond. */
const maxTests = 4;

const outcome = {
  at: exampleTime,
  durationMs: 84,
  url: 'https://app.example.com/webhooks',
  status: 200,
  answer: 'thank you',
  error: null,
};

const { ReplayAnswer, WebhookAttemptsAnswer, WebhookTestAnswer } = webhookSchemas;

export const testAndReplayEndpoints = [
  webhooks.item({
    route: 'POST /webhooks/{id}/test',
    operationId: 'testWebhook',
    summary: 'Test a webhook',
    description: 'Posts the event `webhook.test` once and immediately, even if the webhook is disabled.',
    response: answer('The result of the post.', WebhookTestAnswer, 'The webhook accepted it', {
      id: exampleId,
      ok: true,
      attempt: outcome,
    }),
    maxInFlight: maxTests,
    async respond({ db, found, attemptWebhook, clock, context }) {
      const signal = goneSignal(context);
      const attempt = await testWebhook(db, found, { attemptWebhook, clock, signal });
      return { id: found.id, ok: attempt.error === null, attempt: presentAttempt(attempt) };
    },
  }),
  webhooks.item({
    route: 'GET /webhooks/{id}/attempts',
    operationId: 'listWebhookAttempts',
    summary: 'List webhook attempts',
    description: 'The recent posts to a webhook and its responses.',
    query: attemptsQuery,
    response: answer('A page of attempts.', WebhookAttemptsAnswer, 'A test', {
      attempts: [{ id: exampleId, eventId: exampleId, type: 'webhook.test', number: 1, ...outcome }],
      next: null,
    }),
    async respond({ db, found, query }) {
      const { eventId } = query;
      const { page, next } = await readPage(query, (rows) =>
        listWebhookAttempts(db, found.id, { ...rows, eventId }),
      );
      return { attempts: page.map(presentStoredAttempt), next };
    },
  }),
  webhooks.item({
    route: 'POST /webhooks/{id}/replay',
    operationId: 'replayWebhook',
    summary: 'Replay events',
    description:
      'Posts events again: one event, all events that were given up, or all events of a time range. Events of the right ' +
      'type that were never posted, for instance because the webhook was disabled, are posted too. You can repeat a ' +
      'replay that was interrupted.',
    body: {
      schema: replayRequest,
      summary: 'Everything since a time',
      example: { since: '2026-03-02T08:00:00Z' },
    },
    response: answer(
      'The events are posted within a second if the webhook accepts them.',
      ReplayAnswer,
      'Nothing happened since then',
      { id: exampleId, replayed: 0 },
    ),
    errors: {
      VALIDATION_ERROR: {
        issues: [
          {
            code: 'custom',
            expected: expectedReplay,
            received: 'object',
            path: [],
            message: `body: must be ${expectedReplay}`,
          },
        ],
      },
    },
    maxInFlight: 1,
    async respond({ db, found, body, now, eventSignal, context }) {
      const selection = selectionOf(body, now);
      const replayed = await replay(db, found, selection, now, goneSignal(context));
      if ('eventId' in selection && replayed === 0) throw new Refusal('NOT_FOUND', 'There is no such event.');
      eventSignal.notify();
      return { id: found.id, replayed };
    },
  }),
];

/** The schema has made sure that exactly one of the three is given. */
function selectionOf(
  { eventId, since, until }: z.output<typeof replayRequest>,
  now: number,
): ReplaySelection {
  if (eventId !== undefined) return { eventId };
  return since === undefined ? { failed: true } : { since, until: until ?? now };
}
