/**
 * Destinations that something is wrong with. Their published states say what (destination-trouble.ts); mail is counted only for
 * those that are shown.
 */
import { span } from '../../base/span.ts';
import type { Db } from '../../db/engine/open.ts';
import type { DestinationStatuses } from '../../db/queue/destination-status-rows.ts';
import { countWaiting, maxCounted } from '../../db/queue/waiting-counts.ts';
import { paceOf, rateText } from '../explain/pace.ts';
import { actionFor } from './destination-actions.ts';
import { type Trouble, troubleOf } from './destination-trouble.ts';
import { type Need, ranked, type Traffic } from './need.ts';

/** More are only counted. */
const maxDestinations = 20;

/** Trouble that lasts this long, or delays this many mails, needs a person; else it may pass. */
const longMs = 3_600_000;
const many = 100;

export interface DestinationNeeds {
  needs: Need[];
  /** Destinations in trouble that are not listed. */
  more: number;
}

export async function readDestinationNeeds(
  db: Db,
  statuses: DestinationStatuses,
  now: number,
  only: (destination: string) => boolean = () => true,
): Promise<DestinationNeeds> {
  const suspended = new Set(statuses.suspensions.map(({ destination }) => destination));
  const troubles = [...statuses.states]
    .filter(([name]) => only(name) && !suspended.has(name))
    .flatMap(([name, state]) => troubleOf(name, state, now) ?? []);
  const drafts = ranked(troubles.map((trouble) => needOf(trouble, 0, now)));
  const shown = new Set(drafts.slice(0, maxDestinations).map(({ subject }) => subject));
  const waiting = await countWaiting(db, [...shown]);
  const needs = troubles
    .filter(({ destination }) => shown.has(destination))
    .map((trouble) => needOf(trouble, waiting.get(trouble.destination)!, now))
    .filter((need) => isStillWrong(need, troubles));
  return { needs: ranked(needs), more: drafts.length - shown.size };
}

/** Without waiting mail nothing is delayed; what bounced in the last hour is still news. */
function isStillWrong({ subject, traffic }: Need, troubles: Trouble[]): boolean {
  const { state } = troubles.find(({ destination }) => destination === subject)!;
  const isBusy = state.connections > 0 || state.waiting > 0;
  return traffic!.waiting > 0 || isBusy || state.problem?.bouncedAt != null;
}

function needOf(trouble: Trouble, waiting: number, now: number): Need {
  const { destination, state, cause, since, reply } = trouble;
  const traffic: Traffic = { waiting, ...paceOf(state, waiting, now) };
  return {
    cause,
    severity: severityOf(trouble, traffic, now),
    subject: destination,
    since,
    figure: figureOf(trouble, traffic, now),
    reply,
    ...actionFor(trouble, traffic),
    path: `/queue/to/${encodeURIComponent(destination)}`,
    traffic,
  };
}

function severityOf({ cause, since }: Trouble, { waiting, drainMs }: Traffic, now: number): Need['severity'] {
  if (cause === 'blocklisted') return 'act';
  if (cause === 'slow') return 'watch';
  const isLong = now - since >= longMs;
  if (cause === 'greylisting') return now - since >= 4 * longMs ? 'act' : 'watch';
  if (cause === 'throttled') return isLong || (drainMs ?? 0) >= longMs ? 'act' : 'watch';
  return isLong || waiting >= many ? 'act' : 'watch';
}

function figureOf({ state, cause }: Trouble, { waiting, perMinute, drainMs }: Traffic, now: number): string {
  const { problem, circuit } = state;
  const parts = [`${waiting >= maxCounted ? 'more than ' : ''}${waiting} waiting`];
  if (perMinute !== null && (perMinute > 0 || state.busySince !== null))
    parts.push(`${rateText(perMinute)}`, ...(drainMs === null ? [] : [`${span(drainMs)} to drain`]));
  if (cause === 'slow') parts.push(`${span(state.accepted!.ms / state.accepted!.count)} for each mail`);
  if (problem && cause !== 'throttled') parts.push(`${problem.count} failed`);
  if (circuit) parts.push(`next probe ${probeIn(circuit.nextProbeAt - now)}`);
  return parts.join(', ');
}

function probeIn(ms: number): string {
  return ms < 1000 ? 'now' : `in ${span(ms)}`;
}
