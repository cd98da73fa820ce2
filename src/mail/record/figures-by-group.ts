/** Statistics by group as the API and the dashboard show them; the receiving provider is found by the domain's route. */

import { providerOf } from '#mail/deliver/receivers.ts';
import type { Db } from '#platform/database/engine/open.ts';
import { defaultStream } from '#platform/values/stream.ts';
import { type Counts, countNames } from './counts.ts';
import { routesOf } from './rows/destination-status-rows.ts';
import { type GroupFigures, type GroupKind, readGroups, theRest } from './rows/group-statistics.ts';

/** The ways to group statistics. */
export const groupings = ['domain', 'provider', 'tag', 'sender', 'key', 'stream', 'reason', 'fault'] as const;

export type Grouping = (typeof groupings)[number];

/** The whole UTC days from `since` to before `until`. */
export interface Days {
  since: number;
  until: number;
}

/** The one with the most mail first; `theRest` last. */
export async function figuresBy(db: Db, orgId: string, by: Grouping, days: Days): Promise<GroupFigures[]> {
  const kind: GroupKind = by === 'provider' ? 'domain' : by;
  const groups = await readGroups(db, orgId, { kind, ...days });
  if (by === 'stream')
    return withDefaultStream(groups, await readGroups(db, orgId, { kind: 'key', ...days }));
  if (by !== 'provider') return groups;
  const names = groups.map(({ name }) => name);
  const routes = await routesOf(db, names);
  const providers = Map.groupBy(groups, ({ name }) =>
    name === theRest ? theRest : providerOf(routes.get(name)),
  );
  const sums = [...providers].map(([name, some]) => ({ ...totalOf(some), name }));
  return sums.sort((a, b) => Number(a.name === theRest) - Number(b.name === theRest) || b.sent - a.sent);
}

/** Mail without a stream has no row of its own, so that it costs none: it is what is left of all mail, as counted by key. */
function withDefaultStream(streams: GroupFigures[], keys: GroupFigures[]): GroupFigures[] {
  const [named, all] = [totalOf(streams), totalOf(keys)];
  const rest = {
    name: defaultStream,
    ...(Object.fromEntries(countNames.map((name) => [name, all[name] - named[name]])) as Counts),
    hard: all.hard - named.hard,
    took: all.took.map((count, index) => count - (named.took[index] ?? 0)),
  };
  const isAny = countNames.some((name) => rest[name] > 0);
  return [...streams, ...(isAny ? [rest] : [])].sort((a, b) => b.sent - a.sent);
}

function totalOf(groups: GroupFigures[]): Omit<GroupFigures, 'name'> {
  const sum = (of: (group: GroupFigures) => number) => groups.reduce((total, group) => total + of(group), 0);
  return {
    ...(Object.fromEntries(countNames.map((name) => [name, sum((group) => group[name])])) as Counts),
    hard: sum(({ hard }) => hard),
    took: (groups[0]?.took ?? []).map((_, index) => sum(({ took }) => took[index]!)),
  };
}
