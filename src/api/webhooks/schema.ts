/** Webhooks as requests and answers have them: for the OpenAPI document too. */
import { z } from 'zod';
import { eventTypes } from '../../glossary.ts';
import { limitSize } from '../at-most.ts';
import { moment, nextId } from '../management.ts';
import { id, limit, time } from '../query.ts';
import { rule } from '../send/schema-rule.ts';

const url = z.string().meta({ examples: ['https://app.example.com/webhooks'] });
const maxEvents = 100;
const eventList = z
  .array(z.enum(eventTypes, { error: `must be one of ${eventTypes.join(', ')}` }))
  .max(maxEvents);
const events = limitSize(maxEvents, eventList).meta({
  description: 'The types of events that it is told; none: all.',
});

export const newWebhook = z.object({
  url: url.meta({ description: 'Where events are posted.' }),
  events: events.default([]),
});

export const webhookChange = z
  .object({
    events: events.optional(),
    enabled: z.boolean().optional().meta({
      description: 'True: what waits is posted, from now on. False: nothing is posted, and what waits stays.',
    }),
  })
  .meta({ description: 'What is left out stays.' });

/** One of the three ways to say what. */
export const replayRequest = z
  .object({
    eventId: id.optional().meta({ format: 'uuid', description: 'This event.' }),
    failed: z.literal(true).optional().meta({ description: 'All that was given up.' }),
    since: time.optional().meta({ description: 'What happened since then.' }),
    until: time.optional().meta({ description: 'And until then; now, where it is left out.' }),
  })
  .check(
    rule(
      ({ eventId, failed, since, until }) =>
        [eventId, failed, since].filter((way) => way !== undefined).length === 1 &&
        (until === undefined || since !== undefined),
      '`eventId`, or `failed`, or `since` with or without `until`',
    ),
  );

export const attemptsQuery = z.object({
  eventId: id.optional(),
  after: id.optional(),
  limit: limit(20, 1000),
});

const webhook = z
  .object({
    id: z.uuid(),
    url,
    events,
    status: z.enum(['active', 'disabled']),
    reason: z.string().nullable().meta({ description: 'Why it is disabled.' }),
    failingSince: moment.nullable().meta({ description: 'Since when nothing has got through.' }),
    pausedUntil: moment
      .nullable()
      .meta({ description: 'Until when it asked to be left alone (`Retry-After`).' }),
    createdAt: moment,
  })
  .meta({ description: 'An endpoint that is told of events.' });

const webhooksAnswer = z.object({
  success: z.literal(true),
  webhooks: z.array(webhook).meta({ description: 'All of them, the oldest first.' }),
});

const webhookAnswer = z.object({
  success: z.literal(true),
  webhook,
  open: z.int().meta({ description: 'Events that are to be told yet.' }),
  failed: z.int().meta({ description: 'Events that were given up.' }),
});

const secret = z.string().meta({ description: 'Verifies what is posted: shown this once.' });

const newWebhookAnswer = z.object({ success: z.literal(true), webhook, secret });

const newSecretAnswer = z.object({
  success: z.literal(true),
  id: z.uuid(),
  secret,
  oldSecretUntil: moment.meta({ description: 'Until then the old one signs as well.' }),
});

const tried = z.object({
  at: moment,
  durationMs: z.int(),
  url: z.string(),
  status: z.int().nullable().meta({ description: 'The HTTP status of the answer; null: there was none.' }),
  answer: z.string().nullable().meta({ description: 'The beginning of its body.' }),
  error: z.string().nullable().meta({ description: 'In a sentence, where it failed.' }),
});

const testAnswer = z.object({
  success: z.literal(true),
  id: z.uuid(),
  ok: z.boolean().meta({ description: 'Whether the endpoint took it.' }),
  attempt: tried,
});

const attempt = z
  .object({
    id: z.uuid(),
    eventId: z.uuid().meta({ description: 'The `webhook-id` of the post.' }),
    type: z.enum(eventTypes),
    number: z.int().meta({ description: 'Which try of this event it was.' }),
    ...tried.shape,
  })
  .meta({ description: 'What was posted, and what was answered.' });

const attemptsAnswer = z.object({
  success: z.literal(true),
  attempts: z.array(attempt).meta({ description: 'The newest first.' }),
  next: nextId,
});

const replayAnswer = z.object({
  success: z.literal(true),
  id: z.uuid(),
  replayed: z.int().meta({ description: 'How many events are told again.' }),
});

export type WebhookOut = z.input<typeof webhook>;
export type WebhookAttemptsOut = z.input<typeof tried>;
export type AttemptOut = z.input<typeof attempt>;

export const webhookSchemas = {
  Webhook: webhook,
  WebhooksAnswer: webhooksAnswer,
  WebhookAnswer: webhookAnswer,
  NewWebhookAnswer: newWebhookAnswer,
  NewSecretAnswer: newSecretAnswer,
  WebhookTestAnswer: testAnswer,
  WebhookAttempt: attempt,
  WebhookAttemptsAnswer: attemptsAnswer,
  ReplayAnswer: replayAnswer,
};
