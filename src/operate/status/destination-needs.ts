/**
 * Destinations that something is wrong with (operate/condition/condition.ts). Mail is counted only for those that are shown.
 * If nothing gets out at all, that is one entry, and the destinations are folded below it.
 */

import {
  countAllWaiting,
  countEnding,
  countQueue,
  countWaiting,
  domainsServed,
  maxCounted,
} from '#mail/queue/rows/waiting-counts.ts';
import type { DestinationStatuses } from '#mail/record/rows/destination-status-rows.ts';
import { type Condition, conditionsAt, longMs, named } from '#operate/condition/condition.ts';
import { adviceFor, adviceWithoutWay } from '#operate/condition/condition-advice.ts';
import { type NoWayOut, noWaysOut } from '#operate/condition/no-way-out.ts';
import { paceText } from '#operate/condition/pace.ts';
import { dueIn, span } from '#platform/base/span.ts';
import { type Db, isPostgres } from '#platform/database/engine/open.ts';
import { type Need, ranked, thisServer } from './need.ts';

/** More are only counted. */
const maxDestinations = 20;

export interface DestinationNeeds {
  needs: Need[];
  /** The destinations of `no_way_out`, each as if it had an entry of its own; at most 20. */
  folded: Need[];
  /** Destinations in trouble that are not listed. */
  more: number;
}

export async function readDestinationNeeds(
  db: Db,
  statuses: DestinationStatuses,
  { now, port }: { now: number; port: number },
): Promise<DestinationNeeds> {
  const conditionOf = conditionsAt(statuses, now);
  const troubles = [...statuses.states.keys()]
    .map((name) => conditionOf(named(name)))
    .filter(({ severity, order }) => severity !== 'ok' && order === null)
    .toSorted((a, b) => (a.since ?? 0) - (b.since ?? 0));
  const queue = troubles.length === 0 ? 0 : await countQueue(db);
  const ending = troubles.length === 0 ? new Map() : await countEnding(db, now + longMs);
  const first = async (some: Condition[]): Promise<Need[]> => {
    const drafts = ranked(some.map((condition) => needOf(condition, now))).slice(0, maxDestinations);
    const waiting = await countWaiting(
      db,
      drafts.map(({ subject }) => subject),
    );
    const domains = await domainsServed(db, [...waiting.keys()]);
    const counted = [...waiting].map(([name, count]) => {
      const ends = (domains.get(name) ?? []).reduce((sum, domain) => sum + (ending.get(domain) ?? 0), 0);
      return conditionOf({ ...named(name, count), queue, ending: ends });
    });
    return ranked(counted.filter(isStillWrong).map((condition) => needOf(condition, now)));
  };
  const single = troubles.filter(({ noWayOut }) => noWayOut === null);
  const folded = troubles.filter(({ noWayOut }) => noWayOut !== null);
  const server = noWaysOut(statuses.silent).map(async (one) => {
    const waiting = await countAllWaiting(db, [...one.destinations]);
    return serverNeed(one, { waiting, port, server: isPostgres(db) ? `node ${one.node}` : thisServer });
  });
  return {
    needs: [...(await Promise.all(server)), ...(await first(single))],
    folded: await first(folded),
    more: Math.max(single.length - maxDestinations, 0),
  };
}

/** Without waiting mail nothing is delayed; what bounced in the last hour is still news. */
function isStillWrong({ state, waiting }: Condition): boolean {
  const isBusy = state!.connections > 0 || state!.waiting > 0;
  return waiting! > 0 || isBusy || state!.problem?.bouncedAt != null;
}

function needOf(condition: Condition, now: number): Need {
  const { cause, destination, severity, since, evidence, pace } = condition;
  return {
    cause,
    severity: severity === 'act' ? 'act' : 'watch',
    subject: destination,
    since,
    figure: figureOf(condition, now),
    reply: evidence,
    ...adviceFor(condition),
    path: `/queue/to/${encodeURIComponent(destination)}`,
    traffic: { waiting: condition.waiting ?? 0, ...pace },
  };
}

interface Closed {
  waiting: number;
  port: number;
  /** Its name. */
  server: string;
}

function serverNeed(noWayOut: NoWayOut, { waiting, port, server }: Closed): Need {
  const { cause, destinations, since } = noWayOut;
  const figures = {
    port: `port ${port} to all ${destinations.size} hosts is refused or silent`,
    resolver: `our DNS resolver does not answer for any of ${destinations.size} domains`,
    dns: `none of ${destinations.size} domains can be looked up in DNS`,
  };
  return {
    cause: 'no_way_out',
    severity: 'act',
    subject: server,
    since,
    figure: `${countText(waiting)} waiting, ${figures[cause]}`,
    advice: adviceWithoutWay(noWayOut),
    command: 'postern doctor',
    path: '/doctor',
    traffic: { waiting, perMinute: null, drainMs: null },
  };
}

function countText(waiting: number): string {
  return `${waiting >= maxCounted ? 'more than ' : ''}${waiting}`;
}

function figureOf({ cause, state, waiting, pace, blockedUntil }: Condition, now: number): string {
  const { problem, accepted, busySince } = state!;
  const parts = [`${countText(waiting ?? 0)} waiting`];
  if (pace.perMinute !== 0 || busySince !== null) parts.push(...paceText(pace));
  if (cause === 'slow') parts.push(`${span(accepted!.ms / accepted!.count)} for each mail`);
  if (problem && cause !== 'throttled')
    parts.push(`${problem.count} ${problem.count === 1 ? 'attempt' : 'attempts'} failed`);
  if (blockedUntil !== null) parts.push(`next attempt ${dueIn(blockedUntil - now)}`);
  return parts.join(', ');
}
