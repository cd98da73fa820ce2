/**
 * Updates the metrics while the program works: after group commits, API responses, webhook posts and returned mail. This
 * costs no queries and no log lines. An error here never reaches the mail: code that runs after a commit must not throw,
 * because the commit would be repeated. Test mail counts in no figure about mail.
 */

import type { Decision } from '#mail/accept/rows/acceptance.ts';
import type { Transition } from '#mail/deliver/transition.ts';
import type { ReadyQueue } from '#mail/queue/ready-queue.ts';
import type { ParseResult } from '#mail/returned/parse-result.ts';
import type { WebhookTry } from '#mail/webhooks/rows/webhook-outcomes.ts';
import type { Send } from '#platform/database/tables/send-record.ts';
import type { RefusalCode } from '#platform/values/refusal.ts';
import { isTestMail } from '#platform/values/test-route.ts';
import { createRegistry, type Meters } from './registry.ts';

type CommitKind = 'accept' | 'outcomes' | 'received' | 'returned' | 'usage' | 'visits' | 'webhooks';

interface AnsweredRequest {
  method: string;
  route: string;
  status: number;
  ms: number;
}

type Commit<Item, Answer> = (items: Item[]) => Promise<Answer[]>;

export type Metrics = ReturnType<typeof createMetrics>;

export function createMetrics(version: string, onError: (what: string, error: unknown) => void) {
  const { registry, meters } = createRegistry();
  startAtZero(meters);
  meters.buildInfo.set({ version, node: process.version }, 1);
  return {
    registry,
    meters,
    /** A group commit that is timed. `onCommitted` gets its items and answers. */
    timed:
      <Item, Answer>(
        kind: CommitKind,
        commit: Commit<Item, Answer>,
        onCommitted?: (items: Item[], answers: Answer[]) => void,
      ): Commit<Item, Answer> =>
      async (items) => {
        const begun = performance.now();
        let answers: Answer[];
        try {
          answers = await commit(items);
        } catch (error) {
          meters.commitFailures.inc({ kind });
          throw error;
        }
        try {
          meters.commitDuration.observe({ kind }, (performance.now() - begun) / 1000);
          meters.commitItems.inc({ kind }, items.length);
          onCommitted?.(items, answers);
        } catch (error) {
          onError('a commit could not be counted', error);
        }
        return answers;
      },
    decided: (sends: Send[], decisions: Decision[]) =>
      countDecisions(
        meters,
        decisions.filter((_, index) => !sends[index]!.isTest),
      ),
    /** `written`: false if this node no longer owned the delivery. */
    recorded(transitions: Transition[], written: boolean[]): void {
      const ours = transitions.filter(({ delivery }, index) => written[index] && !isTestMail(delivery));
      countTransitions(meters, ours);
    },
    posted(tries: WebhookTry[]): void {
      for (const { attempt, verdict } of tries) {
        meters.webhookPosts.inc({ result: verdict.kind });
        meters.webhookPostDuration.observe(attempt.duration / 1000);
      }
    },
    returned: (reading: ParseResult) =>
      meters.returnedMails.inc({ kind: reading.kind === 'report' ? reading.report.kind : reading.kind }),
    refused: (via: 'api' | 'smtp', code: RefusalCode) => meters.sendsRefused.inc({ via, code }),
    answered({ method, route, status, ms }: AnsweredRequest): void {
      const labels = { method, route, status: `${Math.floor(status / 100)}xx` };
      meters.httpDuration.observe(labels, ms / 1000);
    },
    /** The state of all destinations, once a second. */
    destinations: (destinations: Iterable<ReadyQueue>) => countDestinations(meters, destinations),
  };
}

function countDestinations(meters: Meters, destinations: Iterable<ReadyQueue>): void {
  let [circuits, throttled] = [0, 0];
  for (const { concurrency } of destinations) {
    if (concurrency.circuit) circuits += 1;
    if (concurrency.busySince !== null) throttled += 1;
  }
  meters.circuitsOpen.set(circuits);
  meters.destinationsBusy.set(throttled);
}

/** Series that alerts use must exist before their first event. */
function startAtZero(meters: Meters): void {
  const { outcomes, recipientsSkipped, commitFailures, returnedMails, webhookPosts } = meters;
  outcomes.inc({ outcome: 'delivered', category: 'none' }, 0);
  for (const reason of ['suppressed', 'insufficient_credit']) recipientsSkipped.inc({ reason }, 0);
  for (const kind of ['accept', 'outcomes']) commitFailures.inc({ kind }, 0);
  for (const kind of ['failed', 'complaint']) returnedMails.inc({ kind }, 0);
  for (const result of ['delivered', 'again', 'failed', 'gone']) webhookPosts.inc({ result }, 0);
}

function countDecisions(meters: Meters, decisions: Decision[]): void {
  let [accepted, replayed, recipients, suppressed, withoutCredit] = [0, 0, 0, 0, 0];
  for (const decision of decisions) {
    if ('refused' in decision) continue;
    if (decision.replayed) {
      replayed += 1;
      continue;
    }
    accepted += 1;
    recipients += decision.answer.accepted.length;
    suppressed += decision.answer.suppressed.length;
    withoutCredit += decision.answer.insufficientCredit.length;
  }
  meters.sendsAccepted.inc(accepted);
  meters.sendsReplayed.inc(replayed);
  meters.recipientsAccepted.inc(recipients);
  meters.recipientsSkipped.inc({ reason: 'suppressed' }, suppressed);
  meters.recipientsSkipped.inc({ reason: 'insufficient_credit' }, withoutCredit);
}

/** Counts equal transitions of a batch first, because each call of prom-client takes a microsecond. */
function countTransitions(
  { outcomes, attemptDuration, deliveryLatency }: Meters,
  transitions: Transition[],
): void {
  const counts = new Map<string, number>();
  for (const { delivery, attempt, status, deliveredAt } of transitions) {
    const outcome = status === 'expired' ? status : attempt.verdict.outcome;
    const key = `${outcome} ${attempt.verdict.category ?? 'none'}`;
    counts.set(key, (counts.get(key) ?? 0) + 1);
    attemptDuration.observe({ outcome }, secondsBetween(attempt.startedAt, attempt.endedAt));
    if (deliveredAt !== null) deliveryLatency.observe(secondsBetween(delivery.createdAt, deliveredAt));
  }
  for (const [key, count] of counts) {
    const [outcome, category] = key.split(' ') as [string, string];
    outcomes.inc({ outcome, category }, count);
  }
}

/** Never negative, even if the clock was set back. */
function secondsBetween(from: number, to: number): number {
  return Math.max(to - from, 0) / 1000;
}
