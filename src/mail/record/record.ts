/**
 * Records an attempt: its transition is committed, together with those of other attempts; whoever waits for events is woken, the
 * webhooks among them (mail/webhooks/outbox-feed.ts); then the mail log has a line, and the destination's state says what was
 * seen. The next attempt is when the remote host asked for it; else, if it greylists, when a mail is known to pass; else by the
 * schedule.
 */

import { type Transition, transition, wasTried } from '#mail/deliver/transition.ts';
import type { Greylisting } from '#mail/queue/greylist.ts';
import { recordAll } from '#mail/queue/rows/outcomes.ts';
import { nextAttemptAt, type Schedule } from '#mail/queue/schedule.ts';
import { createBurstDetector } from '#platform/base/burst-detector.ts';
import type { Clock } from '#platform/base/clock.ts';
import { failpoint } from '#platform/base/failpoints.ts';
import type { PersistentCache } from '#platform/base/persistent-cache.ts';
import { groupCommit } from '#platform/database/engine/group-commit.ts';
import type { Db } from '#platform/database/engine/open.ts';
import { beforeSharedCommit } from '#platform/database/engine/shared-commit.ts';
import type { Attempt, Delivery } from '#platform/values/glossary.ts';
import type { MailLog } from '#platform/values/mail-log.ts';
import { isTestMail, testWaits } from '#platform/values/test-route.ts';
import type { DestinationPublisher } from './destination-publisher.ts';
import { createGreylistObserver } from './greylist-observer.ts';
import { logOutcome } from './mail-log-lines.ts';
import { lastHold } from './rows/read-events.ts';

/** How long the commit of an outcome waits for those of running deliveries, the next one of a burst, or a send's commit. */
const maxWaitMs = 20;

/** False: this node had lost the delivery's lease; then the new owner records and logs its own attempt. */
export type StoreTransitions = (transitions: Transition[]) => Promise<boolean[]>;

export interface RecordParts {
  db: Db;
  node: string;
  /** The categories of hard bounces that suppress the address. */
  suppressAfter: readonly string[];
  schedule: Schedule;
  greylisting: PersistentCache<Greylisting>;
  publisher: Pick<DestinationPublisher, 'attempted' | 'route'>;
  /** Attempts under way. */
  inFlight(): number;
  /** Measures a transaction and counts its transitions. */
  measured(store: StoreTransitions): StoreTransitions;
  /** New events are in the database. */
  onEvents(): void;
  /** Recipients of test mail may complain about it once it is delivered. */
  onTestMail(delivery: Delivery, attempt: Attempt): Promise<void>;
  mailLog: MailLog;
  clock: Clock;
}

/** Answers with the time of the next attempt; null if there is none, or if this node no longer owns the delivery. */
export type RecordAttempt = (delivery: Delivery, attempt: Attempt) => Promise<number | null>;

export function createRecord(parts: RecordParts): RecordAttempt {
  const { publisher } = parts;
  const commit = createCommit(parts);
  const transitionOf = createTransitions(parts);
  return async (delivery, attempt) => {
    const change = await transitionOf(delivery, attempt);
    failpoint('attempted');
    const isOurs = await commit(change);
    failpoint('recorded');
    const nextAt = isOurs ? change.dueAt : null;
    if (isOurs) logOutcome(parts.mailLog, change);
    if (isTestMail(delivery)) await parts.onTestMail(delivery, attempt);
    else publisher.attempted(delivery.domain, attempt, nextAt);
    if (nextAt !== null) publisher.route(delivery.domain, attempt.destination);
    return nextAt;
  };
}

function createCommit(parts: RecordParts): (change: Transition) => Promise<boolean> {
  const { db, node, suppressAfter, inFlight } = parts;
  const store = parts.measured((transitions) => recordAll(db, node, transitions, suppressAfter));
  const bursts = createBurstDetector(maxWaitMs);

  async function storeAndWake(transitions: Transition[]): Promise<boolean[]> {
    const written = await store(transitions);
    parts.onEvents();
    return written;
  }

  const commit = groupCommit(storeAndWake, {
    isComing: () => inFlight() > 0 || bursts.isBurst(),
    maxWaitMs,
    // A transaction of a send takes them along: it syncs the disk anyway.
    onOccasion: (end) => beforeSharedCommit(db, end),
  });
  return (change) => {
    bursts.note();
    return commit(change);
  };
}

function createTransitions({ db, schedule, greylisting, clock }: RecordParts) {
  const observeGreylisting = createGreylistObserver(greylisting);
  const testSchedule = { ...schedule, waits: testWaits(schedule.waits) };

  function nextAt(delivery: Delivery, attempt: Attempt, hintMs: number | null): number | null {
    const now = clock.now();
    // This server aborted the attempt, so there is no reason to wait.
    if (attempt.verdict.category === 'interrupted') return now;
    const { expiresAt, hasDeadline, attempts } = delivery;
    const waits = isTestMail(delivery) ? testSchedule : schedule;
    return nextAttemptAt(waits, { attempts: attempts + 1, now, expiresAt, hasDeadline, hintMs });
  }

  return async (delivery: Delivery, attempt: Attempt): Promise<Transition> => {
    const learnedMs = isTestMail(delivery) ? null : await observeGreylisting(delivery, attempt);
    const hintMs = attempt.verdict.retryAfterMs ?? learnedMs;
    const known = await withHold(db, delivery, attempt);
    return transition(delivery, known, nextAt(delivery, known, hintMs));
  };
}

/** Mail that was held beyond its deadline falls due on its release: the hold kept it back, whatever is the case now. */
async function withHold(db: Db, delivery: Delivery, attempt: Attempt): Promise<Attempt> {
  if (wasTried(attempt) || !delivery.hasDeadline || delivery.dueAt < delivery.expiresAt) return attempt;
  const reason = await lastHold(db, delivery.emailId, delivery.recipient);
  if (reason === null) return attempt;
  const diagnostic = `the operator held it until after that: ${reason}`;
  return { ...attempt, verdict: { ...attempt.verdict, diagnostic } };
}
