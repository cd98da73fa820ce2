/**
 * The calls that post events to a webhook: a test at once, and a replay; and the list of past attempts. A test and a
 * replay end when their caller disconnects; a replay can be repeated.
 */
import type { z } from 'zod';
import { answer, goneSignal, readPage } from '#front/api/management.ts';
import { noBody } from '#front/http/body-limits.ts';
import { testWebhook } from '#mail/webhooks/endpoints.ts';
import { listWebhookAttempts } from '#mail/webhooks/rows/webhook-attempts.ts';
import { type ReplaySelection, replay } from '#mail/webhooks/rows/webhook-replay-rows.ts';
import { Refusal } from '#platform/values/refusal.ts';
import { presentAttempt, presentStoredAttempt } from './present-webhook.ts';
import { webhooks } from './routes.ts';
import { attemptsQuery, replayRequest, webhookSchemas } from './schema.ts';

/** A webhook can take up to 15 seconds to respond. */
const maxTests = 4;

const { ReplayAnswer, WebhookAttemptsAnswer, WebhookTestAnswer } = webhookSchemas;

export const testAndReplayEndpoints = [
  webhooks.item({
    route: 'POST /webhooks/{id}/test',
    body: noBody,
    operationId: 'testWebhook',
    summary: 'Test a webhook',
    description: 'Posts the event `webhook.test` once and immediately, even if the webhook is disabled.',
    response: answer('The result of the post.', WebhookTestAnswer),
    maxInFlight: maxTests,
    async respond({ db, found, attemptWebhook, clock, context }) {
      const signal = goneSignal(context);
      const attempt = await testWebhook(db, found, { attemptWebhook, clock }, signal);
      return { id: found.id, ok: attempt.error === null, attempt: presentAttempt(attempt) };
    },
  }),
  webhooks.item({
    route: 'GET /webhooks/{id}/attempts',
    operationId: 'listWebhookAttempts',
    summary: 'List webhook attempts',
    description: 'The recent posts to a webhook and its responses.',
    query: attemptsQuery,
    response: answer('A page of attempts.', WebhookAttemptsAnswer),
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
    body: replayRequest,
    response: answer('The events are posted within a second if the webhook accepts them.', ReplayAnswer),
    errors: {
      VALIDATION_ERROR: true,
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
