/**
 * What the mail log's lines come to: how many a minute, which destinations are slow, what hosts said last. Lines may
 * come in any order; memory is bounded whatever comes.
 */
import type { LogLine } from './log-filter.ts';

export const verbs = ['accepted', 'delivered', 'deferred', 'bounced'] as const;
export type CountedLines = (typeof verbs)[number];

interface Rate {
  /** In the last sixty seconds. */
  perMinute: number;
  /** Whole minutes, the oldest first; null where nothing is known of one. */
  minutes: (number | null)[];
}

export interface Slow {
  destination: string;
  attempts: number;
  meanMs: number;
  worstMs: number;
}

export interface Said {
  at: number;
  verb: CountedLines;
  destination: string;
  host: string | null;
  reply: string;
  /** How often it was said, as far back as is known. */
  times: number;
}

export interface Seen {
  rates: Record<CountedLines, Rate>;
  /** The slowest first. */
  slowest: Slow[];
  /** The latest first. */
  said: Said[];
}

export interface Traffic {
  add(line: LogLine): void;
  /** All lines since then have been added. */
  knownSince(time: number): void;
  read(now: number): Seen;
}

export const minutesKept = 60;
const minute = 60_000;
/** Of a second, since "now" slides. */
const tick = 1000;
const slowMinutes = 5;
const maxDestinations = 10_000;
const maxSaid = 200;

type Times = { count: number; sum: number; worst: number };

export function createTraffic(): Traffic {
  /** How many lines of each verb, by the minute and, of late, by the second. */
  const byMinute = new Map<string, number>();
  const bySecond = new Map<string, number>();
  const slow = new Map<number, Map<string, Times>>();
  const said = new Map<string, Said>();
  let since = Number.POSITIVE_INFINITY;

  function add(line: LogLine): void {
    const at = Date.parse(line.time);
    const verb = verbs.find((each) => each === line.event);
    if (!verb || Number.isNaN(at)) return;
    count(byMinute, verb, Math.floor(at / minute));
    count(bySecond, verb, Math.floor(at / tick));
    const { destination } = line;
    if (verb === 'accepted' || typeof destination !== 'string') return;
    if (typeof line.ms === 'number') addTime(Math.floor(at / minute), destination, line.ms);
    if (typeof line.reply === 'string') {
      const { reply, host = null } = line;
      addSaid({ at, verb, destination, host, reply, times: 1 });
    }
  }

  function addTime(at: number, destination: string, ms: number): void {
    const times = slow.get(at) ?? new Map<string, Times>();
    slow.set(at, times);
    const { count: before, sum, worst } = times.get(destination) ?? { count: 0, sum: 0, worst: 0 };
    if (before === 0 && times.size >= maxDestinations) return;
    times.set(destination, { count: before + 1, sum: sum + ms, worst: Math.max(worst, ms) });
  }

  /** What goes well is said once for each host, or nothing else would be seen. */
  function addSaid(one: Said): void {
    const who = one.host ?? one.destination;
    const key = one.verb === 'delivered' ? `${one.verb} ${who}` : `${one.verb} ${who} ${one.reply}`;
    const before = said.get(key);
    const latest = before && before.at > one.at ? before : one;
    said.set(key, { ...latest, times: (before?.times ?? 0) + 1 });
    if (said.size > 2 * maxSaid) {
      for (const [old] of latestFirst([...said]).slice(maxSaid)) said.delete(old);
    }
  }

  function forget(now: number): void {
    drop(byMinute, Math.floor(now / minute) - minutesKept - 1);
    drop(bySecond, Math.floor(now / tick) - 60);
    for (const at of slow.keys()) if (at <= Math.floor(now / minute) - slowMinutes) slow.delete(at);
  }

  return {
    add,
    knownSince(time) {
      since = Math.min(since, time);
    },
    read(now) {
      forget(now);
      const rates = verbs.map((verb) => [verb, rateOf(verb, now)]);
      return {
        rates: Object.fromEntries(rates) as Record<CountedLines, Rate>,
        slowest: slowestOf([...slow.values()]),
        said: latestFirst([...said])
          .map(([, one]) => one)
          .slice(0, maxSaid),
      };
    },
  };

  function rateOf(verb: CountedLines, now: number): Rate {
    const [second, current] = [Math.floor(now / tick), Math.floor(now / minute)];
    const seconds = Array.from({ length: 60 }, (_, back) => bySecond.get(`${second - back} ${verb}`) ?? 0);
    const minutes = Array.from({ length: minutesKept }, (_, index) => {
      const at = current - minutesKept + index;
      return at * minute < since ? null : (byMinute.get(`${at} ${verb}`) ?? 0);
    });
    return { perMinute: seconds.reduce((all, each) => all + each, 0), minutes };
  }
}

function count(counts: Map<string, number>, verb: CountedLines, at: number): void {
  const key = `${at} ${verb}`;
  counts.set(key, (counts.get(key) ?? 0) + 1);
}

function drop(counts: Map<string, number>, before: number): void {
  for (const key of counts.keys()) if (Number.parseInt(key, 10) <= before) counts.delete(key);
}

function latestFirst(entries: [string, Said][]): [string, Said][] {
  return entries.sort(([, a], [, b]) => b.at - a.at);
}

function slowestOf(minutes: Map<string, Times>[]): Slow[] {
  const all = new Map<string, Times>();
  for (const [destination, each] of minutes.flatMap((times) => [...times])) {
    const { count: before, sum, worst } = all.get(destination) ?? { count: 0, sum: 0, worst: 0 };
    all.set(destination, {
      count: before + each.count,
      sum: sum + each.sum,
      worst: Math.max(worst, each.worst),
    });
  }
  return [...all]
    .map(([destination, times]) => ({
      destination,
      attempts: times.count,
      meanMs: times.sum / times.count,
      worstMs: times.worst,
    }))
    .sort((a, b) => b.meanMs - a.meanMs);
}
