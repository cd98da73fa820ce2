/**
 * Builds the acceptance of mail, from a request to its commit: of single sends, of batches, and of sends that are only checked.
 * mail/accept/accept.ts has its order; here are the look-ups, composing and the commit that it is given.
 */
import { findDomain, firstDomainNames } from '#accounts/rows/domains-table.ts';
import { findStream } from '#accounts/rows/streams.ts';
import { createSeal, sealMessage } from '#accounts/seal.ts';
import { namesForRefusal } from '#accounts/sender.ts';
import { createTestSender } from '#accounts/test-sender.ts';
import { type AcceptBatch, createAcceptBatch } from '#front/api/send/accept-batch.ts';
import { type Accept, createAccept, createDryRun, type DryRun } from '#mail/accept/accept.ts';
import { type Commit, createCommit } from '#mail/accept/commit.ts';
import { createFeedbackId } from '#mail/accept/feedback-id.ts';
import { type AcceptPolicy, dryRun } from '#mail/accept/rows/acceptance.ts';
import { type Compose, type ComposeOrder, isLarge } from '#mail/compose/compose-order.ts';
import type { Runner } from '#mail/queue/runner.ts';
import { logAccepted, logRepeated } from '#mail/record/mail-log-lines.ts';
import type { RefusedSend } from '#mail/record/refused-sends.ts';
import { cached } from '#platform/base/bounded-cache.ts';
import { countInFlight } from '#platform/base/limits/in-flight.ts';
import type { Db } from '#platform/database/engine/open.ts';
import type { Send } from '#platform/database/tables/send-record.ts';
import { createMessageId } from '#platform/values/message-id.ts';
import { leaseMs, type ServerContext } from './context.ts';

export interface AcceptingParts {
  compose: Compose;
  admit: Runner['admit'];
  onScheduled: Runner['noteScheduled'];
  onRefusedSend(send: RefusedSend): void;
  baseUrl(): string;
}

export interface Accepting {
  accept: Accept;
  dryRun: DryRun;
  acceptBatch: AcceptBatch;
}

export function createAccepting(
  context: ServerContext,
  { compose, admit, onScheduled, onRefusedSend, baseUrl }: AcceptingParts,
): Accepting {
  const { config, clock, db, mailLog, secrets, allIsTest, node } = context;
  const policy = { keepMs: config.idempotencyKeep, lowShare: config.creditsLow / 100 };
  /** Without large mails: they take too long for a commit to wait for them. */
  const composing = countInFlight(compose);
  const commit = commitOf(context, policy, composing.inFlight);
  const parts = {
    findDomain: findSender(db),
    domainNames: (orgId: string) => firstDomainNames(db, orgId, namesForRefusal),
    findStream: findStreamOf(db),
    testSender: createTestSender(secrets),
    compose: (order: ComposeOrder) => (isLarge(order) ? compose(order) : composing.call(order)),
    trackingBase: (host: string | null) => (host ? `https://${host}` : baseUrl()),
    unsubscribeDomain: config.returnPathDomain,
    sealMessage: sealMessage.bind(null, createSeal(secrets)),
    commit: commit.one,
    dryRun: (send: Send) => dryRun(db, send, policy),
    admit,
    onScheduled,
    onAccepted: logAccepted.bind(null, mailLog),
    onRepeated: logRepeated.bind(null, mailLog),
    clock,
    textFromHtml: config.textFromHtml,
    messageIdOf: createMessageId(secrets, config.hostname),
    feedbackIdOf: createFeedbackId(config.returnPathDomain),
    maxAgeMs: config.mtaMaxAge,
    allIsTest,
    node,
    leaseMs,
  };
  return {
    accept: createAccept(parts),
    dryRun: createDryRun(parts),
    // Not counted in `composing`: single sends would wait for a batch that takes long to compose.
    acceptBatch: createAcceptBatch({ ...parts, compose, onRefusedSend, commitAll: commit.all }),
  };
}

function commitOf(
  { clock, db, eventSignal, metrics, databaseTimeoutMs }: ServerContext,
  policy: AcceptPolicy,
  composing: () => number,
): Commit {
  return createCommit(db, {
    policy,
    composing,
    measured: (store, isAtomic) =>
      metrics.timed('accept', store, (sends, decisions) => {
        const isStored = !isAtomic || !decisions.some((one) => 'refused' in one);
        if (isStored) metrics.decided(sends, decisions);
      }),
    onEvents: eventSignal.notify,
    leaseEnd: () => clock.now() + leaseMs,
    giveUpAfterMs: 3 * databaseTimeoutMs,
  });
}

/** A stream that is there is cached; any other is read each time, so that a new one takes mail at once. */
function findStreamOf(db: Db) {
  const find = (orgId: string, name: string) => findStream(db, orgId, name);
  const findKnown = cached((id) => find(...(id.split(' ') as [orgId: string, name: string])), 10_000);
  return (orgId: string, name: string) => findKnown(`${orgId} ${name}`);
}

/** A verified domain is cached; any other is read each time, so that a verification takes effect at once. */
function findSender(db: Db) {
  const findVerified = cached(async (id) => {
    const domain = await findDomain(db, ...(id.split(' ') as [orgId: string, name: string]));
    return domain?.status === 'verified' ? domain : null;
  }, 10_000);
  return async (orgId: string, name: string) =>
    (await findVerified(`${orgId} ${name}`)) ?? (await findDomain(db, orgId, name));
}
