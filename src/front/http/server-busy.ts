/**
 * Refuses calls because the server is busy: 429 before anything is counted or read, so that a refusal is cheap for the
 * server and costs the caller nothing.
 */
import { Stream } from 'node:stream';
import type { Context, Middleware } from 'koa';
import { type SlotLimits, Slots } from '#platform/base/limits/slots.ts';
import { Refusal } from '#platform/values/refusal.ts';
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

/** Bounds the calls in progress, in all and of each owner: an organization, a person or a network. */
export class CallSlots {
  readonly #max: SlotLimits & { ofOne?: number };
  readonly #slots: Slots;

  constructor(max: SlotLimits & { ofOne?: number }) {
    this.#max = max;
    this.#slots = new Slots(max);
  }

  /** Refuses if all slots are taken. The returned function frees the slot. */
  take(context: Context, owner = ''): () => void {
    const { inAll = 0, ofOne = 0 } = this.#max;
    const taken = this.#slots.take(owner);
    if (taken === 'in all') refuseWhileBusy(context, inAll, retryDelayMs);
    if (taken === 'of one')
      refuseWhileBusy(context, ofOne, retryDelayMs, 'Too many calls of this kind are in progress');
    return taken;
  }

  /** The slot is freed when the response has left. */
  takeUntilSent(context: Context, owner: string): void {
    untilSent(context, this.take(context, owner));
  }

  async during<Result>(context: Context, owner: string, work: () => Promise<Result>): Promise<Result> {
    const free = this.take(context, owner);
    return work().finally(free);
  }
}

/** Calls of an organization, except sends, that run at once: everybody's statements wait for those of all that run. */
const maxRunning = 8;

/** `context.state.admitCaller`, which is called as soon as the organization is known. Sends have an admission of their own. */
export type AdmitCaller = (orgId: string, isSend: boolean) => Promise<void>;

/**
 * Bounds the calls in flight, because with a database that hangs they pile up as soon as their key is looked up. One
 * organization can have half of them, of which a few run, until they have been sent, and the others wait.
 */
export function withSlot(max: number): Middleware {
  const all = new CallSlots({ inAll: max });
  const shares = new CallSlots({ ofOne: Math.ceil(max / 2) });
  const turns = new Slots({ ofOne: maxRunning });
  return async (context, next) => {
    const leave = all.take(context);
    let endShare = () => {};
    let endTurn = null as (() => void) | null;
    context.state.admitCaller = async (orgId, isSend) => {
      endShare = shares.take(context, orgId);
      if (!isSend) endTurn = await turns.enter(orgId);
      if (context.res.closed)
        throw new Refusal('BAD_REQUEST', 'The connection ended before the call was begun.');
    };
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
      leave();
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
