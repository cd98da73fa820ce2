/** What operators do in the middle of it, by the functions that the command line calls. */
import { pauseOrganization, resumeOrganization } from '#accounts/rows/pauses.ts';
import { applyQueueAction } from '#mail/queue/rows/apply-queue-action.ts';
import { resume, suspend } from '#mail/queue/rows/suspensions.ts';
import { scheduler } from './machine/scheduler.ts';
import type { Random } from './random.ts';
import type { Scene } from './scene.ts';

const minute = 60_000;
const reason = 'simulated';

type Order = (
  scene: Scene,
  random: Random,
) => [text: string, done: Promise<unknown>, undo?: () => Promise<unknown>];

export const orders: Record<string, Order> = {
  retry(scene) {
    const now = scheduler.wallClock();
    return ['retries all mail', applyQueueAction(scene.db, {}, { action: 'retry', reason, now })];
  },
  hold(scene, random) {
    const { name: domain } = random.pick(scene.domains);
    const now = () => scheduler.wallClock();
    return [
      `holds ${domain}`,
      applyQueueAction(scene.db, { domain }, { action: 'hold', reason, now: now() }),
      () => applyQueueAction(scene.db, { domain }, { action: 'release', reason, now: now() }),
    ];
  },
  cancel(scene, random) {
    const { name: domain } = random.pick(scene.domains);
    const now = scheduler.wallClock();
    return [`cancels ${domain}`, applyQueueAction(scene.db, { domain }, { action: 'cancel', reason, now })];
  },
  suspend(scene, random) {
    const { name: destination } = random.pick(scene.domains);
    const createdAt = scheduler.wallClock();
    return [
      `suspends ${destination}`,
      suspend(scene.db, { destination, reason, createdAt, until: createdAt + 40 * minute }),
      () => resume(scene.db, destination, scheduler.wallClock()),
    ];
  },
  pause(scene, random) {
    const { orgId, name } = random.pick(scene.tenants);
    const pause = { since: scheduler.wallClock(), reason };
    return [
      `pauses ${name}`,
      pauseOrganization(scene.db, orgId, pause),
      () => resumeOrganization(scene.db, orgId, pause, scheduler.wallClock()),
    ];
  },
};
