/**
 * Records an attempt: commits the transition that follows from its outcome, then writes it to the mail log. The next
 * attempt is when the remote host asked for it; else, if it greylists, when a mail is known to pass; else by the schedule.
 * `commit` answers false if this node had lost the delivery's lease; then the new owner records and logs its own attempt.
 */

import { type Transition, transition, wasTried } from '#mail/deliver/transition.ts';
import type { Greylisting } from '#mail/queue/greylist.ts';
import { nextAttemptAt, type Schedule } from '#mail/queue/schedule.ts';
import { lastHold } from '#mail/record/rows/last-hold.ts';
import type { Clock } from '#platform/base/clock.ts';
import { failpoint } from '#platform/base/failpoints.ts';
import type { PersistentCache } from '#platform/base/persistent-cache.ts';
import type { Db } from '#platform/database/engine/open.ts';
import type { Attempt, Delivery } from '#platform/values/glossary.ts';
import type { MailLog } from '#platform/values/mail-log.ts';
import { isTestMail, testWaits } from '#platform/values/test-route.ts';
import { createGreylistObserver } from './greylist-observer.ts';
import { logOutcome } from './mail-log-lines.ts';

export interface RecorderParts {
  db: Db;
  /** In a commit of many (mail/queue/rows/outcomes.ts). */
  commit(transition: Transition): Promise<boolean>;
  schedule: Schedule;
  greylisting: PersistentCache<Greylisting>;
  mailLog: MailLog;
  clock: Clock;
}

export function createRecorder(parts: RecorderParts) {
  const observeGreylisting = createGreylistObserver(parts.greylisting);
  const testSchedule = { ...parts.schedule, waits: testWaits(parts.schedule.waits) };

  /** The time of the next attempt; null if there is none, or if this node no longer owns the delivery. */
  return async (delivery: Delivery, attempt: Attempt): Promise<number | null> => {
    const learnedMs = isTestMail(delivery) ? null : await observeGreylisting(delivery, attempt);
    const hintMs = attempt.outcome.retryAfterMs ?? learnedMs;
    const known = await withHold(delivery, attempt);
    const change = transition(delivery, known, nextAt(delivery, known, hintMs));
    failpoint('attempted');
    const isOurs = await parts.commit(change);
    failpoint('recorded');
    if (!isOurs) return null;
    logOutcome(parts.mailLog, change);
    return change.dueAt;
  };

  /** Mail that was held beyond its deadline falls due on its release: the hold kept it back, whatever is the case now. */
  async function withHold(delivery: Delivery, attempt: Attempt): Promise<Attempt> {
    if (wasTried(attempt) || !delivery.hasDeadline || delivery.dueAt < delivery.expiresAt) return attempt;
    const reason = await lastHold(parts.db, delivery.emailId, delivery.recipient);
    if (reason === null) return attempt;
    const diagnostic = `the operator held it until after that: ${reason}`;
    return { ...attempt, outcome: { ...attempt.outcome, diagnostic } };
  }

  function nextAt(delivery: Delivery, attempt: Attempt, hintMs: number | null): number | null {
    const now = parts.clock.now();
    // This server aborted the attempt, so there is no reason to wait.
    if (attempt.outcome.category === 'interrupted') return now;
    const { expiresAt, hasDeadline, attempts } = delivery;
    const schedule = isTestMail(delivery) ? testSchedule : parts.schedule;
    return nextAttemptAt(schedule, { attempts: attempts + 1, now, expiresAt, hasDeadline, hintMs });
  }
}
