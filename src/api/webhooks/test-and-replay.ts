/**
 * The calls that post events to a webhook: a test at once, and a replay; and the list of past attempts. A test and a
 * replay end when their caller disconnects; a replay can be repeated.
 */
import type { Context } from 'koa';
import { listWebhookAttempts } from '../../db/webhooks/webhook-attempts.ts';
import { type ReplaySelection, replay } from '../../db/webhooks/webhook-replay-rows.ts';
import { Refusal } from '../../mail/refusal.ts';
import { testWebhook } from '../../webhooks/endpoints.ts';
import { invalidLimit, jsonResponse } from '../endpoint.ts';
import {
  exampleId,
  exampleTime,
  goneSignal,
  idInPath,
  invalidId,
  jsonBody,
  type Management,
  managementEndpoints,
  notFound,
  readJson,
} from '../management.ts';
import { readQuery } from '../query.ts';
import { presentAttempt, presentAttempts } from './present-webhook.ts';
import { requireWebhook } from './routes.ts';
import { attemptsQuery, expectedReplay, replayRequest, webhookSchemas } from './schema.ts';

/** A webhook can take up to 15 seconds to respond. */
const maxTests = 4;

const parameters = [idInPath];
const errors = { BAD_REQUEST: invalidId, NOT_FOUND: notFound('webhook') };
const outcome = {
  at: exampleTime,
  durationMs: 84,
  url: 'https://app.example.com/webhooks',
  status: 200,
  answer: 'thank you',
  error: null,
};

export const testAndReplayEndpoints = managementEndpoints('Webhooks', [
  {
    route: 'POST /webhooks/{id}/test',
    operationId: 'testWebhook',
    summary: 'Test a webhook',
    description: 'Posts the event `webhook.test` once and immediately, even if the webhook is disabled.',
    parameters,
    response: jsonResponse(
      'The result of the post.',
      webhookSchemas.WebhookTestAnswer,
      'The webhook accepted it',
      {
        success: true,
        id: exampleId,
        ok: true,
        attempt: outcome,
      },
    ),
    errors,
    respond: test,
    maxInFlight: maxTests,
  },
  {
    route: 'GET /webhooks/{id}/attempts',
    operationId: 'listWebhookAttempts',
    summary: 'List webhook attempts',
    description: 'The recent posts to a webhook and its responses.',
    parameters,
    query: attemptsQuery,
    response: jsonResponse('A page of attempts.', webhookSchemas.WebhookAttemptsAnswer, 'A test', {
      success: true,
      attempts: [{ id: exampleId, eventId: exampleId, type: 'webhook.test', number: 1, ...outcome }],
      next: null,
    }),
    errors: { VALIDATION_ERROR: invalidLimit(1000), ...errors },
    respond: list,
  },
  {
    route: 'POST /webhooks/{id}/replay',
    operationId: 'replayWebhook',
    summary: 'Replay events',
    description:
      'Posts events again: one event, all events that were given up, or all events of a time range. Events of the right ' +
      'type that were never posted, for instance because the webhook was disabled, are posted too. You can repeat a ' +
      'replay that was interrupted.',
    parameters,
    body: jsonBody(replayRequest, 'Everything since a time', { since: '2026-03-02T08:00:00Z' }),
    response: jsonResponse(
      'The events are posted within a second if the webhook accepts them.',
      webhookSchemas.ReplayAnswer,
      'Nothing happened since then',
      {
        success: true,
        id: exampleId,
        replayed: 0,
      },
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
      ...errors,
    },
    respond: replayEvents,
    maxInFlight: 1,
  },
]);

async function test(context: Context, orgId: string, parts: Management): Promise<object> {
  const { db, attemptWebhook, clock } = parts;
  const webhook = await requireWebhook(context, orgId, parts);
  const attempt = await testWebhook(db, webhook, {
    attemptWebhook: attemptWebhook,
    clock,
    signal: goneSignal(context),
  });
  return { id: webhook.id, ok: attempt.error === null, attempt: presentAttempts(attempt) };
}

async function list(context: Context, orgId: string, parts: Management): Promise<object> {
  const { id } = await requireWebhook(context, orgId, parts);
  const { limit, ...query } = readQuery(context, attemptsQuery);
  const attempts = await listWebhookAttempts(parts.db, id, { ...query, limit: limit + 1 });
  const page = attempts.slice(0, limit);
  return { attempts: page.map(presentAttempt), next: attempts.length > limit ? page.at(-1)!.id : null };
}

async function replayEvents(context: Context, orgId: string, parts: Management): Promise<object> {
  const { db, clock, eventSignal } = parts;
  const webhook = await requireWebhook(context, orgId, parts);
  const selection = selectionOf(await readJson(context, replayRequest), clock.now());
  const replayed = await replay(db, webhook, selection, clock.now(), goneSignal(context));
  if ('eventId' in selection && replayed === 0) throw new Refusal('NOT_FOUND', 'There is no such event.');
  eventSignal.notify();
  return { id: webhook.id, replayed };
}

interface ReplayFields {
  eventId?: string | undefined;
  since?: number | undefined;
  until?: number | undefined;
}

/** The schema has made sure that exactly one of the three is given. */
function selectionOf({ eventId, since, until }: ReplayFields, now: number): ReplaySelection {
  if (eventId !== undefined) return { eventId };
  return since === undefined ? { failed: true } : { since, until: until ?? now };
}
