/**
 * Holds the mail that waits when a pause has begun, and releases it when the pause has ended: the queue's own actions, limited to
 * the pause's group (mail/queue/rows/apply-queue-action.ts). If that is interrupted, it is done again. What was being sent when the
 * pause began is held once none of the group is being sent any more; mail that is accepted meanwhile is held by its acceptance.
 */

import { findOrganization } from '#accounts/rows/organizations.ts';
import { applyQueueAction } from '#mail/queue/rows/apply-queue-action.ts';
import { isBeingSent } from '#mail/queue/rows/held-of-group.ts';
import type { Db } from '#platform/database/engine/open.ts';
import { isInGroup, pauseReason } from '#platform/database/tables/mail-group.ts';
import { type AutoPauseRow, isStillToSweep, pausesToSweep, setSweep } from './rows/auto-pauses.ts';

/** A maintenance job: returns how many more there are at once, which is none. */
export async function sweepPauses(db: Db, now: number): Promise<number> {
  for (const pause of await pausesToSweep(db)) await sweepPause(db, pause, now);
  return 0;
}

async function sweepPause(db: Db, pause: AutoPauseRow, now: number): Promise<void> {
  const isBusy = await isBeingSent(db, pause);
  if (pause.sweep === 'hold-rest' && isBusy) return;
  const { id, orgId } = pause;
  const action = pause.sweep === 'release' ? 'release' : 'hold';
  const others = ((await findOrganization(db, orgId))?.heldGroups ?? []).filter(
    ({ pauseId }) => pauseId !== id,
  );
  const { changed } = await applyQueueAction(
    db,
    { orgId },
    {
      action,
      reason: pauseReason(pause),
      now,
      forPause: {
        id,
        // What another pause holds, too, stays held.
        isMeant: (mail) =>
          isInGroup(pause, mail) && (action === 'hold' || !others.some((group) => isInGroup(group, mail))),
        isCurrent: (trx) => isStillToSweep(trx, pause),
      },
    },
  );
  // What was being sent in the meantime may wait again.
  const isAll = action === 'release' || (!isBusy && changed === 0 && !(await isBeingSent(db, pause)));
  await setSweep(db, pause, isAll ? null : 'hold-rest');
}
