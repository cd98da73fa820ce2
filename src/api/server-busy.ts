/**
 * Saying no because of what goes on here and not because of the caller: 429, before anything is counted or read, so
 * that saying it is cheap and costs the caller nothing.
 */
import type { Context, Middleware } from 'koa';
import { Refusal } from '../mail/refusal.ts';
import { seconds, setRateHeaders } from './rate-headers.ts';

/** `most`: as many are taken at once. */
export function refuseWhileBusy(context: Context, max: number, retryAfterMs: number): never {
  setRateHeaders(context, [{ name: 'room', limit: max, remaining: 0, resetMs: retryAfterMs }]);
  const message = `The service takes no more just now; try again in ${seconds(retryAfterMs)} s. Nothing was charged.`;
  throw new Refusal('RATE_LIMIT_EXCEEDED', message, { retryAfterMs });
}

const retryDelayMs = 1000;

/** Bounds the calls that are under way: a database that hangs holds them up at their key already. */
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
  /** Refuses where the organization has all of its places taken; what is answered gives the place back. */
  take(context: Context, orgId: string): () => void;
}

/** For what takes long: so many at once for each organization, that its calls leave room for others'. */
export function createSlotsPerOrganization(max: number): SlotsPerOrganization {
  const taken = new Map<string, number>();
  return {
    take(context, orgId) {
      const before = taken.get(orgId) ?? 0;
      if (before >= max) refuseWhileBusy(context, max, retryDelayMs);
      taken.set(orgId, before + 1);
      return () => {
        const left = taken.get(orgId)! - 1;
        if (left > 0) taken.set(orgId, left);
        else taken.delete(orgId);
      };
    },
  };
}
