/**
 * The health of each destination by the attempts of this node: what is wrong there, since when, and how much mail it accepts.
 * It is published with the destination's state (destination-publisher.ts), so that the operator's views read one row for each
 * destination, however much mail waits. Kept in memory, and after a restart read from what was published.
 */
import { LRUCache } from 'lru-cache';
import {
  isSilence,
  isWithoutConnection,
  isWithoutReply,
  type ProblemCause,
  problemCause,
} from '#mail/deliver/problem-cause.ts';
import type { AcceptedMail, DestinationProblem } from '#mail/record/rows/destination-status-rows.ts';
import { lruOptions } from '#platform/base/bounded-cache.ts';
import type { Attempt } from '#platform/values/glossary.ts';

/** How long a destination counts as throttled after it last asked us to slow down: the longest that a lower limit is held. */
export const throttledMs = 30 * 60_000;

const maxDestinations = 5_000;

/** Mail that bounces does not wait, so the problem stays visible for this long after the last one. */
const afterBounceMs = 3_600_000;
/** A retry may start a little late. */
const graceMs = 60_000;

const bucketMs = 15_000;
const windowMs = 15 * 60_000;

type Problem = DestinationProblem & { until: number };

interface Kept {
  problem: Problem | null;
  /** When its first attempt ended. */
  firstAt: number;
  /** Mail that it accepted, by the start of the bucket; the oldest first. */
  buckets: { at: number; count: number; ms: number }[];
}

export class DestinationHealth {
  readonly #kept = new LRUCache<string, Kept>(lruOptions(maxDestinations));
  /** When a host last answered this node, wherever. */
  #answeredAt = 0;
  /** When DNS last named a mail's hosts, or said that there are none. */
  #resolvedAt = 0;

  /** `nextAt`: when the mail is tried again; null if it is not. */
  note(attempt: Attempt, nextAt: number | null): void {
    const now = attempt.endedAt;
    const own = this.#keptOf(attempt.destination, now);
    if (attempt.verdict.outcome === 'delivered') {
      this.#answeredAt = now;
      this.#resolvedAt = now;
      own.problem = null;
      addAccepted(own, attempt);
      return;
    }
    const cause = problemCause(attempt);
    const hasAnswered = attempt.reply !== null || cause === 'hanging';
    if (hasAnswered) this.#answeredAt = now;
    if (hasAnswered || isWithoutConnection(cause) || attempt.verdict.fault === 'recipient')
      this.#resolvedAt = now;
    if (cause !== null) own.problem = afterFailure(own.problem, { cause, attempt, nextAt });
    else if (hasAnswered && own.problem && isWithoutReply(own.problem.cause)) own.problem = null;
  }

  /** DNS names the hosts of the domain again: until then it was a destination of its own. */
  noteResolved(domain: string): void {
    const own = this.#kept.get(domain);
    if (own?.problem?.cause === 'dns_failing') own.problem = null;
  }

  /** Whether anything is known that may change with the time. */
  knows(name: string): boolean {
    return this.#kept.has(name);
  }

  problem(name: string, now: number): DestinationProblem | null {
    const problem = this.#kept.get(name)?.problem;
    return problem && this.#lasts(problem, now)
      ? { ...problem, silentSince: this.#silentSince(problem) }
      : null;
  }

  /** A resolver that has answered since for any domain answers again; the mail waits only for its next attempt. */
  #lasts({ cause, at, until }: Problem, now: number): boolean {
    return now < until && !(cause === 'resolver_failing' && this.#resolvedAt > at);
  }

  /** Its circuit is open: no mail is tried when it falls due, so what is wrong lasts. */
  extend(name: string, now: number): void {
    const problem = this.#kept.get(name)?.problem;
    // Not each time, because a change is published.
    if (problem && problem.until < now + graceMs / 2) problem.until = now + graceMs;
  }

  /** The destinations that something is wrong with. */
  troubled(now: number): string[] {
    return [...this.#kept].flatMap(([name, { problem }]) =>
      problem && this.#lasts(problem, now) ? name : [],
    );
  }

  /** The state that this node had published before it was started again. */
  restore(problems: Map<string, DestinationProblem>, now: number): void {
    for (const [name, problem] of problems) {
      const { until = 0, silentSince, at, since } = problem;
      if (now >= until) continue;
      this.#keptOf(name, now).problem ??= { ...problem, until };
      const heardAt = { since: 0, at: since, never: at }[silentSince ?? 'never'];
      this.#answeredAt = Math.max(this.#answeredAt, heardAt);
      this.#resolvedAt = Math.max(this.#resolvedAt, heardAt);
    }
  }

  /** Mail that it accepted in the last minutes, or since it began to throttle. */
  accepted(name: string, now: number, throttledSince: number | null): AcceptedMail | null {
    const own = this.#kept.get(name);
    if (!own) return null;
    const begin = Math.max(throttledSince ?? 0, bucketOf(now) - windowMs);
    // A bucket counts as a whole, so the first one is the first that has begun since; no bucket is older than `firstAt`.
    const since = Math.max(own.firstAt, Math.ceil(begin / bucketMs) * bucketMs);
    const counted = own.buckets.filter(({ at }) => at >= bucketOf(since));
    const sum = (of: (bucket: Kept['buckets'][0]) => number) =>
      counted.reduce((all, each) => all + of(each), 0);
    return { since, count: sum(({ count }) => count), ms: sum(({ ms }) => ms) };
  }

  #keptOf(name: string, now: number): Kept {
    const known = this.#kept.get(name);
    if (known) return known;
    const fresh: Kept = { problem: null, firstAt: now, buckets: [] };
    this.#kept.set(name, fresh);
    return fresh;
  }

  #silentSince({ cause, since, at }: Problem): DestinationProblem['silentSince'] {
    const heardAt = isWithoutConnection(cause) ? this.#answeredAt : this.#resolvedAt;
    if (!isSilence(cause) || heardAt >= at) return null;
    // No newer witness is needed if our own resolver is silent.
    return heardAt < since || cause === 'resolver_failing' ? 'since' : 'at';
  }
}

interface Failure {
  cause: ProblemCause;
  attempt: Attempt;
  nextAt: number | null;
}

function afterFailure(before: Problem | null, { cause, attempt, nextAt }: Failure): Problem {
  const { endedAt: at, verdict } = attempt;
  const same = before?.cause === cause && at < before.until ? before : null;
  const isBounce = verdict.outcome === 'bounced';
  return {
    cause,
    category: verdict.category!,
    since: same?.since ?? at,
    at,
    count: (same?.count ?? 0) + 1,
    reply: verdict.diagnostic,
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
