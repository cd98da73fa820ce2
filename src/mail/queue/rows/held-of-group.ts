/** Mail of a group (platform/database/tables/mail-group.ts) that is being sent, and that is held. Read when it is asked for. */
import type { Db } from '#platform/database/engine/open.ts';
import { isInGroup, type MailGroup } from '#platform/database/tables/mail-group.ts';
import { emails } from '#platform/database/tables/mail-tables.ts';
import { inStage, type Stage } from '#platform/database/tables/unfinished-deliveries.ts';

type OwnGroup = MailGroup & { orgId: string };

const grouped = emails.pick('keyId', 'stream', 'tags', 'isTest');

function unfinished(db: Db, { orgId }: Pick<OwnGroup, 'orgId'>, stage: Stage) {
  return db('deliveries')
    .join('emails', 'emails.id', 'deliveries.email_id')
    .where('deliveries.org_id', orgId)
    .where(inStage(stage))
    .select(grouped.columnsOf('emails'));
}

/** Whether any has a lease. What is being sent is bounded, however much waits. */
export async function isBeingSent(db: Db, group: OwnGroup): Promise<boolean> {
  return (await unfinished(db, group, 'leased')).some((row) => isInGroup(group, grouped.read(row)));
}

const maxCounted = 10_000;

export interface HeldCount {
  count: number;
  /** Past its deadline, mail expires when it is released. */
  pastDeadline: number;
  /** The organization has more held mail than is read: there may be more of the group. */
  isCut: boolean;
}

/** What rules hold of each of an organization's groups. Its held mail is read once for all of them. */
export async function countHeld(
  db: Db,
  orgId: string,
  groups: readonly MailGroup[],
  now: number,
  max = maxCounted,
): Promise<HeldCount[]> {
  if (groups.length === 0) return [];
  const rows = await unfinished(db, { orgId }, 'held')
    .where({ auto_held: true })
    .limit(max + 1)
    .select('has_deadline', 'expires_at');
  const isPast = (row: (typeof rows)[number]) => row.has_deadline && Number(row.expires_at) <= now;
  return groups.map((group) => {
    const own = rows.slice(0, max).filter((row) => isInGroup(group, grouped.read(row)));
    return { count: own.length, pastDeadline: own.filter(isPast).length, isCut: rows.length > max };
  });
}
