/**
 * The pauses that the rules have begun (pause-rules.ts): one row for each group of mail, with the evidence and what is forgiven
 * since its last release. What is held is also in the row of its organization, because acceptance reads and locks that anyway
 * (mail/accept/rows/acceptance.ts): so no mail of the group is sent that is accepted after this commit, and mail of organizations
 * with nothing held costs no look-up. Mail that waits is held, and released, by sweep-pauses.ts: `sweep` says what is left to do.
 */

import { lockOrganization, type Organization } from '#accounts/rows/organizations.ts';
import type { Breach, JudgedCounts, PauseRuleName } from '#mail/record/auto-pause/pause-rules.ts';
import { iso } from '#platform/base/clock.ts';
import { newId } from '#platform/base/id.ts';
import type { Db, Trx } from '#platform/database/engine/open.ts';
import { json, number, orNull, records, text, value } from '#platform/database/engine/records.ts';
import { eventRow } from '#platform/database/tables/event-row.ts';
import type { MailGroupKind } from '#platform/database/tables/mail-group.ts';
import { type EvidenceMail, readEvidence } from './pause-evidence.ts';
import { countsByDay, judgedSince } from './read-counted-groups.ts';

/** warned: the mail goes on. */
type PauseState = 'held' | 'warned' | 'released';

/** hold: the mail that waits; hold-rest: what was being sent then; release: what is held. */
type Sweep = 'hold' | 'hold-rest' | 'release';

const pauses = records({
  id: text,
  orgId: text,
  kind: value<MailGroupKind>(),
  name: text,
  state: value<PauseState>(),
  rule: value<PauseRuleName>(),
  since: number,
  figures: json<Pick<Breach, 'count' | 'of'>>(),
  mails: json<EvidenceMail[]>(),
  releasedAt: orNull(number),
  /** What counted at the last release, by day. */
  forgiven: orNull(json<Record<string, JudgedCounts>>()),
  sweep: orNull(value<Sweep>()),
});

export type AutoPause = ReturnType<typeof pauses.read> & {
  /** The label of the key; null for the others. */
  label: string | null;
  orgName: string;
};

/** Acceptance reads them for each send. Of more, people are warned. */
const maxHeld = 100;

/** Those in force, the newest first; of all organizations without `orgId`. */
export async function listPauses(db: Db, limit: number, orgId?: string): Promise<AutoPause[]> {
  const query = db('auto_pauses').whereNot({ state: 'released' }).orderBy('since', 'desc').orderBy('id');
  const rows = await (orgId === undefined ? query : query.where({ org_id: orgId })).limit(limit);
  return withLabels(db, rows.map(pauses.read));
}

export async function findPause(db: Db, id: string, orgId?: string): Promise<AutoPause | null> {
  const row = await db('auto_pauses')
    .where(orgId === undefined ? { id } : { id, org_id: orgId })
    .first();
  return row ? (await withLabels(db, [pauses.read(row)]))[0]! : null;
}

/** Those of an organization, in force or released. */
export async function pausesOf(db: Db, orgId: string) {
  return (await db('auto_pauses').where({ org_id: orgId })).map(pauses.read);
}

async function withLabels(db: Db, list: ReturnType<typeof pauses.read>[]): Promise<AutoPause[]> {
  const ids = list.filter(({ kind }) => kind === 'key').map(({ name }) => name);
  const keys: { id: string; label: string }[] = await db('api_keys')
    .whereRaw(`cast(id as text) in (${ids.map(() => '?').join(', ') || "''"})`, ids)
    .select('id', 'label');
  const labels = new Map(keys.map(({ id, label }) => [id, label]));
  const orgs: { id: string; name: string }[] = await db('organizations')
    .whereIn(
      'id',
      list.map(({ orgId }) => orgId),
    )
    .select('id', 'name');
  const names = new Map(orgs.map(({ id, name }) => [id, name]));
  return list.map((one) => ({
    ...one,
    label: (one.kind === 'key' && labels.get(one.name)) || null,
    orgName: names.get(one.orgId) ?? '',
  }));
}

