/**
 * The feed as Server-Sent Events (WHATWG HTML section 9.2): `id` is the cursor, `event` the type, `data` the event as
 * JSON. Without `Last-Event-ID` (or `after`) it begins with what happens from now on, and says where that is, so that a
 * client that is cut off before the first event misses none either. A comment every 15 s shows that it is alive.
 *
 * A stream holds one page in memory, and reads the next when the client has taken it; who takes nothing for a minute is
 * cut off, and comes back with its last id. A stream ends when its key may read no more, and when the service stops.
 */
import { Readable } from 'node:stream';
import type { Context } from 'koa';
import type { EventPage, EventQuery } from '../../db/events/read-events.ts';
import { Refusal } from '../../mail/refusal.ts';
import { outwardEvent } from '../../record/event.ts';
import type { EventSignal } from '../../record/event-signal.ts';
import { setRateHeaders } from '../rate-headers.ts';
import type { Cursors } from './event-cursor.ts';

export const eventStream = 'text/event-stream';

export interface StreamParts {
  readEvents(query: EventQuery): Promise<EventPage>;
  /** Where what comes from now on begins. */
  settledPosition(): Promise<number>;
  cursors: Cursors;
  eventSignal: EventSignal;
  onError(what: string, error: unknown): void;
  /** How long a client may take nothing: on the real clock, as all of a socket's patience. */
  timeoutMs: number;
}

interface StreamRequest extends Omit<EventQuery, 'orgId' | 'after'> {
  orgId: string;
  /** Null: from now on. */
  after: number | null;
  isStillAllowed(): Promise<boolean>;
}

export interface Streams {
  /** Refuses (429) where the organization, or all together, have as many as they may. */
  admit(context: Context, orgId: string): void;
  open(context: Context, request: StreamRequest): void;
  /** Ends them all. */
  close(): Promise<void>;
}

const maxPerOrganization = 10;
const maxTotal = 1000;
const reconnectMs = 30_000;
const heartbeatMs = 15_000;
/** Events in memory for a stream. */
const pageSize = 100;

export function createStreams(parts: StreamParts): Streams {
  const running = new Map<Promise<void>, string>();
  const stopping = new AbortController();

  function admit(context: Context, orgId: string): void {
    const own = [...running.values()].filter((each) => each === orgId).length;
    if (own < maxPerOrganization && running.size < maxTotal && !stopping.signal.aborted) return;
    setRateHeaders(context, [
      { name: 'room', limit: maxPerOrganization, remaining: 0, resetMs: reconnectMs },
    ]);
    const message =
      own < maxPerOrganization
        ? 'The service has no room for another stream; try again.'
        : `This organization has ${own} streams open, and may have ${maxPerOrganization}; close one.`;
    throw new Refusal('RATE_LIMIT_EXCEEDED', message, { retryAfterMs: reconnectMs });
  }

  return {
    admit,

    open(context, request) {
      // Others may have come in since.
      admit(context, request.orgId);
      context.status = 200;
      context.type = eventStream;
      // nginx would keep it back until it has a page full.
      context.set('X-Accel-Buffering', 'no');
      if (context.method === 'HEAD') return;
      const clientClosed = new AbortController();
      context.res.once('close', () => clientClosed.abort());
      context.res.setTimeout(parts.timeoutMs, () => context.res.destroy());
      const { promise, resolve } = Promise.withResolvers<void>();
      running.set(promise, request.orgId);
      const text = streamText(parts, request, AbortSignal.any([clientClosed.signal, stopping.signal]));
      const body = Readable.from(text, { objectMode: false, highWaterMark: 1 });
      // It closes when `told` has come to its end, or has never begun.
      body.once('close', () => {
        running.delete(promise);
        resolve();
      });
      context.body = body;
    },

    async close() {
      stopping.abort();
      await Promise.all(running.keys());
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
    // Without data: it is remembered, and nothing is told.
    yield `retry: 2000\n${idAt(after)}\n`;
    while (!signal.aborted && (await isStillAllowed())) {
      const seen = eventSignal.signalsAfter();
      const page = await readEvents({ ...query, orgId, after });
      for (const event of page.events) yield `${idAt(event.position)}${textOf(outwardEvent(event))}\n`;
      // What it passed over need not be looked through again.
      if (page.position !== after && page.events.length === 0) yield `${idAt(page.position)}\n`;
      after = page.position;
      if (page.isMore) continue;
      await eventSignal.wait(seen, heartbeatMs, signal);
      if (eventSignal.signalsAfter() === seen) yield ': still here\n\n';
    }
  } catch (error) {
    // Where it waits for the client to take more, it hears of its end by an error.
    if (!signal.aborted) parts.onError('a stream of events was cut off', error);
  }
}

/** JSON has no line breaks. */
function textOf(event: { type: string }): string {
  return `event: ${event.type}\ndata: ${JSON.stringify(event)}\n`;
}
