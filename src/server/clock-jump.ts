/**
 * What is done about a clock that is set back: by a time server, on a machine that took the local time for UTC until it
 * heard one, or by hand. All that is to happen at a time that the clock before had told would wait for as long as that was
 * ahead.
 *
 * In memory such times are everywhere (leases, circuits, pauses, caches): so the service stops as for SIGTERM and starts
 * anew in the same process (main.ts). In the database they are those of the mail and of the webhooks that wait: at a start
 * after which nothing has happened yet, the newest event tells that there was such a clock, and all that waits is tried now.
 *
 * BUGS: less than a minute is waited for. What a stop cuts off here, the next start may not go on with. The lease of a node
 * that died with its clock ahead lasts as long as that said.
 */
import ms from 'ms';
import type { Clock } from '../base/clock.ts';
import type { Log } from '../base/log.ts';
import type { Db } from '../db/engine/open.ts';
import { newestEventAt } from '../db/events/read-events.ts';
import { applyQueueAction } from '../db/queue/apply-queue-action.ts';
import { makeMessagesDue } from '../db/webhooks/webhook-outbox.ts';

const noticeableMs = 60_000;
const intervalMs = 1000;

/** Calls `onSetBack`, with how far, whenever the clock is set back by a minute or more. */
export function watchClock(clock: Clock, onSetBack: (byMs: number) => void): void {
  const lookAfter = (seenAt: number) => {
    clock.after(intervalMs, () => {
      const now = clock.now();
      if (now <= seenAt - noticeableMs) onSetBack(seenAt - now);
      lookAfter(now);
    });
  };
  lookAfter(clock.now());
}

export interface MakeAllDueParts {
  db: Db;
  clock: Clock;
  log: Pick<Log, 'warn'>;
  onError(what: string, error: unknown): void;
}

/** Where the newest event has a time that is still to come, makes due what waits, beside all else. Returns what stops it. */
export async function makeAllDue({ db, clock, log, onError }: MakeAllDueParts): Promise<() => Promise<void>> {
  const now = clock.now();
  const aheadMs = ((await newestEventAt(db)) ?? now) - now;
  if (aheadMs < noticeableMs) return async () => {};
  log.warn(
    `the clock has been set back by ${ms(aheadMs, { long: true })} or more: all waiting mail is tried now, for it waits for ` +
      'hours that the clock had told before; "postern doctor" says whether the clock is right',
  );
  const stopped = new AbortController();
  const hurrying = async () => {
    const { signal } = stopped;
    await applyQueueAction(db, {}, { order: 'retry', reason: 'the clock was set back', now, signal });
    await makeMessagesDue(db, now, signal);
  };
  const done = hurrying().catch((error) => {
    if (!stopped.signal.aborted)
      onError(
        `not all that waits could be made due; "postern queue retry --status deferred --reason clock" does it`,
        error,
      );
  });
  return async () => {
    stopped.abort();
    await done;
  };
}
