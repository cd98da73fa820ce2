/**
 * The condition of a destination: the one model of what is wrong there, since when, and by which evidence. `status`, `top`,
 * `queue summary`, `email why`, the dashboard and the metrics render it (condition-words.ts, condition-advice.ts). Pure
 * functions of what is stored (mail/record/rows/destination-status-rows.ts).
 */
import type { Pause } from '#accounts/rows/organizations.ts';
import type { DestinationOrder } from '#mail/queue/rows/destination-rules.ts';
import { throttledMs } from '#mail/record/destination-health.ts';
import type { DestinationState, DestinationStatuses } from '#mail/record/rows/destination-status-rows.ts';
import type { Cause } from './causes.ts';
import { type NoWayOut, noWaysOut } from './no-way-out.ts';
import { type Pace, paceOf } from './pace.ts';

/** act: it needs action by a person. watch: it passes by itself, or has only begun. */
export type Severity = 'act' | 'watch' | 'ok';

export interface Condition {
  cause: Cause;
  destination: string;
  since: number | null;
  /** The words of a host or of the failure, unchanged; or the operator's reason. */
  evidence: string | null;
  severity: Severity;
  /** Its mail is not tried before: the circuit is open, or it is suspended as a whole. */
  blockedUntil: number | null;
  state: DestinationState | null;
  /** How much mail waits there; null if it has not been counted. */
  waiting: number | null;
  pace: Pace;
  noWayOut: NoWayOut | null;
  /** The operator's order. */
  order: DestinationOrder | null;
  /** A part of the mail that waits for another reason; `isWhole`: all of it. */
  apart: Apart | null;
}

/** Mail whose organization is paused, or whose IP pools no running node has. */
interface Apart {
  count: number;
  isWhole: boolean;
  pools?: string[];
  /** Set if it is a single organization. */
  pause?: Pause | null;
}

export interface Subject {
  destination: string;
  domains: string[];
  /** When its first mail is, or was, due; null if none is. */
  dueAt: number | null;
  /** How much mail waits there; null if it has not been counted. */
  waiting: number | null;
  /** How much mail waits for all destinations; if it is left out, as much. */
  queue?: number;
  /** How much of it expires within the hour. */
  ending?: number;
  noSource: Apart | null;
  paused: Apart | null;
  /** Set if the waiting mail was greylisted at its last attempt: when the first was, and the latest reply. */
  greylisted: { since: number; reply: string } | null;
}

export type ConditionOf = (subject: Subject) => Condition;

/** A subject of which nothing is known but its name. */
export function named(destination: string, waiting: number | null = null): Subject {
  return { destination, domains: [], dueAt: null, waiting, noSource: null, paused: null, greylisted: null };
}

export function conditionsAt(statuses: DestinationStatuses, now: number): ConditionOf {
  const closed = noWaysOut(statuses.silent);
  return (subject) => {
    const { destination, waiting } = subject;
    const state = statuses.states.get(destination) ?? null;
    const pace = state ? paceOf(state, waiting, now) : { perMinute: null, drainMs: null };
    // Another node may have got an answer there since.
    const isSilent = state?.problem?.silentSince != null;
    const noWayOut = closed.find(({ destinations }) => isSilent && destinations.has(destination)) ?? null;
    const found = {
      ...nothing,
      ...(orderOf(subject, statuses) ??
        unattended(subject, statuses, now) ??
        (state && troubleOf(state, subject, { now, noWayOut })) ??
        restOf(subject, state, statuses, now)),
    };
    const { queue = waiting ?? 0, ending = 0 } = subject;
    const severity = severityOf(found, { waiting: waiting ?? 0, pace, queue, ending, now });
    return { ...found, destination, state, waiting, pace, noWayOut, severity };
  };
}

type Found = Omit<Condition, 'destination' | 'state' | 'waiting' | 'pace' | 'noWayOut' | 'severity'>;

const nothing: Found = {
  cause: 'ok',
  since: null,
  evidence: null,
  blockedUntil: null,
  order: null,
  apart: null,
};

const causeOf = { suspend: 'suspended', slow: 'slowed', hold: 'held', bounce: 'bounced' } as const;

function ordered(order: DestinationOrder, isWhole = false): Partial<Found> {
  const { kind, createdAt: since, reason: evidence, until } = order;
  return { cause: causeOf[kind], since, evidence, blockedUntil: isWhole ? until : null, order };
}

/** The mail that the operator, or the lack of a source address, keeps back; null if its mail may be tried. */
function orderOf(
  { destination, domains, noSource, paused }: Subject,
  { orders }: DestinationStatuses,
): Partial<Found> | null {
  if (paused?.isWhole) {
    const { since = null, reason = null } = paused.pause ?? {};
    return { cause: 'paused', since, evidence: reason, apart: paused };
  }
  if (noSource?.isWhole) return { cause: 'no_source', apart: noSource };
  const of = (kinds: DestinationOrder['kind'][], names: string[]) =>
    orders.filter((each) => kinds.includes(each.kind) && names.includes(each.destination));
  const [own] = of(['suspend'], [destination]);
  const some = of(['suspend'], domains);
  const suspension = own ?? some[0];
  if (suspension) return ordered(suspension, own !== undefined || some.length === domains.length);
  const [rule] = of(['hold', 'bounce'], [destination, ...domains]);
  return rule ? ordered(rule) : null;
}

