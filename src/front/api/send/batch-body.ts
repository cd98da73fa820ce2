/**
 * The body of a batch: up to 50 MiB. What a send may have counts in the admission (front/http/admission.ts), whose bytes do not
 * suffice for more; the rest counts in an allowance that one batch of the node has at a time, and for a limited time.
 */
import type { IncomingMessage } from 'node:http';
import { JsonElements, parseElements } from '#front/http/json-elements.ts';
import { BodyBudgetExceeded, readBody } from '#front/http/request-body.ts';
import type { Clock } from '#platform/base/clock.ts';
import type { ByteHold } from '#platform/base/limits/byte-budget.ts';
import { Slots } from '#platform/base/limits/slots.ts';
import { Refusal } from '#platform/values/refusal.ts';
import { batchBody, maxElements, sendBody } from './send-body.ts';

const largestSend = sendBody.largest;
/** A client that sends half a megabyte a second is in time. */
const maxArrivalMs = 60_000;

export class LargeBatches {
  readonly #clock: Clock;
  readonly #slots = new Slots({ inAll: 1 });

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Call `elements` once, and `release` when the batch is answered. */
  reader(slot: Pick<ByteHold, 'add'>) {
    let free: (() => void) | null = null;
    let arrived = 0;
    let endsAt = Number.POSITIVE_INFINITY;
    const add = (bytes: number): true | Promise<boolean> => {
      arrived += bytes;
      if (arrived <= largestSend) return slot.add(bytes);
      if (free) return true;
      const taken = this.#slots.take();
      if (typeof taken !== 'function') return Promise.resolve(false);
      free = taken;
      endsAt = this.#clock.now() + maxArrivalMs;
      return true;
    };
    const requireInTime = () => {
      if (this.#clock.now() <= endsAt) return;
      throw new Refusal('BAD_REQUEST', 'The body arrived too slowly: a batch above 20 MiB has a minute.');
    };
    return {
      /** Counted, but not parsed: see parseElements. */
      elements: async (request: IncomingMessage): Promise<Buffer[]> => {
        const announced = Number(request.headers['content-length'] ?? 0);
        if (announced > largestSend && this.#slots.taken.total > 0) throw new BodyBudgetExceeded();
        const elements = new JsonElements(maxElements, batchBody.limits);
        const check = (chunk: Buffer) => {
          requireInTime();
          elements.check(chunk);
        };
        const body = await readBody(request, { add }, batchBody, check);
        return elements.split(body);
      },
      release: () => free?.(),
    };
  }
}

/** A Refusal stands for an element that is larger than a send. */
export const parseSends = (elements: Buffer[]) => parseElements(elements, largestSend);
