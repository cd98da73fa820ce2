/**
 * What waits, a line for each destination or recipient domain, put together from the queue (db/queue/queue-view.ts) and from
 * how destinations stand (db/queue/destination-status-rows.ts): pure functions.
 */

import type { DestinationState, DestinationStatuses } from '../../db/queue/destination-status-rows.ts';
import type { DomainQueue, WaitingFigures } from '../../db/queue/queue-view.ts';
import { replyText } from '../../outcome.ts';
import { type DestinationStatus, destinationStatus, type StatusSubject } from './destination-status.ts';

/** A destination with all that waits for it. */
export interface QueueRow {
  destination: string;
  domains: string[];
  counts: Record<WaitingFigures, number>;
  parked: number;
  ages: number[];
  oldestAt: number | null;
  dueAt: number | null;
  lastReply: string | null;
  lastReplyAt: number | null;
  state: DestinationState | null;
  condition: DestinationStatus;
  nextAttemptAt: number | null;
}

/** `isByDomain`: a line for each recipient domain; else for each destination. */
export function queueRows(
  queues: DomainQueue[],
  standings: DestinationStatuses,
  isByDomain: boolean,
  now: number,
): QueueRow[] {
  const groups = Map.groupBy(queues, ({ domain, destination }) => (isByDomain ? domain : destination));
  const lines = [...groups.values()].map((group) => lineOf(group, standings, now));
  const named = new Set(lines.flatMap(({ destination, domains }) => [destination, ...domains]));
  // A suspension is not to be forgotten because nothing waits for it yet.
  const idle = standings.suspensions.filter(({ destination }) => !named.has(destination));
  return [...lines, ...idle.map(({ destination }) => idleRow(destination, standings, now))];
}

function lineOf(group: DomainQueue[], standings: DestinationStatuses, now: number): QueueRow {
  const { destination } = group[0]!;
  const domains = group.map(({ domain }) => domain);
  const sum = (countOf: (queue: DomainQueue) => number) =>
    group.reduce((all, each) => all + countOf(each), 0);
  const dueTimes = group.flatMap(({ nextAttemptAt }) => nextAttemptAt ?? []);
  const dueAt = dueTimes.length === 0 ? null : Math.min(...dueTimes);
  const state = standings.states.get(destination) ?? null;
  const stranded = strandedIn(group);
  const place = {
    ...{ destination, domains, dueAt, stranded },
    paused: pausedIn(group),
    greylisted: greylistedIn(group),
  };
  const condition = destinationStatus(place, standings, now);
  return {
    destination,
    domains,
    counts: {
      queued: sum(({ counts }) => counts.queued),
      sending: sum(({ counts }) => counts.sending),
      deferred: sum(({ counts }) => counts.deferred),
      held: sum(({ counts }) => counts.held),
    },
    parked: sum(({ parked }) => parked),
    ages: group[0]!.ages.map((_, at) => sum((queue) => queue.ages[at]!)),
    oldestAt: Math.min(...group.map(({ oldestAt }) => oldestAt)),
    dueAt,
    ...latestReply(group, state),
    state,
    condition,
    nextAttemptAt: nextAttemptAt(dueAt, condition),
  };
}

/** A destination that nothing waits for. */
export function idleRow(destination: string, standings: DestinationStatuses, now: number): QueueRow {
  return {
    destination,
    domains: [],
    counts: { queued: 0, sending: 0, deferred: 0, held: 0 },
    parked: 0,
    ages: [],
    ...{ oldestAt: null, dueAt: null, lastReply: null, lastReplyAt: null, nextAttemptAt: null },
    state: standings.states.get(destination) ?? null,
    condition: destinationStatus(
      { destination, domains: [], ...{ dueAt: null, stranded: null, paused: null, greylisted: null } },
      standings,
      now,
    ),
  };
}

function strandedIn(group: DomainQueue[]): StatusSubject['stranded'] {
  const stranded = group.flatMap((queue) => queue.stranded);
  if (stranded.length === 0) return null;
  const count = stranded.reduce((sum, each) => sum + each.count, 0);
  const waiting = group.reduce((sum, { counts }) => sum + counts.queued + counts.deferred, 0);
  return { pools: [...new Set(stranded.map(({ pool }) => pool))], count, isWhole: count >= waiting };
}

function pausedIn(group: DomainQueue[]): StatusSubject['paused'] {
  const count = group.reduce((sum, { paused }) => sum + paused, 0);
  const waiting = group.reduce((sum, { counts }) => sum + counts.queued + counts.deferred, 0);
  return count === 0 ? null : { count, isWhole: count >= waiting, pause: null };
}

/** The latest reply of all; since the first of these domains. */
function greylistedIn(group: DomainQueue[]): StatusSubject['greylisted'] {
  const latest = group.reduce((a, b) => ((b.lastReplyAt ?? 0) > (a.lastReplyAt ?? 0) ? b : a));
  const since = group.flatMap(({ greylistedSince }) => greylistedSince ?? []);
  if (latest.greylistedSince === null || latest.lastReply === null) return null;
  return { since: Math.min(...since), reply: replyText(latest.lastReply) };
}

/** What the mail that waits has met, or the server since then with other mail. */
function latestReply(
  group: DomainQueue[],
  state: DestinationState | null,
): Pick<QueueRow, 'lastReply' | 'lastReplyAt'> {
  const said = [
    ...group.map(({ lastReply, lastReplyAt }) => ({
      lastReply: lastReply && replyText(lastReply),
      lastReplyAt,
    })),
    { lastReply: state?.lastReply ?? null, lastReplyAt: state?.lastReplyAt ?? null },
  ];
  return said.reduce((a, b) => ((b.lastReplyAt ?? 0) > (a.lastReplyAt ?? 0) ? b : a));
}

/** What is due already is tried when its destination may be. */
function nextAttemptAt(dueAt: number | null, condition: DestinationStatus): number | null {
  if (dueAt === null) return null;
  if (condition.is === 'suspended' && condition.isWhole) return Math.max(dueAt, condition.suspension.until);
  return condition.is === 'circuit_open' ? Math.max(dueAt, condition.circuit.nextProbeAt) : dueAt;
}

export function totalOf({ counts }: QueueRow): number {
  return counts.queued + counts.sending + counts.deferred + counts.held;
}
