/**
 * Mail that is sent later. A row with the status `scheduled` waits for its `due_at` outside of the backlogs, in an index of
 * its own, so it costs nothing until then; when it is due, it becomes `queued`, with the event email.queued. The time is
 * that of the wall clock: nothing is counted down, so restarts and clock changes need no care.
 */

import { keepRetiredKeys } from '#accounts/rows/dkim-keys.ts';
import { insertRows } from '#platform/database/engine/insert-rows.ts';
import { idList, query } from '#platform/database/engine/json-rows.ts';
import { type Db, isPostgres, type Trx } from '#platform/database/engine/open.ts';
import { bumpUpdatedAt } from '#platform/database/tables/bump-updated-at.ts';
import { eventRow } from '#platform/database/tables/event-row.ts';
import { inStage, stages } from '#platform/database/tables/unfinished-deliveries.ts';
import type { Backlog } from '#platform/values/glossary.ts';

export interface StartedMail {
  /** The backlogs that have new due mail. */
  backlogs: Backlog[];
  /** When the next scheduled mail is due, which may have passed; null if there is none. */
  nextAt: number | null;
}

const maxPerStart = 500;

/** Starts scheduled mail that is due, a bounded number per call. If none is due, this is one index seek. */
export async function startScheduled(db: Db, now: number): Promise<StartedMail> {
  const nextAt = await firstDue(db);
  if (nextAt === null || nextAt > now) return { backlogs: [], nextAt };
  const backlogs = await db.transaction((trx) => startPage(trx, now));
  return { backlogs, nextAt: await firstDue(db) };
}

async function firstDue(db: Db): Promise<number | null> {
  const [row] = await query<{ due_at: number }>(
    db,
    `select due_at from deliveries where ${stages.scheduled} order by due_at limit 1`,
    [],
  );
  return row?.due_at ?? null;
}

async function startPage(trx: Trx, now: number): Promise<Backlog[]> {
  const due = trx('deliveries')
    .where(inStage('scheduled'))
    .where('due_at', '<=', now)
    .orderBy('due_at')
    .limit(maxPerStart)
    .select('id', 'email_id', 'org_id', 'recipient', 'domain');
  const rows = await (isPostgres(trx) ? due.forUpdate().skipLocked() : due);
  if (rows.length === 0) return [];
  const { select, value } = idList(
    trx,
    rows.map(({ id }) => id),
  );
  // Its age, which the queue's views and the latency statistics count, begins now.
  await query(
    trx,
    `update deliveries set status = 'queued', created_at = due_at, updated_at = ? where id in (${select})`,
    [now, value],
  );
  await bumpUpdatedAt(
    trx,
    rows.map((row) => row.email_id),
    now,
  );
  const events = rows.map(({ email_id: emailId, org_id: orgId, recipient }) =>
    eventRow({ orgId, emailId, type: 'email.queued', recipient, at: now, data: {} }),
  );
  await insertRows(trx, 'events', events);
  const backlogs = rows.map(({ org_id: orgId, domain }): [string, Backlog] => [
    `${orgId} ${domain}`,
    { orgId, domain },
  ]);
  return [...new Map(backlogs).values()];
}

/** 'started': some of its recipients are not waiting for their time any more, so nothing was changed. */
export type Rescheduled = 'rescheduled' | 'started' | 'not scheduled';

/**
 * Moves a scheduled email to another time, with its expiry. All of its recipients move or none: those that were canceled
 * stay so, and those that are held start at the new time or at their release, whichever is later.
 */
export async function reschedule(
  db: Db,
  { emailId, orgId, at, now }: { emailId: string; orgId: string | null; at: number; now: number },
): Promise<Rescheduled> {
  return db.transaction(async (trx) => {
    // Deliveries first, like every other transaction that locks both.
    const deliveries = await trx('deliveries')
      .where({ email_id: emailId })
      .orderBy('id')
      .forUpdate()
      .select('id', 'status', 'attempts', 'expires_at');
    const email = await trx('emails')
      .where(orgId === null ? { id: emailId } : { id: emailId, org_id: orgId })
      .first('scheduled_at', 'org_id');
    if (!email || email.scheduled_at === null) return 'not scheduled';
    const isWaiting = (row: { status: string; attempts: number }) =>
      row.status === 'scheduled' || (row.status === 'held' && row.attempts === 0 && email.scheduled_at > now);
    const waiting = deliveries.filter(isWaiting);
    const isUnsent = ({ status }: { status: string }) => unsent.includes(status);
    if (waiting.length === 0 || !deliveries.every((row) => isWaiting(row) || isUnsent(row))) return 'started';
    await trx('deliveries')
      .whereIn(
        'id',
        waiting.map(({ id }) => id),
      )
      .update({
        due_at: trx.raw("case when status = 'scheduled' then cast(? as bigint) end", [at]),
        expires_at: trx.raw('expires_at + ?', [at - email.scheduled_at]),
        updated_at: now,
      });
    await trx('emails').where({ id: emailId }).update({ scheduled_at: at, updated_at: now });
    const expiresAt = Math.max(...waiting.map((row) => row.expires_at)) + at - email.scheduled_at;
    await keepRetiredKeys(trx, email.org_id, expiresAt);
    return 'rescheduled';
  });
}

/** States in which a recipient is not sent to, whatever its email's time. */
const unsent = ['canceled', 'suppressed', 'insufficient_credit'];
