/** How much mail moves: counts lines of the mail log. They may be added in any order. Memory is bounded. */
import type { LogLine } from './log-filter.ts';

const countedEvents = ['accepted', 'delivered', 'deferred', 'bounced'] as const;
type CountedEvent = (typeof countedEvents)[number];

/** In the last sixty seconds. */
export type Rates = Record<CountedEvent, number>;

export const countedMs = 60_000;
const second = 1000;

export class Traffic {
  /** A count for each second, because the last sixty end now and not at a whole minute. */
  readonly #bySecond = new Map<number, Rates>();

  add({ time, event }: LogLine): void {
    const at = Math.floor(Date.parse(time) / second);
    const counted = countedEvents.find((each) => each === event);
    if (!counted || Number.isNaN(at)) return;
    const counts = this.#bySecond.get(at) ?? { accepted: 0, delivered: 0, deferred: 0, bounced: 0 };
    counts[counted] += 1;
    this.#bySecond.set(at, counts);
  }

  read(now: number): Rates {
    const rates: Rates = { accepted: 0, delivered: 0, deferred: 0, bounced: 0 };
    for (const [at, counts] of this.#bySecond) {
      if (at <= Math.floor((now - countedMs) / second)) this.#bySecond.delete(at);
      else for (const event of countedEvents) rates[event] += counts[event];
    }
    return rates;
  }
}
