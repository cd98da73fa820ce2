/**
 * Refuses calls because the server is busy: 429 before anything is counted or read, so that a refusal is cheap for the
 * server and costs the caller nothing.
 */
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

/** Bounds the calls in flight, because with a database that hangs they pile up as soon as their key is looked up. */
export function withSlot(max: number): Middleware {
  let inFlight = 0;
  return async (context, next) => {
    if (inFlight >= max) refuseWhileBusy(context, max, retryDelayMs);
    inFlight += 1;
    try {
      await next();
    } finally {
      inFlight -= 1;
    }
  };
}

export interface CallSlots {
  /**
   * Refuses if all slots are in use. `caller`: the organization, user or network that has these slots for itself; absent:
   * all calls share them. The returned function releases the slot.
   */
  take(context: Context, caller?: string): () => void;
  /**
   * The slot is released when the response has left, because its bytes are in memory until then. A client that takes nothing
   * for a minute is disconnected.
   */
  takeUntilSent(context: Context, caller?: string): void;
}

/** Socket timeouts run on the real clock. */
const sendTimeoutMs = 60_000;

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
    takeUntilSent(context, caller) {
      const { res } = context;
      res.once('close', slots.take(context, caller));
      res.setTimeout(sendTimeoutMs, () => res.destroy());
    },
  };
  return slots;
}
