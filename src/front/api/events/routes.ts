/**
 * GET /api/public/events: what happened to an organization and its emails, in order, from a cursor on. A client gets
 * pages of JSON, or, if `Accept` asks for text/event-stream, a live stream (event-stream.ts). Both have the same filters
 * and cursors. They share one path because an EventSource asks for its form by itself.
 */
import type { Context, Middleware } from 'koa';
import { z } from 'zod';
import { type Endpoint, invalidQuery, readErrors } from '#front/api/endpoint.ts';
import type { Authorize } from '#front/http/authorize.ts';
import { readQuery } from '#front/http/query.ts';
import { outwardEvent } from '#mail/record/event.ts';
import type { EventPage, EventQuery } from '#mail/record/rows/read-events.ts';
import { Refusal } from '#platform/values/refusal.ts';
import type { Cursors } from './event-cursor.ts';
import { eventStream, type Streams } from './event-stream.ts';
import { type EventsAnswer, eventSchemas, eventsQuery } from './schema.ts';

export interface EventParts {
  authorize: Authorize;
  feed: { readEvents(query: EventQuery): Promise<EventPage>; cursors: Cursors; streams: Streams };
}

export const eventEndpoints: Endpoint<EventParts>[] = [
  {
    route: 'GET /events',
    operationId: 'listEvents',
    tag: 'Events',
    summary: 'Follow events',
    description:
      'The events of your organization, in order; to a test key, those of test mail. Start without `after`, then continue with the `next` of each response: ' +
      'no event is skipped or repeated, however many happen meanwhile. Events are kept for 30 days, unless the operator ' +
      'configures another period.\n\n' +
      'With `Accept: text/event-stream` you get the same list live, as Server-Sent Events: `id` is a cursor, `event` the ' +
      'type, `data` the event. Without `Last-Event-ID` (or `after`) the stream starts with the next event that happens. A ' +
      'comment every 15 seconds shows that the stream is alive; a client that reads nothing for a minute is disconnected. ' +
      'A stream counts as one request. An organization can have ten streams at the same time on one server.',
    scopes: ['email:read', 'full_access'],
    query: eventsQuery,
    parameters: [
      {
        name: 'Last-Event-ID',
        in: 'header',
        required: false,
        description: 'For a live stream: the `id` of the last event that you received; overrides `after`.',
        schema: { type: 'string' },
      },
    ],
    response: {
      description: 'A page of events or, live, every event that happens.',
      content: { 'application/json': eventSchemas.Events, [eventStream]: z.string() },
    },
    errors: { VALIDATION_ERROR: invalidQuery, ...readErrors },
    handler: getEvents,
  },
];

function getEvents({ authorize, feed }: EventParts): Middleware {
  return async (context) => {
    const isLive = context.accepts('json', eventStream) === eventStream;
    const { orgId, isTest: onlyTest } = await authorize.enter(context, 'email:read', async (caller) => {
      if (isLive) feed.streams.admit(context, caller.orgId);
    });
    const { after: inQuery, type: types, emailId, limit } = readQuery(context, eventsQuery);
    const cursor = (isLive && context.get('last-event-id')) || inQuery;
    const after = cursor === undefined ? null : positionOf(cursor, orgId, feed.cursors);
    const query = { orgId, onlyTest, types, emailId, limit };
    context.set('Cache-Control', 'no-store');
    if (isLive) {
      const isStillAllowed = () => authorize.isStillAllowed(context, 'email:read');
      return feed.streams.open(context, { ...query, after, isStillAllowed });
    }
    await answerPage(context, { ...query, after: after ?? 0 }, feed);
  };
}

function positionOf(cursor: string, orgId: string, cursors: Cursors): number {
  const position = cursors.read(orgId, cursor);
  if (position !== null) return position;
  const expected = 'the `next` of a response';
  const issue = {
    code: 'custom',
    expected,
    received: `string of ${cursor.length} characters`,
    path: ['after'],
    message: `after: must be ${expected}, or left out to begin with the oldest event`,
  };
  throw new Refusal('VALIDATION_ERROR', 'A parameter of the query is not valid.', { issues: [issue] });
}

async function answerPage(
  context: Context,
  query: EventQuery & { orgId: string },
  { readEvents, cursors }: EventParts['feed'],
): Promise<void> {
  const { events, position, isMore } = await readEvents(query);
  context.body = {
    success: true,
    events: events.map(outwardEvent) as EventsAnswer['events'],
    next: position === 0 ? null : cursors.write(query.orgId, position),
    hasMore: isMore,
  } satisfies EventsAnswer;
}
