/**
 * What the attempts of this node say about each destination: what is wrong there, since when, and how much mail it accepts.
 * It is published with the destination's state (destination-publisher.ts), so that the operator's views read one row for each
 * destination, however much mail waits. Kept in memory: after a restart, `since` is when the next attempt failed.
 */
import { LRUCache } from 'lru-cache';
import { lruOptions } from '../base/lru-options.ts';
import type { AcceptedMail, DestinationProblem } from '../db/queue/destination-status-rows.ts';
import type { Attempt } from '../glossary.ts';
import { problemCause } from './problem-cause.ts';

/** How long a destination counts as throttled after it last asked us to slow down: the longest that a lower limit is held. */
export const throttledMs = 30 * 60_000;

const maxDestinations = 5_000;

/** Mail that bounces does not wait, so the problem stays visible for this long after the last one. */
const afterBounceMs = 3_600_000;
/** A retry may start a little late. */
const graceMs = 60_000;

const bucketMs = 15_000;
const windowMs = 15 * 60_000;

interface Kept {
  problem: (DestinationProblem & { until: number }) | null;
  /** When its first attempt ended. */
  firstAt: number;
  /** What it accepted, by the start of the bucket; the oldest first. */
  buckets: { at: number; count: number; ms: number }[];
}

export type DestinationHealth = ReturnType<typeof createDestinationHealth>;

export function createDestinationHealth() {
  const kept = new LRUCache<string, Kept>(lruOptions(maxDestinations));

  function keptOf(name: string, now: number): Kept {
    const known = kept.get(name);
    if (known) return known;
    const fresh: Kept = { problem: null, firstAt: now, buckets: [] };
    kept.set(name, fresh);
    return fresh;
  }

  return {
    /** `nextAt`: when the mail is tried again; null if it is not. */
    note(attempt: Attempt, nextAt: number | null): void {
      const now = attempt.endedAt;
      const own = keptOf(attempt.destination, now);
      if (attempt.outcome.outcome === 'delivered') {
        own.problem = null;
        addAccepted(own, attempt);
      } else own.problem = afterFailure(own.problem, attempt, nextAt);
    },
    problem(name: string, now: number): DestinationProblem | null {
      const problem = kept.get(name)?.problem;
      if (!problem || now >= problem.until) return null;
      const { until, ...published } = problem;
      return published;
    },
    /** What it accepted in the last minutes, or since it began to throttle. */
    accepted(name: string, now: number, throttledSince: number | null): AcceptedMail | null {
      const own = kept.get(name);
      if (!own) return null;
      const begin = Math.max(throttledSince ?? 0, bucketOf(now) - windowMs);
      // A bucket counts as a whole, so the first one is the first that has begun since; no bucket is older than `firstAt`.
      const since = Math.max(own.firstAt, Math.ceil(begin / bucketMs) * bucketMs);
      const counted = own.buckets.filter(({ at }) => at >= bucketOf(since));
      const sum = (of: (bucket: Kept['buckets'][0]) => number) =>
        counted.reduce((all, each) => all + of(each), 0);
      return { since, count: sum(({ count }) => count), ms: sum(({ ms }) => ms) };
    },
  };
}

function afterFailure(before: Kept['problem'], attempt: Attempt, nextAt: number | null): Kept['problem'] {
  const cause = problemCause(attempt);
  if (cause === null) return before;
  const { endedAt: at, outcome } = attempt;
  const same = before?.cause === cause && at < before.until ? before : null;
  const isBounce = outcome.outcome === 'bounced';
  return {
    cause,
    category: outcome.category!,
    since: same?.since ?? at,
    at,
    count: (same?.count ?? 0) + 1,
    reply: outcome.diagnostic,
    host: attempt.mx?.address ?? null,
    bouncedAt: isBounce ? at : (same?.bouncedAt ?? null),
    until: Math.max(
      same?.until ?? 0,
      nextAt === null ? at + (isBounce ? afterBounceMs : 0) : nextAt + graceMs,
    ),
  };
}

function addAccepted({ buckets }: Kept, { startedAt, endedAt }: Attempt): void {
  const at = bucketOf(endedAt);
  const last = buckets.at(-1);
  const current = last?.at === at ? last : { at, count: 0, ms: 0 };
  if (current !== last) buckets.push(current);
  current.count += 1;
  current.ms += Math.max(endedAt - startedAt, 0);
  while (buckets[0]!.at < at - windowMs) buckets.shift();
}

function bucketOf(time: number): number {
  return time - (time % bucketMs);
}
