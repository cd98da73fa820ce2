/**
 * Organizations that the operator has paused: their keys and users are refused, and their mail waits. A pause is two columns
 * of the organization, so it takes one statement however much mail waits. Every node reads once a second which organizations
 * are paused (mail/queue/cluster/pool-assignment.ts) and claims none of their mail.
 *
 * A pause does not count towards the maximum age, but a deadline that the sender has set stays. On resume, mail gets back the
 * time that it has waited since the pause began or since it was last changed in the pause, so an interrupted resume can be
 * repeated.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import type { Db, Trx } from '#platform/database/engine/open.ts';
import { inStage } from '#platform/database/tables/unfinished-deliveries.ts';
import { type Pause, pauseOf } from './organizations.ts';

/** An organization that is already paused keeps the time when its pause began. */
export async function pauseOrganization(db: Db, id: string, { since, reason }: Pause): Promise<void> {
  const paused_at = db.raw('coalesce(paused_at, ?)', [since]);
  await db('organizations').where({ id }).update({ paused_at, paused_reason: reason });
}

const pageSize = 1000;
/** SQLite has one writer at a time; another writer that waits for it retries after this long or a little more. */
const writerPauseMs = 20;

/** Resolves with the number of waiting deliveries. */
export async function resumeOrganization(
  db: Db,
  id: string,
  { since }: Pause,
  now: number,
  onProgress: (count: number) => void = () => {},
): Promise<number> {
  let count = 0;
  for (let after: Position | null = null; ; await sleep(writerPauseMs)) {
    const page: Position[] = await readPage(db, id, { after, now });
    if (page.length > 0) await db.transaction((trx) => makeYounger(trx, page, { since, now }));
    count += page.length;
    if (page.length < pageSize) break;
    onProgress(count);
    after = page.at(-1)!;
  }
  await db('organizations').where({ id }).update({ paused_at: null, paused_reason: null });
  return count;
}

interface Position {
  id: string;
  expires_at: number;
}

/**
 * In the order of the index by maximum age. A changed row has a later place in it, but is not read again because of
 * `updated_at`.
 */
async function readPage(
  db: Db,
  orgId: string,
  { after, now }: { after: Position | null; now: number },
): Promise<Position[]> {
  const rows = db('deliveries')
    .where(inStage('waiting'))
    .where({ org_id: orgId })
    .where('updated_at', '<', now);
  if (after) rows.whereRaw('(expires_at, id) > (?, ?)', [after.expires_at, after.id]);
  return rows.orderBy('expires_at').orderBy('id').limit(pageSize).select('id', 'expires_at');
}

async function makeYounger(
  trx: Trx,
  page: Position[],
  { since, now }: { since: number; now: number },
): Promise<void> {
  const ids = page.map(({ id }) => id);
  const waitedFrom = 'case when updated_at > ? then updated_at else ? end';
  await trx('deliveries')
    .where(inStage('waiting'))
    .where('updated_at', '<', now)
    .whereIn('id', ids)
    .update({
      expires_at: trx.raw(
        `case when has_deadline then expires_at else expires_at + ? - (${waitedFrom}) end`,
        [now, since, since],
      ),
      updated_at: now,
    });
}

/** A subquery for the ids of all paused organizations. */
export function pausedOrganizations(db: Db | Trx) {
  return db('organizations').whereNotNull('paused_at').select('id');
}

export async function readPause(db: Db, orgId: string): Promise<Pause | null> {
  const row = await db('organizations').where({ id: orgId }).select('paused_at', 'paused_reason').first();
  return row ? pauseOf(row) : null;
}

/** Counts the waiting mail of paused organizations by recipient domain. */
export async function countPausedMail(db: Db): Promise<{ domain: string; count: number }[]> {
  const some = await pausedOrganizations(db).first();
  if (!some) return [];
  const rows: { domain: string; count: number | string }[] = await db('deliveries')
    .where(inStage('waiting'))
    .whereIn('org_id', pausedOrganizations(db))
    .groupBy('domain')
    .select('domain')
    .select(db.raw('count(*) as count'));
  return rows.map(({ domain, count }) => ({ domain, count: Number(count) }));
}
