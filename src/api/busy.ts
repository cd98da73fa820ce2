/**
 * Saying no because of what goes on here and not because of the caller: 429, before anything is counted or read, so
 * that saying it is cheap and costs the caller nothing.
 */
import type { Context, Middleware } from 'koa';
import { Refusal } from '../refusal.ts';
import { seconds, setRateHeaders } from './rate-headers.ts';

/** `most`: as many are taken at once. */
export function refuseMore(context: Context, most: number, retryAfterMs: number): never {
  setRateHeaders(context, [{ name: 'room', limit: most, remaining: 0, resetMs: retryAfterMs }]);
  const message = `The service takes no more just now; try again in ${seconds(retryAfterMs)} s. Nothing was charged.`;
  throw new Refusal('RATE_LIMIT_EXCEEDED', message, { retryAfterMs });
}

const againMs = 1000;

/** Bounds the calls that are under way: a database that hangs holds them up at their key already. */
export function bounded(most: number): Middleware {
  let underWay = 0;
  return async (context, next) => {
    if (underWay >= most) refuseMore(context, most, againMs);
    underWay += 1;
    try {
      await next();
    } finally {
      underWay -= 1;
    }
  };
}
