/** The schemas of GET /api/public/events. */
import { z } from 'zod';
import { id, limit, several } from '#front/http/query.ts';
import { eventTypes } from '#platform/values/glossary.ts';

export const eventsQuery = z.object({
  after: z.string().optional().meta({
    description: 'The cursor to continue from: the `next` of a response, or the `id` of a live event.',
    example: 'Sdb2qZkJH1v0X8oHqk2XfA',
  }),
  type: several(eventTypes, `a type of event: ${eventTypes.join(', ')}`).meta({
    description: 'Only events of these types. Repeat the parameter, or separate types with commas.',
  }),
  emailId: id.optional().meta({ description: 'Only events of this email.' }),
  limit: limit(100, 1000),
});

const time = z.iso.datetime({ precision: 3 });

const event = z
  .object({
    id: z.uuid().meta({ description: 'The same id in webhooks, in the live stream and in every list.' }),
    type: z.enum(eventTypes).meta({ description: 'What happened. Later releases can add types.' }),
    timestamp: time,
    recipient: z
      .string()
      .nullable()
      .meta({ format: 'idn-email', description: 'Null if the event is about the organization.' }),
    data: z
      .looseObject({
        emailId: z.uuid().meta({ description: "The email's identifier in this service." }),
        id: z.string().meta({ description: "The email's Message-ID, without angle brackets." }),
        recipient: z.string(),
        from: z.string().meta({ description: 'As it was given.' }),
        subject: z.string().meta({ description: 'As it was given.' }),
        tags: z.record(z.string(), z.string()).meta({ description: "The email's tags." }),
        test: z.literal(true).optional().meta({ description: 'Present if it was sent with a test key.' }),
      })
      .partial()
      .meta({
        description:
          'For an email: which email, and the members of the type, as in `events[].data` of `GET /api/public/email/{id}`. ' +
          'For the organization: the members of the type, such as `address` and `reason` of `suppression.added`. Webhooks ' +
          'post the same `data`.',
      }),
  })
  .meta({ description: 'A fact. Events are only added, never changed.' });

const eventsAnswer = z.object({
  success: z.literal(true),
  events: z.array(event).meta({ description: 'In order. Every reader sees the same order.' }),
  next: z
    .string()
    .nullable()
    .meta({
      description:
        'The cursor to continue from: pass it as `after`. It does not expire, and it neither skips nor repeats events, ' +
        'however many happen meanwhile. Null as long as there are no events.',
    }),
  hasMore: z.boolean().meta({
    description:
      'Whether more events can be read now. `events` can be empty even then: continue with `next`.',
  }),
});

export type EventsAnswer = z.input<typeof eventsAnswer>;

export const eventSchemas = { Events: eventsAnswer, Event: event };
