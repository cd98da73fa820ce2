/**
 * Refuses calls because the server is busy: 429 before anything is counted or read, so that a refusal is cheap for the
 * server and costs the caller nothing.
 */
import { Stream } from 'node:stream';
import type { Context, Middleware } from 'koa';
import { Refusal } from '../mail/refusal.ts';
import { seconds, setRateHeaders } from './rate-headers.ts';

export function busyRefusal(retryAfterMs: number, reason = 'The server is busy'): Refusal {
  const message = `${reason}. Nothing was charged. Retry in ${seconds(retryAfterMs)} s.`;
  return new Refusal('RATE_LIMIT_EXCEEDED', message, { retryAfterMs });
}

/** `max` is the number of calls that the server accepts at the same time. */
export function setBusyHeaders(context: Context, max: number, retryAfterMs: number): void {
  setRateHeaders(context, [{ name: 'capacity', limit: max, remaining: 0, resetMs: retryAfterMs }]);
}

export function refuseWhileBusy(context: Context, max: number, retryAfterMs: number, reason?: string): never {
  setBusyHeaders(context, max, retryAfterMs);
  throw busyRefusal(retryAfterMs, reason);
}

const retryDelayMs = 1000;
const organizationBusy = 'The organization has too many calls of this kind in progress';

/** Calls of an organization, except sends, that run at once: everybody's statements wait for those of all that run. */
const maxRunning = 8;

/** `context.state.admitCaller`, which is called as soon as the organization is known. Sends have an admission of their own. */
export type AdmitCaller = (orgId: string, isSend: boolean) => Promise<void>;

/**
 * Bounds the calls in flight, because with a database that hangs they pile up as soon as their key is looked up. One
 * organization can have half of them, of which a few run, until they have been sent, and the others wait.
 */
export function withSlot(max: number): Middleware {
  let inFlight = 0;
  const shares = createCallSlots(Math.ceil(max / 2));
  const turns = new TurnsPerOrganization(maxRunning);
  return async (context, next) => {
    if (inFlight >= max) refuseWhileBusy(context, max, retryDelayMs);
    inFlight += 1;
    let endShare = () => {};
    let endTurn = null as (() => void) | null;
    const admitCaller: AdmitCaller = async (orgId, isSend) => {
      endShare = shares.take(context, orgId);
      if (!isSend) endTurn = await turns.take(orgId);
      if (context.res.closed)
        throw new Refusal('BAD_REQUEST', 'The connection ended before the call was begun.');
    };
    context.state.admitCaller = admitCaller;
    try {
      await next();
      // A stream holds little in memory, and can last for hours.
      if (endTurn !== null && !(context.body instanceof Stream)) {
        untilSent(context, endTurn);
        endTurn = null;
      }
    } finally {
      endTurn?.();
      endShare();
      inFlight -= 1;
    }
  };
}

/** Socket timeouts run on the real clock. */
const sendTimeoutMs = 60_000;

/**
 * Calls `release` when the response has left, because its bytes are in memory until then. A client that takes nothing for a
 * minute is disconnected.
 */
function untilSent({ res }: Context, release: () => void): void {
  if (res.closed) {
    release();
    return;
  }
  res.once('close', release);
  res.setTimeout(sendTimeoutMs, () => res.destroy());
}

/** First come, first served within an organization. */
class TurnsPerOrganization {
  readonly #max: number;
  readonly #byOrganization = new Map<string, { running: number; waiting: (() => void)[] }>();

  constructor(max: number) {
    this.#max = max;
  }

  /** Resolves when there is a turn, to the function that ends it. */
  async take(orgId: string): Promise<() => void> {
    const own = this.#byOrganization.get(orgId) ?? { running: 0, waiting: [] };
    this.#byOrganization.set(orgId, own);
    if (own.running < this.#max) own.running += 1;
    else await new Promise<void>((resolve) => own.waiting.push(resolve));
    return () => {
      // The next one has this turn.
      const next = own.waiting.shift();
      if (next) return next();
      own.running -= 1;
      if (own.running === 0) this.#byOrganization.delete(orgId);
    };
  }
}

export interface CallSlots {
  /**
   * Refuses if all slots are in use. `caller`: the organization, user or network that has these slots for itself; absent:
   * all calls share them. The returned function releases the slot.
   */
  take(context: Context, caller?: string): () => void;
  /** The slot is released when the response has left. */
  takeUntilSent(context: Context, caller?: string): void;
}

/** Bounds calls in progress, so that capacity is left for other callers and other work. */
export function createCallSlots(max: number): CallSlots {
  const inUse = new Map<string, number>();
  const slots: CallSlots = {
    take(context, caller = '') {
      const before = inUse.get(caller) ?? 0;
      if (before >= max) refuseWhileBusy(context, max, retryDelayMs, organizationBusy);
      inUse.set(caller, before + 1);
      return () => {
        const left = inUse.get(caller)! - 1;
        if (left > 0) inUse.set(caller, left);
        else inUse.delete(caller);
      };
    },
    takeUntilSent: (context, caller) => untilSent(context, slots.take(context, caller)),
  };
  return slots;
}
