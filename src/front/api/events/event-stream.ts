/**
 * The event feed as Server-Sent Events (WHATWG HTML section 9.2): `id` is the cursor, `event` the type, `data` the event
 * as JSON. Without `Last-Event-ID` (or `after`) a stream starts with the next event. It first sends the cursor of that
 * point, so that a client that loses the connection before the first event misses none. A comment every 15 s shows that
 * the stream is alive.
 *
 * A stream holds one page in memory and reads the next one when the client has taken it. A client that reads nothing for
 * a minute is disconnected and can resume with its last id. A stream ends when its key loses the scope or the service
 * stops.
 */
import { Readable } from 'node:stream';
import type { Context } from 'koa';
import { setBusyHeaders } from '#front/http/server-busy.ts';
import { outwardEvent } from '#mail/record/event.ts';
import type { EventSignal } from '#mail/record/event-signal.ts';
import type { EventPage, EventQuery } from '#mail/record/rows/read-events.ts';
import { Slots } from '#platform/base/limits/slots.ts';
import { Refusal } from '#platform/values/refusal.ts';
import type { Cursors } from './event-cursor.ts';

export const eventStream = 'text/event-stream';

export interface StreamParts {
  readEvents(query: EventQuery): Promise<EventPage>;
  /** The position after which new events will be. */
  settledPosition(): Promise<number>;
  cursors: Cursors;
  eventSignal: EventSignal;
  onError(what: string, error: unknown): void;
  /** A client that reads nothing for this long is disconnected. Socket timeouts run on the real clock. */
  timeoutMs: number;
}

interface StreamRequest extends Omit<EventQuery, 'orgId' | 'after'> {
  orgId: string;
  /** Null: start with the next event. */
  after: number | null;
  isStillAllowed(): Promise<boolean>;
}

export interface Streams {
  /** Refuses (429) if the organization or the server has its maximum number of streams. */
  admit(context: Context, orgId: string): void;
  open(context: Context, request: StreamRequest): void;
  /** Ends all streams. */
  close(): Promise<void>;
}

const max = { inAll: 1000, ofOne: 10 };
const reconnectMs = 30_000;
const heartbeatMs = 15_000;
/** The number of events in memory for a stream. */
const pageSize = 100;

export function createStreams(parts: StreamParts): Streams {
  const slots = new Slots(max);
  const running = new Set<Promise<void>>();
  const stopping = new AbortController();

  function take(context: Context, orgId: string): () => void {
    const taken = stopping.signal.aborted ? 'in all' : slots.take(orgId);
    if (typeof taken === 'function') return taken;
    setBusyHeaders(context, max.ofOne, reconnectMs);
    const message =
      taken === 'in all'
        ? 'The server has its maximum number of streams open. Try again.'
        : `This organization has ${max.ofOne} streams open, which is the maximum. Close one first.`;
    throw new Refusal('RATE_LIMIT_EXCEEDED', message, { retryAfterMs: reconnectMs });
  }

  return {
    admit: (context, orgId) => take(context, orgId)(),

    open(context, request) {
      // Other streams can have been opened since the first check.
      const free = take(context, request.orgId);
      context.status = 200;
      context.type = eventStream;
      // Otherwise nginx buffers events.
      context.set('X-Accel-Buffering', 'no');
      if (context.method === 'HEAD') return free();
      const clientClosed = new AbortController();
      context.res.once('close', () => clientClosed.abort());
      context.res.setTimeout(parts.timeoutMs, () => context.res.destroy());
      const { promise, resolve } = Promise.withResolvers<void>();
      running.add(promise);
      const text = streamText(parts, request, AbortSignal.any([clientClosed.signal, stopping.signal]));
      const body = Readable.from(text, { objectMode: false, highWaterMark: 1 });
      // It also closes if streamText never started.
      body.once('close', () => {
        free();
        running.delete(promise);
        resolve();
      });
      context.body = body;
    },

    async close() {
      stopping.abort();
      await Promise.all(running);
    },
  };
}

async function* streamText(
  parts: StreamParts,
  request: StreamRequest,
  signal: AbortSignal,
): AsyncGenerator<string> {
  const { readEvents, cursors, eventSignal } = parts;
  const { orgId, isStillAllowed, ...wanted } = request;
  const query = { ...wanted, limit: Math.min(wanted.limit, pageSize) };
  const idAt = (position: number) => `id: ${cursors.write(orgId, position)}\n`;
  try {
    let after = request.after ?? (await parts.settledPosition());
    // An id without data: the client stores it and dispatches no event.
    yield `retry: 2000\n${idAt(after)}\n`;
    while (!signal.aborted && (await isStillAllowed())) {
      const seen = eventSignal.count();
      const page = await readEvents({ ...query, orgId, after });
      for (const event of page.events) yield `${idAt(event.position)}${textOf(outwardEvent(event))}\n`;
      // Events that the filter skipped are not read again after a reconnect.
      if (page.position !== after && page.events.length === 0) yield `${idAt(page.position)}\n`;
      after = page.position;
      if (page.isMore) continue;
      await eventSignal.wait(seen, heartbeatMs, signal);
      if (eventSignal.count() === seen) yield ': still here\n\n';
    }
  } catch (error) {
    // A stream that waits for a slow client ends with an error when it is closed.
    if (!signal.aborted) parts.onError('a stream of events failed', error);
  }
}

/** JSON has no line breaks. */
function textOf(event: { type: string }): string {
  return `event: ${event.type}\ndata: ${JSON.stringify(event)}\n`;
}
