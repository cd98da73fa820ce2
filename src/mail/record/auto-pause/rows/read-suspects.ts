/** The organizations that are judged: those that have failures at all. Two statements, whatever their number. */

import { type PauseMode, pauseRules } from '#mail/record/auto-pause/pause-rules.ts';
import { idList } from '#platform/database/engine/json-rows.ts';
import type { Trx } from '#platform/database/engine/open.ts';
import { serverOrgId } from '#platform/values/glossary.ts';

interface Terms {
  defaultMode: PauseMode;
  since: number;
  /** Organizations with a reply of which one is enough. */
  telling: Set<string>;
}

/** With fewer failures, no rule is broken. */
const minFailures = Math.min(
  ...[pauseRules.complaints.rate, pauseRules.hard_bounces.rate].map(({ min, share }) =>
    Math.ceil(min * share),
  ),
);

/** In the order of their ids, in which organizations are locked. */
export async function readSuspects(
  trx: Trx,
  orgIds: Set<string>,
  { defaultMode, since, telling }: Terms,
): Promise<{ orgId: string; mode: PauseMode }[]> {
  const { select, value } = idList(trx, orgIds);
  const orgs: { id: string; auto_pause: PauseMode | null }[] = await trx('organizations')
    .whereRaw(`id in (${select})`, [value])
    .whereNot({ id: serverOrgId })
    .orderBy('id')
    .select('id', 'auto_pause');
  const judged = orgs
    .map(({ id, auto_pause }) => ({ orgId: id, mode: auto_pause ?? defaultMode }))
    .filter(({ mode }) => mode !== 'off');
  const failing = new Set(
    await trx('group_statistics')
      .whereIn(
        'org_id',
        judged.map(({ orgId }) => orgId),
      )
      .where('day', '>=', since)
      .where({ kind: 'key' })
      .groupBy('org_id')
      .havingRaw('sum(hard) + sum(complained) >= ?', [minFailures])
      .pluck('org_id'),
  );
  return judged.filter(({ orgId }) => failing.has(orgId) || telling.has(orgId));
}
