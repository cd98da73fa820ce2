/**
 * What the runner does with an attempt: the verdict's move is committed, then told in the mail log.
 * `commit` answers false where this node had lost the delivery's lease; then its new owner tells the story.
 */
import type { Clock } from '../clock.ts';
import type { MailLog } from '../maillog.ts';
import type { Attempt, Delivery } from '../nouns.ts';
import { nextAttemptAt, type Schedule } from '../queue/schedule.ts';
import { type Move, moveAfter } from './record.ts';
import { tellOutcome } from './tell.ts';

export interface RecorderParts {
  commit(move: Move): Promise<boolean>;
  schedule: Schedule;
  mailLog: MailLog;
  clock: Clock;
}

export function createRecorder(parts: RecorderParts) {
  return async (delivery: Delivery, attempt: Attempt): Promise<void> => {
    const move = moveAfter(delivery, attempt, nextAt(delivery, attempt));
    if (await parts.commit(move)) tellOutcome(parts.mailLog, move);
  };

  function nextAt(delivery: Delivery, attempt: Attempt): number | null {
    const now = parts.clock.now();
    // Cut short by us, not put off by them: nothing to wait for.
    if (attempt.verdict.category === 'interrupted') return now;
    const { expiresAt, attempts } = delivery;
    return nextAttemptAt(parts.schedule, { attempts: attempts + 1, now, expiresAt });
  }
}
