/** The schemas of webhooks in requests and responses. */
import { z } from 'zod';
import { moment, nextId, success } from '#front/api/management.ts';
import { limitSize } from '#front/api/send/at-most.ts';
import { after, id, limit, time } from '#front/http/query.ts';
import { rule } from '#front/http/schema-rule.ts';
import { webhookFormats } from '#mail/webhooks/subscribed-types.ts';
import { eventTypes } from '#platform/values/glossary.ts';

const url = z.string().meta({ examples: ['https://app.example.com/webhooks'] });
const maxEvents = 100;
const eventList = z
  .array(z.enum(eventTypes, { error: `must be one of ${eventTypes.join(', ')}` }))
  .max(maxEvents);
const events = limitSize(maxEvents, eventList).meta({
  description: 'The types of events to post; an empty list means all types.',
});

const format = z.enum(webhookFormats, { error: `must be one of ${webhookFormats.join(', ')}` }).meta({
  description:
    'How events are written and signed: as in this document (standard), or as another service writes its webhooks. Events ' +
    'that the format does not have are not posted. In the format of Postmark, the URL can have a user name and a password.',
});

export const newWebhook = z.object({
  url: url.meta({ description: 'The URL that events are posted to.' }),
  events: events.default([]),
  format: format.default('standard'),
});

export const webhookChange = z
  .object({
    events: events.optional(),
    enabled: z.boolean().optional().meta({
      description:
        'True: events are posted from now on, and so are those that wait. False: nothing is posted, and waiting events are kept.',
    }),
  })
  .meta({ description: 'Members that are left out do not change.' });

const expectedReplay = '`eventId`, or `failed`, or `since` with or without `until`';

/** Exactly one of the three ways to select events. */
export const replayRequest = z
  .object({
    eventId: id.optional().meta({ format: 'uuid', description: 'Only this event.' }),
    failed: z.literal(true).optional().meta({ description: 'All events that were given up.' }),
    since: time.optional().meta({ description: 'Events that happened at this time or later.' }),
    until: time.optional().meta({ description: 'Events that happened before this time; now by default.' }),
  })
  .check(
    rule(
      ({ eventId, failed, since, until }) =>
        [eventId, failed, since].filter((way) => way !== undefined).length === 1 &&
        (until === undefined || since !== undefined),
      expectedReplay,
    ),
  );

export const attemptsQuery = z.object({
  eventId: id.optional().meta({ description: 'Only attempts to post this event.' }),
  limit: limit(20, 1000),
  after: after(id),
});

const webhook = z
  .object({
    id: z.uuid(),
    url,
    events,
    format,
    publicKey: z.string().nullable().meta({
      description: 'Verifies posts in the format of SendGrid; null in the other formats.',
    }),
    status: z.enum(['active', 'disabled']),
    reason: z.string().nullable().meta({ description: 'Why the webhook is disabled.' }),
    failingSince: moment
      .nullable()
      .meta({ description: 'When posts began to fail; null if the last one succeeded.' }),
    pausedUntil: moment.nullable().meta({
      description: 'No posts are made until this time, as the webhook asked for with `Retry-After`.',
    }),
    createdAt: moment,
  })
  .meta({ description: 'A URL that events are posted to.' });

const secret = z
  .string()
  .nullable()
  .meta({
    description:
      'The secret that verifies posts. It is shown only in this response. Null in the formats of SendGrid, which has a public ' +
      'key instead, and Postmark, whose posts are not signed.',
  });

const tried = z.object({
  at: moment,
  durationMs: z.int(),
  url: z.string(),
  status: z
    .int()
    .nullable()
    .meta({ description: 'The HTTP status of the response; null if there was none.' }),
  answer: z.string().nullable().meta({ description: 'The beginning of the response body.' }),
  error: z
    .string()
    .nullable()
    .meta({ description: 'Why the post failed, in a sentence; null if it succeeded.' }),
});

const attempt = z
  .object({
    id: z.uuid(),
    eventId: z.uuid().meta({ description: 'The `webhook-id` of the post.' }),
    type: z.enum(eventTypes),
    number: z.int().meta({ description: 'The number of this attempt to post the event, from 1.' }),
    ...tried.shape,
  })
  .meta({ description: 'A post and its response.' });

export const webhookSchemas = {
  Webhook: webhook,
  WebhooksAnswer: success({
    webhooks: z.array(webhook).meta({ description: 'All webhooks, oldest first.' }),
  }),
  WebhookAnswer: success({
    webhook,
    open: z.int().meta({ description: 'Events that are still to be posted.' }),
    failed: z.int().meta({ description: 'Events that were given up.' }),
  }),
  NewWebhookAnswer: success({ webhook, secret }),
  NewSecretAnswer: success({
    id: z.uuid(),
    secret,
    publicKey: z.string().nullable(),
    oldSecretUntil: moment.nullable().meta({
      description: 'Until this time, posts are also signed with the old secret; null if they are not.',
    }),
  }),
  WebhookTestAnswer: success({
    id: z.uuid(),
    ok: z.boolean().meta({ description: 'Whether the webhook accepted the event.' }),
    attempt: tried,
  }),
  WebhookAttempt: attempt,
  WebhookAttemptsAnswer: success({
    attempts: z.array(attempt).meta({ description: 'Newest first.' }),
    next: nextId,
  }),
  ReplayAnswer: success({
    id: z.uuid(),
    replayed: z.int().meta({ description: 'How many events are posted again.' }),
  }),
};