/** The organization is locked. `isHeld`: false if people are only warned. */
export async function beginPause(
  trx: Trx,
  org: Organization,
  { group, rule, count, of }: Breach,
  terms: { isHeld: boolean; now: number },
): Promise<void> {
  const { kind, name } = group;
  const before = (await pausesOf(trx, org.id)).find((one) => one.kind === kind && one.name === name);
  const held = org.heldGroups ?? [];
  const isHeld = terms.isHeld && held.length < maxHeld;
  const id = before?.id ?? newId();
  const pause = {
    id,
    orgId: org.id,
    ...group,
    state: isHeld ? ('held' as const) : ('warned' as const),
    rule,
    since: terms.now,
    figures: { count, of },
    mails: await readEvidence(trx, org.id, group, rule),
    releasedAt: null,
    forgiven: before?.forgiven ?? null,
    // Before the warning, what was held is released.
    sweep: isHeld ? ('hold' as const) : before?.sweep === 'release' ? before.sweep : null,
  };
  await trx('auto_pauses').insert(pauses.write(pause)).onConflict('id').merge();
  if (isHeld) await setHeld(trx, org, [...held, { pauseId: id, ...group }]);
  await addEvent(trx, isHeld ? 'pause.started' : 'pause.warned', pause, terms.now);
}

/**
 * Mail is sent again, and what has counted until now is forgiven. A warning is put aside in the same way. Null if there is nothing
 * to release any more.
 */
export async function releasePause(
  db: Db,
  { id, orgId }: Pick<AutoPause, 'id' | 'orgId'>,
  now: number,
): Promise<AutoPause | null> {
  const isReleased = await db.transaction(async (trx) => {
    const org = await lockOrganization(trx, orgId);
    const row = await trx('auto_pauses').where({ id, org_id: orgId }).whereNot({ state: 'released' }).first();
    if (!row || !org) return false;
    const pause = pauses.read(row);
    const released = {
      state: 'released' as const,
      releasedAt: now,
      forgiven: await countsByDay(trx, orgId, pause, now),
      sweep: pause.state === 'held' ? ('release' as const) : null,
    };
    await trx('auto_pauses').where({ id }).update(pauses.write(released));
    if (pause.state === 'held') {
      const others = org.heldGroups!.filter(({ pauseId }) => pauseId !== id);
      await setHeld(trx, org, others.length === 0 ? null : others);
    }
    await addEvent(trx, 'pause.ended', { ...pause, ...released }, now);
    return true;
  });
  return isReleased ? findPause(db, id, orgId) : null;
}

async function setHeld(trx: Trx, { id }: Organization, groups: Organization['heldGroups']): Promise<void> {
  await trx('organizations')
    .where({ id })
    .update({ held_groups: groups && JSON.stringify(groups) });
}

async function addEvent(
  trx: Trx,
  type: 'pause.started' | 'pause.warned' | 'pause.ended',
  pause: ReturnType<typeof pauses.read>,
  at: number,
): Promise<void> {
  const [labeled] = await withLabels(trx, [pause]);
  await trx('events').insert(eventRow({ orgId: pause.orgId, type, at, data: pauseFacts(labeled!) }));
}

/** As in events. */
function pauseFacts({ id, kind, name, label, state, rule, figures, mails }: AutoPause) {
  return { pauseId: id, kind, name, label, state, rule, ...figures, mails };
}

/** A pause as API and command line show it. */
export function pauseDocument(pause: AutoPause) {
  const { pauseId, ...facts } = pauseFacts(pause);
  return { id: pauseId, ...facts, since: iso(pause.since) };
}

/** Pauses whose mail that waits is still to be held or released. */
export async function pausesToSweep(db: Db) {
  return (await db('auto_pauses').whereNotNull('sweep').orderBy('id')).map(pauses.read);
}

/** Nothing if something else is to be done by now. */
export async function setSweep(
  db: Db,
  { id, sweep, since }: AutoPauseRow,
  next: Sweep | null,
): Promise<void> {
  await db('auto_pauses').where({ id, sweep, since }).update({ sweep: next });
}

/** Whether that is still to be done; the pause does not change until the transaction ends. */
export async function isStillToSweep(trx: Trx, { id, sweep, since }: AutoPauseRow): Promise<boolean> {
  return (await trx('auto_pauses').where({ id, sweep, since }).forUpdate().first('id')) !== undefined;
}

export type AutoPauseRow = ReturnType<typeof pauses.read>;

const keepReleasedMs = 30 * 86_400_000;

/** Deletes pauses that were released long ago, and warnings about mail that does not count any more. */
export function forgetPauses(db: Db, now: number): Promise<number> {
  return db('auto_pauses')
    .where((released) => released.where('released_at', '<', now - keepReleasedMs).whereNull('sweep'))
    .orWhere((warned) => warned.where({ state: 'warned' }).where('since', '<', judgedSince(now)))
    .delete();
}

/** The key by its label, the stream or the tag. */
export const pauseTitle = ({ kind, name, label }: AutoPause) => `${kind} ${label ?? name}`;
