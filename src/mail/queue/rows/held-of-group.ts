/** Mail of a group (platform/database/tables/mail-group.ts) that is being sent, and that is held. Read when it is asked for. */
import type { Db } from '#platform/database/engine/open.ts';
import { isInGroup, type MailGroup } from '#platform/database/tables/mail-group.ts';
import { emails } from '#platform/database/tables/mail-tables.ts';
import { inStage, type Stage } from '#platform/database/tables/unfinished-deliveries.ts';

type OwnGroup = MailGroup & { orgId: string };

const grouped = emails.pick('keyId', 'stream', 'tags', 'isTest');

function unfinished(db: Db, { orgId }: OwnGroup, stage: Stage) {
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

/** What a rule holds, among so many of the organization. Past its deadline, mail expires when it is released. */
export async function countHeld(
  db: Db,
  group: OwnGroup,
  now: number,
): Promise<{ count: number; pastDeadline: number }> {
  const rows = await unfinished(db, group, 'held')
    .where({ auto_held: true })
    .limit(maxCounted)
    .select('has_deadline', 'expires_at');
  const own = rows.filter((row) => isInGroup(group, grouped.read(row)));
  const past = own.filter((row) => row.has_deadline && Number(row.expires_at) <= now);
  return { count: own.length, pastDeadline: past.length };
}
