/**
 * Handles a clock that is set back, by a time server or by hand. Everything scheduled by the earlier clock would otherwise
 * wait for as long as that clock was ahead. One that leaps forward is logged, and nothing has failed for longer by that.
 *
 * Times in memory are everywhere (leases, circuits, pauses, caches), so main.ts restarts the service in the same process.
 * In the database they are the due times of mail and webhooks: if the newest event lies in the future at a start, all
 * waiting mail and webhooks become due now. Other times that lie in the future become now
 * (platform/database/admin/times-to-come.ts).
 *
 * BUGS: a jump of less than a minute is ignored. If a stop interrupts `makeAllDue`, the next start may not continue it. The
 * lease of a node that died while its clock was ahead lasts until the time of that clock.
 */
import ms from 'ms';
import { applyQueueAction } from '#mail/queue/rows/apply-queue-action.ts';
import { newestEventAt } from '#mail/record/rows/read-events.ts';
import { makeMessagesDue } from '#mail/webhooks/rows/webhook-outbox.ts';
import { type Clock, untilPoll } from '#platform/base/clock.ts';
import { noteLeapIn } from '#platform/database/admin/last-leap.ts';
import { endTimesToCome, moveFailures, moveWarmUps } from '#platform/database/admin/times-to-come.ts';
import type { ServerContext } from './context.ts';

const noticeableMs = 60_000;
const farMs = 3_600_000;
const intervalMs = 1000;

/**
 * Calls `onJump` whenever the clock has jumped by a minute or more: with how far, in milliseconds; negative if it was set back,
 * positive if it leapt forward, as after a sleep of the machine.
 */
export function watchClock(clock: Clock, onJump: (byMs: number) => void): void {
  const checkAfter = (seenAt: number) => {
    const wait = untilPoll(seenAt, intervalMs);
    clock.after(wait, () => {
      const now = clock.now();
      if (now <= seenAt - noticeableMs) onJump(now - seenAt);
      if (now >= seenAt + wait + noticeableMs) onJump(now - seenAt - wait);
      checkAfter(now);
    });
  };
  checkAfter(clock.now());
}

/** Called when the clock has leapt forward: what waits has not waited, and nothing has failed, for so much longer. */
export async function noteLeap(context: ServerContext, byMs: number): Promise<void> {
  const { config, db, clock, log, lastLeap, onError } = context;
  lastLeap.at = clock.now();
  if (byMs >= farMs) lastLeap.farAt = lastLeap.at;
  noteLeapIn(config.dataDir, { at: lastLeap.at, byMs });
  log.warn(
    `the clock has leapt forward by ${ms(byMs, { long: true })}: what was due meanwhile is done now; run "postern doctor" to check the clock`,
  );
  if (!config.roles.includes('mta')) return;
  await moveFailures(db, byMs).catch((error) =>
    onError('webhooks seem to fail for longer than they do', error),
  );
  const addresses = config.mtaSources.map(({ address }) => address);
  await moveWarmUps(db, addresses, byMs, lastLeap.at).catch((error) =>
    onError('a day of new source addresses seems to be over', error),
  );
}

/** If the newest event lies in the future, makes all waiting mail due in the background. Returns a function that stops it. */
export async function makeAllDue(context: ServerContext): Promise<() => Promise<void>> {
  const { db, clock, log, onError } = context;
  const now = clock.now();
  await endTimesToCome(db, now, noticeableMs);
  const aheadMs = ((await newestEventAt(db)) ?? now) - now;
  if (aheadMs < noticeableMs) return async () => {};
  log.warn(
    `the clock has been set back by ${ms(aheadMs, { long: true })} or more: all waiting mail is tried now, because its next ` +
      'attempts were scheduled by the earlier clock; run "postern doctor" to check the clock',
  );
  const stopped = new AbortController();
  const makeDue = async () => {
    const { signal } = stopped;
    await applyQueueAction(db, {}, { action: 'retry', reason: 'the clock was set back', now, signal });
    await makeMessagesDue(db, now, signal);
  };
  const done = makeDue().catch((error) => {
    if (!stopped.signal.aborted)
      onError(
        'not all waiting mail could be made due; run "postern queue retry --status deferred --reason clock"',
        error,
      );
  });
  return async () => {
    stopped.abort();
    await done;
  };
}
