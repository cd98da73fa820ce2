/**
 * How much mail is taken in a minute on this node: by one route, and by one organization. What is beyond is deferred, so that a
 * flood to one address costs a refusal at RCPT for each mail and nothing else.
 *
 * A sender's network may name as many recipients of an organization as are free beside its own: half of its mails if it is alone.
 * So there is always something left for the next sender. Recipients count when they are named, mails when they come: naming them
 * uses up nothing that others need.
 */
import { LRUCache } from 'lru-cache';
import { lruOptions } from '#platform/base/bounded-cache.ts';
import type { Clock } from '#platform/base/clock.ts';

/** Mails of a minute. */
export interface ReceptionLimits {
  route: number;
  organization: number;
}

const minuteMs = 60_000;
const maxCounted = 50_000;

/** `perMinute`: an organization's. One route may take three quarters of it. */
export function limitsFrom(perMinute: number): ReceptionLimits {
  return { organization: perMinute, route: Math.ceil((perMinute * 3) / 4) };
}

export class ReceptionRates {
  readonly #limits: ReceptionLimits;
  readonly #clock: Pick<Clock, 'now'>;
  readonly #counts = new LRUCache<string, { minute: number; count: number }>(lruOptions(maxCounted));

  constructor(limits: ReceptionLimits, clock: Pick<Clock, 'now'>) {
    this.#limits = limits;
    this.#clock = clock;
  }

  /** Counts a recipient; false if the network has its share of the organization's mails, and then it does not count. */
  ask({ network, organization }: { network: string; organization: string }): boolean {
    const sender = `sender ${network} ${organization}`;
    const free = this.#limits.organization - this.#countOf(`organization ${organization}`);
    if (this.#countOf(sender) >= free) return false;
    this.#add(sender);
    return true;
  }

  /** Whether one more mail would be taken. */
  hasRoom(of: Record<keyof ReceptionLimits, string>): boolean {
    return kinds.every((kind) => this.#countOf(`${kind} ${of[kind]}`) < this.#limits[kind]);
  }

  /** Counts a mail. */
  take(of: Record<keyof ReceptionLimits, string>): void {
    for (const kind of kinds) this.#add(`${kind} ${of[kind]}`);
  }

  #countOf(key: string): number {
    const known = this.#counts.get(key);
    return known?.minute === this.#minute() ? known.count : 0;
  }

  #add(key: string): void {
    this.#counts.set(key, { minute: this.#minute(), count: this.#countOf(key) + 1 });
  }

  #minute = () => Math.floor(this.#clock.now() / minuteMs);
}

const kinds = ['route', 'organization'] as const;
