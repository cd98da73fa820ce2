/** What GET /api/public/events takes and answers, as schemas: for the OpenAPI document too. */
import { z } from 'zod';
import { eventTypes } from '../../glossary.ts';
import { id, limit, several } from '../query.ts';

const fallback = 100;
const max = 1000;

export const eventsQuery = z.object({
  after: z.string().optional(),
  type: several(eventTypes, `a type of event: ${eventTypes.join(', ')}`),
  emailId: id.optional(),
  limit: limit(fallback, max),
});

const time = z.iso.datetime({ precision: 3 });

const event = z
  .object({
    id: z.uuid().meta({ description: 'The same in webhooks, in the stream, and whenever it is told.' }),
    type: z.enum(eventTypes).meta({ description: 'What happened. More types may come.' }),
    timestamp: time,
    recipient: z
      .string()
      .nullable()
      .meta({ format: 'idn-email', description: 'Null for what happened to the organization.' }),
    data: z
      .looseObject({
        emailId: z.uuid().meta({ description: "The email's identifier in this service." }),
        id: z.string().meta({ description: "The email's Message-ID, without its angle brackets." }),
        recipient: z.string(),
        from: z.string().meta({ description: 'As it was given.' }),
        subject: z.string().meta({ description: 'As it was given.' }),
        tags: z.record(z.string(), z.string()).meta({ description: "The email's tags." }),
      })
      .partial()
      .meta({
        description:
          'Of an email: which, and what the type adds, as in `events[].data` of `GET /api/public/email/{id}`. Of the ' +
          "organization: what the type tells, such as `address` and `reason` of `suppression.added`. A webhook's `data` is " +
          'the same.',
      }),
  })
  .meta({ description: 'A fact; never changed, only added.' });

const eventsAnswer = z.object({
  success: z.literal(true),
  events: z.array(event).meta({ description: 'In the order in which they are told to everybody.' }),
  next: z
    .string()
    .nullable()
    .meta({
      description:
        'Where to go on: give it as `after`. It holds as long as it takes, and misses and repeats nothing, however many ' +
        'events come meanwhile. Null while there has been no event.',
    }),
  hasMore: z
    .boolean()
    .meta({ description: 'Whether there may be more now. `events` may be empty all the same: go on.' }),
});

export type EventsAnswer = z.input<typeof eventsAnswer>;

export const eventSchemas = { Events: eventsAnswer, Event: event };
