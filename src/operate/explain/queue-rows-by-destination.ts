/**
 * The rows of the queue summary, one for each destination or recipient domain: joins the queue (mail/queue/rows/queue-view.ts)
 * with the status of destinations (mail/record/rows/destination-status-rows.ts), in the age groups of Postfix's qshape.
 */

import { replyText } from '#mail/deliver/outcome.ts';
import { type DomainQueue, summarizeQueue, type WaitingFigures } from '#mail/queue/rows/queue-view.ts';
import {
  type DestinationState,
  type DestinationStatuses,
  readDestinationStatuses,
} from '#mail/record/rows/destination-status-rows.ts';
import {
  type Condition,
  type ConditionOf,
  conditionsAt,
  type Subject,
} from '#operate/condition/condition.ts';
import type { Db } from '#platform/database/engine/open.ts';

/** A destination and the mail that waits for it. */
export interface QueueRow {
  destination: string;
  domains: string[];
  counts: Record<WaitingFigures, number>;
  parked: number;
  /** Keyed by `ageNames`. */
  ages: number[];
  oldestAt: number | null;
  dueAt: number | null;
  lastReply: string | null;
  lastReplyAt: number | null;
  state: DestinationState | null;
  condition: Condition;
  nextAttemptAt: number | null;
}

/** In minutes. */
const ages = [5, 10, 20, 40, 80, 160, 320];
export const ageNames = [...ages.map((minutes) => `${minutes}m`), 'older'];

/** The destination whose mail has waited longest comes first. */
export async function readSummary(
  db: Db,
  { now, isByDomain = false, served }: { now: number; isByDomain?: boolean; served?: boolean },
): Promise<QueueRow[]> {
  const bounds = ages.map((minutes) => minutes * 60_000);
  const queues = await summarizeQueue(db, { now, bounds });
  return queueRows(queues, await readDestinationStatuses(db, now, served), isByDomain, now);
}

/** `isByDomain`: a row for each recipient domain; otherwise for each destination. */
function queueRows(
  queues: DomainQueue[],
  statuses: DestinationStatuses,
  isByDomain: boolean,
  now: number,
): QueueRow[] {
  const groups = Map.groupBy(queues, ({ domain, destination }) => (isByDomain ? domain : destination));
  const queue = queues.reduce((sum, { counts }) => sum + counts.queued + counts.deferred, 0);
  const conditionAt = conditionsAt(statuses, now);
  const conditionOf: ConditionOf = (subject) => conditionAt({ ...subject, queue });
  const rows = [...groups.values()].map((group) => rowOf(group[0]!.destination, group, conditionOf));
  const named = new Set(rows.flatMap(({ destination, domains }) => [destination, ...domains]));
  // A destination with a rule of the operator has a row even if no mail waits for it, so that the rule is not overlooked.
  const ruled = statuses.orders.map(({ destination }) => destination);
  const idle = [...new Set(ruled)].filter((destination) => !named.has(destination));
  return [...rows, ...idle.map((destination) => rowOf(destination, [], conditionOf))];
}

function rowOf(destination: string, group: DomainQueue[], conditionOf: ConditionOf): QueueRow {
  const domains = group.map(({ domain }) => domain);
  const sum = (countOf: (queue: DomainQueue) => number) =>
    group.reduce((all, each) => all + countOf(each), 0);
  const of = (status: WaitingFigures) => sum(({ counts }) => counts[status]);
  const counts = { queued: of('queued'), sending: of('sending'), deferred: of('deferred'), held: of('held') };
  const dueAt = earliest(group.flatMap(({ nextAttemptAt }) => nextAttemptAt ?? []));
  const waiting = counts.queued + counts.deferred;
  const condition = conditionOf({
    destination,
    domains,
    dueAt,
    waiting: waiting + counts.sending,
    noSource: noSourceIn(group, waiting),
    paused: pausedIn(group, waiting),
    greylisted: greylistedIn(group),
  });
  const { state } = condition;
  return {
    destination,
    domains,
    counts,
    parked: sum(({ parked }) => parked),
    ages: ageNames.map((_, at) => sum((queue) => queue.ages[at]!)),
    oldestAt: earliest(group.map(({ oldestAt }) => oldestAt)),
    dueAt,
    ...latestReply(group, state),
    state,
    condition,
    // Mail that is due waits until its destination may be tried.
    nextAttemptAt: dueAt === null ? null : Math.max(dueAt, condition.blockedUntil ?? 0),
  };
}

/** The row of a destination for which no mail waits. */
export function idleRow(destination: string, statuses: DestinationStatuses, now: number): QueueRow {
  return rowOf(destination, [], conditionsAt(statuses, now));
}

function earliest(times: number[]): number | null {
  return times.length === 0 ? null : Math.min(...times);
}

function noSourceIn(group: DomainQueue[], waiting: number): Subject['noSource'] {
  const withoutSource = group.flatMap((queue) => queue.withoutSource);
  if (withoutSource.length === 0) return null;
  const count = withoutSource.reduce((sum, each) => sum + each.count, 0);
  return { pools: [...new Set(withoutSource.map(({ pool }) => pool))], count, isWhole: count >= waiting };
}

function pausedIn(group: DomainQueue[], waiting: number): Subject['paused'] {
  const count = group.reduce((sum, { paused }) => sum + paused, 0);
  return count === 0 ? null : { count, isWhole: count >= waiting, pause: null };
}

/** The latest of all replies, and when the first of these domains was greylisted; null if that reply is another one. */
function greylistedIn(group: DomainQueue[]): Subject['greylisted'] {
  const latest = group.toSorted((a, b) => (b.lastReplyAt ?? 0) - (a.lastReplyAt ?? 0))[0];
  const since = group.flatMap(({ greylistedSince }) => greylistedSince ?? []);
  if (!latest?.lastReply || latest.greylistedSince === null) return null;
  return { since: Math.min(...since), reply: replyText(latest.lastReply) };
}

/** The latest reply that the waiting mail got, or a later one that the destination gave to other mail. */
function latestReply(group: DomainQueue[], state: DestinationState | null) {
  const none = { lastReply: null, lastReplyAt: null };
  if (group.length === 0) return none;
  const replies: Pick<QueueRow, 'lastReply' | 'lastReplyAt'>[] = [
    ...group.map(({ lastReply: reply, lastReplyAt }) => ({
      lastReply: reply && replyText(reply),
      lastReplyAt,
    })),
    state ?? none,
  ];
  const { lastReply, lastReplyAt } = replies.reduce((a, b) =>
    (b.lastReplyAt ?? 0) > (a.lastReplyAt ?? 0) ? b : a,
  );
  return { lastReply, lastReplyAt };
}

export function totalOf({ counts }: QueueRow): number {
  return counts.queued + counts.sending + counts.deferred + counts.held;
}
