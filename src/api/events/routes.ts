/**
 * GET /api/public/events: what happened to an organization and its emails, in order, from a cursor on. As JSON, page
 * by page; or, where `Accept` asks for text/event-stream, live (event-stream.ts). It is one list in two forms, with the same
 * filters and cursors, and an EventSource asks for its form by itself: hence one path.
 */
import type { Context, Middleware } from 'koa';
import type { EventPage, EventQuery } from '../../db/events/read-events.ts';
import { Refusal } from '../../mail/refusal.ts';
import { outwardEvent } from '../../record/event.ts';
import type { Authorize } from '../authorize.ts';
import { readQuery } from '../query.ts';
import type { Cursors } from './event-cursor.ts';
import { eventStream, type Streams } from './event-stream.ts';
import { type EventsAnswer, eventsQuery } from './schema.ts';

export interface FeedParts {
  readEvents(query: EventQuery): Promise<EventPage>;
  cursors: Cursors;
  streams: Streams;
}

export function getEvents(authorize: Authorize, feed: FeedParts): Middleware {
  return async (context) => {
    const isLive = context.accepts('json', eventStream) === eventStream;
    const admit = ({ orgId }: { orgId: string }) => (isLive ? feed.streams.admit(context, orgId) : undefined);
    const { orgId } = await authorize.enter(context, 'email:read', async (caller) => admit(caller));
    const { after: given, type: types, emailId, limit } = readQuery(context, eventsQuery);
    const named = (isLive && context.get('last-event-id')) || given;
    const after = named === undefined ? null : positionOf(named, orgId, feed.cursors);
    const query = { orgId, types, emailId, limit };
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
  const expected = 'the `next` of an answer';
  throw new Refusal('VALIDATION_ERROR', 'A parameter of the query is not valid.', {
    issues: [
      {
        code: 'custom',
        ...{ expected, received: `string of ${cursor.length} characters`, path: ['after'] },
        message: `after: must be ${expected}, or left out to begin with the oldest event`,
      },
    ],
  });
}

async function answerPage(
  context: Context,
  query: EventQuery & { orgId: string },
  { readEvents, cursors }: FeedParts,
): Promise<void> {
  const { events, position, isMore } = await readEvents(query);
  context.body = {
    success: true,
    events: events.map(outwardEvent) as EventsAnswer['events'],
    next: position === 0 ? null : cursors.write(query.orgId, position),
    hasMore: isMore,
  } satisfies EventsAnswer;
}
