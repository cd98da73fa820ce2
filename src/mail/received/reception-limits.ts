/**
 * How much mail is taken in a minute on this node: of one sender's network, of one route, of one organization. What is beyond is
 * deferred, so that a flood to one address costs a refusal at RCPT for each mail and nothing else.
 */
import { LRUCache } from 'lru-cache';
import { lruOptions } from '#platform/base/bounded-cache.ts';
import type { Clock } from '#platform/base/clock.ts';

/** Mails of a minute. */
export interface ReceptionLimits {
  network: number;
  route: number;
  organization: number;
}

const minuteMs = 60_000;
const maxCounted = 50_000;

/** `perMinute`: an organization's. One route may take three quarters of it, one sender half. */
export function limitsFrom(perMinute: number): ReceptionLimits {
  return {
    organization: perMinute,
    route: Math.ceil((perMinute * 3) / 4),
    network: Math.ceil(perMinute / 2),
  };
}

export class ReceptionRates {
  readonly #limits: ReceptionLimits;
  readonly #clock: Pick<Clock, 'now'>;
  readonly #counts = new LRUCache<string, { minute: number; count: number }>(lruOptions(maxCounted));

  constructor(limits: ReceptionLimits, clock: Pick<Clock, 'now'>) {
    this.#limits = limits;
    this.#clock = clock;
  }

  /** Counts a mail; false if it is over one of the limits, and then it counts in none. */
  take(of: Record<keyof ReceptionLimits, string>): boolean {
    const minute = Math.floor(this.#clock.now() / minuteMs);
    const counted = (['network', 'route', 'organization'] as const).map((kind) => {
      const key = `${kind} ${of[kind]}`;
      const known = this.#counts.get(key);
      return { key, max: this.#limits[kind], count: known?.minute === minute ? known.count : 0 };
    });
    if (counted.some(({ count, max }) => count >= max)) return false;
    for (const { key, count } of counted) this.#counts.set(key, { minute, count: count + 1 });
    return true;
  }
}
