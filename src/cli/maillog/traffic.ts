/**
 * Statistics of mail log lines: rates, slow destinations, the last replies of hosts. Lines may be added in any order.
 * Memory is bounded.
 */
import type { LogLine } from './log-filter.ts';

export const countedEvents = ['accepted', 'delivered', 'deferred', 'bounced'] as const;
export type CountedEvent = (typeof countedEvents)[number];

interface Rate {
  /** In the last sixty seconds. */
  perMinute: number;
  /** Whole minutes, the oldest first; null for a minute that the lines do not cover. */
  minutes: (number | null)[];
}

export interface SlowDestination {
  destination: string;
  attempts: number;
  meanMs: number;
  worstMs: number;
}

export interface LastReply {
  at: number;
  verb: CountedEvent;
  destination: string;
  host: string | null;
  reply: string;
  /** How often it came, as far back as the lines go. */
  times: number;
}

export interface TrafficReport {
  rates: Record<CountedEvent, Rate>;
  /** The slowest first. */
  slowest: SlowDestination[];
  /** The latest first. */
  replies: LastReply[];
}

export const minutesKept = 60;
const minute = 60_000;
/** The last sixty seconds are counted by the second, because they end now and not at a whole minute. */
const second = 1000;
const slowMinutes = 5;
const maxDestinations = 10_000;
const maxReplies = 200;

type Durations = { count: number; sum: number; worst: number };

export class Traffic {
  /** Numbers of lines by `${minute} ${event}`, and the same by the second. */
  readonly #byMinute = new Map<string, number>();
  readonly #bySecond = new Map<string, number>();
  /** By minute and destination. */
  readonly #durations = new Map<number, Map<string, Durations>>();
  readonly #replies = new Map<string, LastReply>();
  #coveredSince = Number.POSITIVE_INFINITY;

  add(line: LogLine): void {
    const at = Date.parse(line.time);
    const verb = countedEvents.find((each) => each === line.event);
    if (!verb || Number.isNaN(at)) return;
    count(this.#byMinute, verb, Math.floor(at / minute));
    count(this.#bySecond, verb, Math.floor(at / second));
    const { destination, reply, host = null } = line;
    if (verb === 'accepted' || typeof destination !== 'string') return;
    if (typeof line.ms === 'number') this.#addDuration(Math.floor(at / minute), destination, line.ms);
    if (typeof reply === 'string') this.#addReply({ at, verb, destination, host, reply, times: 1 });
  }

  /** Declares that all lines since then have been added. */
  coversSince(time: number): void {
    this.#coveredSince = Math.min(this.#coveredSince, time);
  }

  read(now: number): TrafficReport {
    this.#forget(now);
    const rates = countedEvents.map((event) => [event, this.#rateOf(event, now)]);
    return {
      rates: Object.fromEntries(rates) as Record<CountedEvent, Rate>,
      slowest: slowestOf([...this.#durations.values()]),
      replies: latestFirst([...this.#replies])
        .map(([, reply]) => reply)
        .slice(0, maxReplies),
    };
  }

  #addDuration(at: number, destination: string, ms: number): void {
    const durations = this.#durations.get(at) ?? new Map<string, Durations>();
    this.#durations.set(at, durations);
    if (durations.size < maxDestinations || durations.has(destination))
      merge(durations, destination, { count: 1, sum: ms, worst: ms });
  }

  /** Of "delivered" only the last reply of each host is kept, or these replies would crowd out all others. */
  #addReply(reply: LastReply): void {
    const from = reply.host ?? reply.destination;
    const key = reply.verb === 'delivered' ? `${reply.verb} ${from}` : `${reply.verb} ${from} ${reply.reply}`;
    const before = this.#replies.get(key);
    const latest = before && before.at > reply.at ? before : reply;
    this.#replies.set(key, { ...latest, times: (before?.times ?? 0) + 1 });
    if (this.#replies.size > 2 * maxReplies) {
      for (const [old] of latestFirst([...this.#replies]).slice(maxReplies)) this.#replies.delete(old);
    }
  }

  #forget(now: number): void {
    drop(this.#byMinute, Math.floor(now / minute) - minutesKept - 1);
    drop(this.#bySecond, Math.floor(now / second) - 60);
    for (const at of this.#durations.keys())
      if (at <= Math.floor(now / minute) - slowMinutes) this.#durations.delete(at);
  }

  #rateOf(event: CountedEvent, now: number): Rate {
    const [thisSecond, thisMinute] = [Math.floor(now / second), Math.floor(now / minute)];
    let perMinute = 0;
    for (let back = 0; back < 60; back++)
      perMinute += this.#bySecond.get(`${thisSecond - back} ${event}`) ?? 0;
    const minutes = Array.from({ length: minutesKept }, (_, index) => {
      const at = thisMinute - minutesKept + index;
      return at * minute < this.#coveredSince ? null : (this.#byMinute.get(`${at} ${event}`) ?? 0);
    });
    return { perMinute, minutes };
  }
}

function count(counts: Map<string, number>, event: CountedEvent, at: number): void {
  const key = `${at} ${event}`;
  counts.set(key, (counts.get(key) ?? 0) + 1);
}

function drop(counts: Map<string, number>, before: number): void {
  for (const key of counts.keys()) if (Number.parseInt(key, 10) <= before) counts.delete(key);
}

function latestFirst(entries: [string, LastReply][]): [string, LastReply][] {
  return entries.sort(([, a], [, b]) => b.at - a.at);
}

function merge(durations: Map<string, Durations>, destination: string, more: Durations): void {
  const before = durations.get(destination) ?? { count: 0, sum: 0, worst: 0 };
  durations.set(destination, {
    count: before.count + more.count,
    sum: before.sum + more.sum,
    worst: Math.max(before.worst, more.worst),
  });
}

function slowestOf(minutes: Map<string, Durations>[]): SlowDestination[] {
  const all = new Map<string, Durations>();
  for (const durations of minutes) for (const [destination, each] of durations) merge(all, destination, each);
  return [...all]
    .map(([destination, { count: attempts, sum, worst }]) => ({
      destination,
      attempts,
      meanMs: sum / attempts,
      worstMs: worst,
    }))
    .sort((a, b) => b.meanMs - a.meanMs);
}
