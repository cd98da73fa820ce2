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

export interface SlotsPerOrganization {
  /** Refuses if the organization has all its slots in use. The returned function releases the slot. */
  take(context: Context, orgId: string): () => void;
}

/** Bounds long-running calls for each organization, so that capacity is left for the others. */
export function createSlotsPerOrganization(max: number): SlotsPerOrganization {
  const inUse = new Map<string, number>();
  return {
    take(context, orgId) {
      const before = inUse.get(orgId) ?? 0;
      if (before >= max) refuseWhileBusy(context, max, retryDelayMs, organizationBusy);
      inUse.set(orgId, before + 1);
      return () => {
        const left = inUse.get(orgId)! - 1;
        if (left > 0) inUse.set(orgId, left);
        else inUse.delete(orgId);
      };
    },
  };
}
