/**
 * What is counted while the program works, at the seams it has anyway: group commits, which tell of many mails at once,
 * the answers of the API, mail that is read. Nothing here costs a query or a line of log, and no fault in it reaches
 * the mail: what follows a commit must not fail, or the commit would be made again.
 */
import type { Registry } from 'prom-client';
import type { ParsedReturn } from '../../bounces/parse/parse-result.ts';
import type { Decision } from '../../db/accept/acceptance.ts';
import type { Send } from '../../db/accept/send-record.ts';
import type { WebhookTry } from '../../db/webhooks/webhook-outcomes.ts';
import type { RefusalCode } from '../../mail/refusal.ts';
import type { ReadyQueue } from '../../queue/ready-queue.ts';
import type { Transition } from '../../record/transition.ts';
import { createRegistry, type Meters } from './registry.ts';

type CommitKind = 'accept' | 'outcomes' | 'returned' | 'usage' | 'visits' | 'webhooks';

type Commit<Item, Answer> = (items: Item[]) => Promise<Answer[]>;

export interface Metrics {
  registry: Registry;
  meters: Meters;
  /** A group commit that is timed; `told` of what it had in it and what came of that. */
  timed<Item, Answer>(
    kind: CommitKind,
    commit: Commit<Item, Answer>,
    onCommitted?: (items: Item[], answers: Answer[]) => void,
  ): Commit<Item, Answer>;
  decided(sends: Send[], decisions: Decision[]): void;
  /** `written`: false where the delivery was no longer ours. */
  recorded(transitions: Transition[], written: boolean[]): void;
  posted(tries: WebhookTry[]): void;
  inbound(reading: ParsedReturn): void;
  refused(via: 'api' | 'smtp', code: RefusalCode): void;
  answered(request: { method: string; route: string; status: number; ms: number }): void;
  /** How the destinations stand, once a second. */
  destinations(destinations: Iterable<ReadyQueue>): void;
}

export function createMetrics(version: string, onError: (what: string, error: unknown) => void): Metrics {
  const { registry, meters } = createRegistry();
  startAtZero(meters);
  meters.buildInfo.set({ version, node: process.version }, 1);
  return {
    registry,
    meters,
    timed: (kind, commit, onCommitted) => async (items) => {
      const begun = performance.now();
      let answers: Awaited<ReturnType<typeof commit>>;
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
    decided: (_, decisions) => countDecisions(meters, decisions),
    recorded: (transitions, written) =>
      countTransitions(
        meters,
        transitions.filter((_move, index) => written[index]),
      ),
    posted(tries) {
      for (const { attempt, verdict } of tries) {
        meters.webhookPosts.inc({ result: verdict.kind });
        meters.webhookPostDuration.observe(attempt.duration / 1000);
      }
    },
    inbound: (reading) =>
      meters.inboundMails.inc({ kind: reading.is === 'report' ? reading.report.kind : reading.is }),
    refused: (via, code) => meters.sendsRefused.inc({ via, code }),
    answered({ method, route, status, ms }) {
      const labels = { method, route, status: `${Math.floor(status / 100)}xx` };
      meters.httpDuration.observe(labels, ms / 1000);
    },
    destinations(destinations) {
      let [circuits, busy] = [0, 0];
      for (const { concurrency } of destinations) {
        if (concurrency.circuit) circuits += 1;
        if (concurrency.busySince !== null) busy += 1;
      }
      meters.circuitsOpen.set(circuits);
      meters.destinationsBusy.set(busy);
    },
  };
}

/** What alerts ask for must be there before the first of it happens. */
function startAtZero(meters: Meters): void {
  const { outcomes, recipientsSkipped, commitFailures, inboundMails, webhookPosts } = meters;
  outcomes.inc({ outcome: 'delivered', category: 'none' }, 0);
  for (const reason of ['suppressed', 'insufficient_credit']) recipientsSkipped.inc({ reason }, 0);
  for (const kind of ['accept', 'outcomes']) commitFailures.inc({ kind }, 0);
  for (const kind of ['failed', 'complaint']) inboundMails.inc({ kind }, 0);
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

/** Most of a batch are alike, so they are counted before prom-client is told: it takes a microsecond each time. */
function countTransitions(
  { outcomes, attemptDuration, deliveryLatency }: Meters,
  transitions: Transition[],
): void {
  const alike = new Map<string, number>();
  for (const { delivery, attempt, status, deliveredAt } of transitions) {
    const outcome = status === 'expired' ? status : attempt.outcome.outcome;
    const key = `${outcome} ${attempt.outcome.category ?? 'none'}`;
    alike.set(key, (alike.get(key) ?? 0) + 1);
    attemptDuration.observe({ outcome }, secondsBetween(attempt.startedAt, attempt.endedAt));
    if (deliveredAt !== null) deliveryLatency.observe(secondsBetween(delivery.createdAt, deliveredAt));
  }
  for (const [key, count] of alike) {
    const [outcome, category] = key.split(' ') as [string, string];
    outcomes.inc({ outcome, category }, count);
  }
}

/** A clock may be set back. */
function secondsBetween(from: number, to: number): number {
  return Math.max(to - from, 0) / 1000;
}
