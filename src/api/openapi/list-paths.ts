/** The operations that answer lists: an organization's events, and its emails by what they are. */
import { eventTypes } from '../../glossary.ts';
import { emailStates } from '../emails/schema.ts';
import type { ComponentSchema } from './component-schemas.ts';
import { emailId, foundExample, listedEvents } from './examples.ts';
import { headerRefs } from './header-components.ts';
import type { Operation, Parameter } from './openapi-document.ts';
import { requestId } from './operations.ts';
import { content, otherMethod, refusals } from './responses.ts';

export function query(
  name: string,
  description: string,
  schema: ComponentSchema,
  example?: string,
): Parameter {
  return { name, in: 'query', required: false, description, schema, ...(example && { example }) };
}

const cursor = 'Sdb2qZkJH1v0X8oHqk2XfA';

/** What is wrong with a parameter. */
const validation = (message: string, issue: object) => ({
  VALIDATION_ERROR: {
    when: 'A parameter is not as it should be; `issues` lists every violation.',
    message: 'A parameter of the query is not valid.',
    issues: [{ code: 'custom', received: 'string of 4 characters', ...issue, message }],
  },
  FORBIDDEN: { message: 'The API key lacks the scope email:read.' },
  SEND_FAILED: {
    message:
      'The request failed inside the service. Nothing was charged; try again. (request 0198c9a4-6f1e-7d52-b3a4-5f0c8b1d9e27)',
  },
});

const codes = [
  'VALIDATION_ERROR',
  'UNAUTHORIZED',
  'FORBIDDEN',
  'RATE_LIMIT_EXCEEDED',
  'SEND_FAILED',
] as const;

const expectedCursor = 'the `next` of an answer';

export const listEvents: Operation = {
  operationId: 'listEvents',
  tags: ['Events'],
  summary: 'Follow what happens',
  description:
    'The events of your organization, in order. Begin without `after`, go on with the `next` of each answer, for ever: ' +
    'nothing is missed or repeated, however many events come meanwhile. Events are kept for 30 days, unless the operator ' +
    'says otherwise.\n\n' +
    'With `Accept: text/event-stream` the same list comes live, as Server-Sent Events: `id` is a cursor, `event` the ' +
    'type, `data` the event. Without `Last-Event-ID` (or `after`) it begins with what happens from now on. A comment ' +
    'every 15 seconds shows that the stream is alive; who takes nothing for a minute is cut off. A stream is one request ' +
    'of your limits, and an organization may have ten at once on one server.',
  security: [{ apiKey: ['email:read'] }, { apiKey: ['full_access'] }],
  parameters: [
    query(
      'after',
      'Where to go on: the `next` of an answer, or the `id` of a live event.',
      { type: 'string' },
      cursor,
    ),
    query(
      'type',
      'Events of these types alone: the parameter once or more often, or types with commas between.',
      { type: 'array', items: { type: 'string', enum: [...eventTypes] } },
    ),
    query('emailId', 'Events of this email alone.', { type: 'string', format: 'uuid' }),
    query('limit', 'How many at most; 100 unless given.', { type: 'integer', minimum: 1, maximum: 1000 }),
    {
      name: 'Last-Event-ID',
      in: 'header',
      required: false,
      description: 'Live: the `id` of the last event that came; goes before `after`.',
      schema: { type: 'string' },
    },
    requestId,
  ],
  responses: {
    200: {
      description: 'A page of events; or, live, all that come.',
      headers: headerRefs(),
      content: {
        ...content('Events', {
          page: {
            summary: 'An email to two, of whom one is unknown',
            value: { success: true, events: listedEvents, next: cursor, hasMore: false },
          },
          none: {
            summary: 'Nothing new',
            value: { success: true, events: [], next: cursor, hasMore: false },
          },
        }),
        'text/event-stream': {
          schema: { type: 'string' },
          examples: {
            live: {
              summary: 'With `Accept: text/event-stream`, live',
              value: `id: ${cursor}\nevent: ${listedEvents[0]!.type}\ndata: ${JSON.stringify(listedEvents[0])}\n\n`,
            },
          },
        },
      },
    },
    ...refusals(
      [...codes],
      validation(`after: must be ${expectedCursor}, or left out to begin with the oldest event`, {
        expected: expectedCursor,
        path: ['after'],
      }),
    ),
    ...otherMethod('HEAD, GET'),
  },
};

export const listEmails: Operation = {
  operationId: 'listEmails',
  tags: ['Email'],
  summary: 'Search emails',
  description:
    'Your emails that are as all the parameters say, the newest first. Give a time window where you can: what is looked ' +
    'for goes through the emails in it, so many a request, and `next` goes on from there.',
  security: [{ apiKey: ['email:read'] }, { apiKey: ['full_access'] }],
  parameters: [
    query('status', 'The status of the email, or of one of its recipients.', {
      type: 'string',
      enum: [...emailStates],
    }),
    query('to', 'A recipient, or a domain such as `@example.org`.', { type: 'string' }, 'ann@example.org'),
    query('from', 'The sender, or a domain such as `@example.com`.', { type: 'string' }),
    query('tag.NAME', 'The value of the tag NAME, for each NAME that you like.', { type: 'string' }),
    query('since', 'Accepted at this time or later: ISO 8601, with its zone, or a date (UTC).', {
      type: 'string',
    }),
    query('until', 'Accepted before this time.', { type: 'string' }),
    query('limit', 'How many at most; 50 unless given.', { type: 'integer', minimum: 1, maximum: 100 }),
    query('after', 'Where to go on: the `next` of an answer.', { type: 'string', format: 'uuid' }),
    requestId,
  ],
  responses: {
    200: {
      description: 'A page of emails.',
      headers: headerRefs(),
      content: content('Emails', {
        page: {
          summary: 'What was found',
          value: { success: true, emails: [foundExample], next: null },
        },
        goOn: {
          summary: 'Nothing yet, and there is more to look through',
          value: { success: true, emails: [], next: emailId },
        },
      }),
    },
    ...refusals(
      [...codes],
      validation('until: must be a time in ISO 8601, such as 2026-03-02T08:15:30Z or 2026-03-02', {
        expected: 'a time in ISO 8601, such as 2026-03-02T08:15:30Z or 2026-03-02',
        path: ['until'],
      }),
    ),
    ...otherMethod('HEAD, GET'),
  },
};