/** Its mail is due, and no server is running; the published states are those of a server that has stopped since. */
function unattended({ dueAt }: Subject, { isServed }: DestinationStatuses, now: number) {
  const isUnattended = !isServed && dueAt !== null && dueAt <= now;
  return isUnattended ? { cause: 'no_server' as const, since: dueAt } : null;
}

/** Attempts that take longer on average are slow: the usual host answers within two seconds. */
const slowMs = 5_000;

/** The condition by the attempts there. An open circuit has the cause of the failures that opened it. */
function troubleOf(
  state: DestinationState,
  { dueAt }: Subject,
  { now, noWayOut }: { now: number; noWayOut: NoWayOut | null },
): Partial<Found> | null {
  const { problem = null, circuit, accepted } = state;
  const blockedUntil = circuit && Math.max(circuit.nextProbeAt, now);
  const ofProblem = problem && { cause: problem.cause, since: problem.since, evidence: problem.reply };
  if (noWayOut) return { ...ofProblem, cause: 'no_way_out', since: noWayOut.since, blockedUntil };
  // They slow us down as well, but for their own reason.
  if (problem?.cause === 'blocklisted' || problem?.cause === 'storage_full')
    return { ...ofProblem, blockedUntil };
  if (circuit) {
    const { since, reason } = circuit;
    return { cause: 'unreachable', since, evidence: reason, ...ofProblem, blockedUntil };
  }
  if (isThrottled(state, state.waiting > 0 || (dueAt !== null && dueAt <= now), now)) {
    const evidence = state.busyReply ?? problem?.reply ?? state.lastReply;
    return { cause: 'throttled', since: state.busySince ?? problem!.since, evidence };
  }
  if (ofProblem) return ofProblem;
  const isSlow = accepted && accepted.count > 0 && accepted.ms / accepted.count > slowMs;
  return isSlow && state.connections >= state.limit ? { cause: 'slow', since: accepted.since } : null;
}

/** Its limit is still lowered when mail is due, or it has asked us to slow down not long ago. */
function isThrottled({ busySince, busyAt, problem }: DestinationState, isDue: boolean, now: number): boolean {
  if (problem?.cause === 'throttled') return true;
  return busySince !== null && (isDue || (busyAt ?? 0) > now - throttledMs);
}

/** Nothing is wrong by the attempts of this server since its start. */
function restOf(
  { destination, dueAt, greylisted, noSource, paused }: Subject,
  state: DestinationState | null,
  { orders }: DestinationStatuses,
  now: number,
): Partial<Found> {
  const limit = orders.find(({ kind, destination: of }) => kind === 'slow' && of === destination);
  if (limit) return ordered(limit);
  if (greylisted) return { cause: 'greylisting', since: greylisted.since, evidence: greylisted.reply };
  const isDue = (dueAt !== null && dueAt <= now) || (state !== null && state.waiting > 0);
  if (state && isDue && state.connections >= state.limit) return { cause: 'busy', since: state.busySince };
  if (noSource) return { cause: 'no_source', apart: noSource };
  return paused ? { cause: 'paused', apart: paused } : {};
}

/** Trouble that lasts this long needs action; else it may pass. */
export const longMs = 3_600_000;
/** Before that: trouble that delays so large a share of all waiting mail, if it is not only a few mails. */
const largeShare = 1 / 4;
const few = 20;
/** Or whose mail is about to expire, unless the trouble has only begun: mail with a short deadline always is. */
const begunMs = longMs / 4;

/** How long it may last before it needs action, if that is another time. */
const patience: Partial<Record<Cause, number>> = {
  no_server: 0,
  no_way_out: 0,
  no_source: 0,
  blocklisted: 0,
  greylisting: 4 * longMs,
  slow: Number.POSITIVE_INFINITY,
};

interface Delay {
  waiting: number;
  pace: Pace;
  /** How much mail waits in all. */
  queue: number;
  /** How much of the destination's mail expires within the hour. */
  ending: number;
  now: number;
}

function severityOf(
  { cause, since, order, apart }: Found,
  { waiting, pace, queue, ending, now }: Delay,
): Severity {
  if (cause === 'ok' || cause === 'busy') return 'ok';
  if (order || (apart && cause === 'paused')) return 'watch';
  const lasts = since === null ? 0 : now - since;
  if (lasts >= (patience[cause] ?? longMs)) return 'act';
  if (cause in patience) return 'watch';
  if (ending > 0 && lasts >= begunMs) return 'act';
  // With something accepted, what matters is how long the rest takes.
  if (cause === 'throttled' && pace.perMinute !== 0) return (pace.drainMs ?? 0) >= longMs ? 'act' : 'watch';
  return waiting > few && waiting >= queue * largeShare ? 'act' : 'watch';
}
