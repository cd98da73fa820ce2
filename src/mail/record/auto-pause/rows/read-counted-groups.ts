/**
 * The statistics by group that the rules judge: of this UTC day and the one before, so that midnight hides nothing.
 *
 * BUGS: a key, a stream or a tag beyond the 200 of a day (mail/record/rows/group-statistics.ts) is not judged by itself.
 */

import {
  type CountedGroup,
  type JudgedCounts,
  judgedCounts,
  type PauseMode,
} from '#mail/record/auto-pause/pause-rules.ts';
import { theRest } from '#mail/record/rows/group-statistics.ts';
import type { Db } from '#platform/database/engine/open.ts';
import type { MailGroup, MailGroupKind } from '#platform/database/tables/mail-group.ts';

const dayMs = 86_400_000;

/** When the two days began. */
export const judgedSince = (now: number) => now - (now % dayMs) - dayMs;

type Row = JudgedCounts & { kind: MailGroupKind; name: string; day: number };

/** One row for each day and group. */
function readRows(db: Db, orgId: string, now: number): Promise<Row[]> {
  return db('group_statistics')
    .where({ org_id: orgId })
    .where('day', '>=', judgedSince(now))
    .whereIn('kind', ['key', 'stream', 'tag'])
    .select('kind', 'name', 'day', ...judgedCounts);
}

/** What of a pause says how its group is judged. */
interface KnownPause extends MailGroup {
  state: string;
  since: number;
  releasedAt: number | null;
  forgiven: Record<string, JudgedCounts> | null;
}

/** `known`: the pauses of the organization. `all`: every mail has a key, or none, which is a group too. */
export async function readCountedGroups(
  db: Db,
  orgId: string,
  { known, mode, now }: { known: KnownPause[]; mode: PauseMode; now: number },
): Promise<{ groups: CountedGroup[]; all: JudgedCounts }> {
  const since = judgedSince(now);
  const rows = await readRows(db, orgId, now);
  const named = rows.filter(({ name }) => name !== theRest);
  const groups = [...Map.groupBy(named, ({ kind, name }) => `${kind} ${name}`).values()].map((some) => {
    const { kind, name } = some[0]!;
    const pause = known.find((one) => one.kind === kind && one.name === name);
    const isHeld = pause?.state === 'held';
    const isRecent = pause !== undefined && (pause.releasedAt ?? pause.since) >= since;
    return {
      kind,
      name,
      ...sumOf(some),
      forgiven: pause?.forgiven ? sumOf(recentOf(pause.forgiven, since)) : null,
      isKnown: isHeld || isRecent,
      isSettled: isHeld || (isRecent && pause.state === 'warned' && mode === 'warn'),
    };
  });
  return { groups, all: sumOf(rows.filter(({ kind }) => kind === 'key')) };
}

const recentOf = (byDay: Record<string, JudgedCounts>, since: number) =>
  Object.entries(byDay).flatMap(([day, counts]) => (Number(day) >= since ? [counts] : []));

function sumOf(rows: JudgedCounts[]): JudgedCounts {
  const sums = { delivered: 0, bounced: 0, hard: 0, complained: 0 };
  for (const row of rows) for (const name of judgedCounts) sums[name] += row[name];
  return sums;
}

/** What counts for a group by now. */
export async function countsByDay(
  db: Db,
  orgId: string,
  { kind, name }: MailGroup,
  now: number,
): Promise<Record<string, JudgedCounts>> {
  const rows = await readRows(db, orgId, now);
  const own = rows.filter((row) => row.kind === kind && row.name === name);
  const days = Map.groupBy(own, ({ day }) => String(day));
  return Object.fromEntries([...days].map(([day, some]) => [day, sumOf(some)]));
}
