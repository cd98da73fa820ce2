/**
 * The commit of a send, **the instant of acceptance**: before it nothing is promised, after it everything stands. Sends that
 * arrive together share a transaction. If the answer of a commit is lost with its connection, it is asked for again until the
 * database answers, because the caller must not be told that a stored send failed. Then whoever waits for events is woken, and
 * deliveries that can start at once go to the runner from memory.
 */
import type { DispatchAdmission } from '#mail/queue/runner.ts';
import { groupCommit } from '#platform/database/engine/group-commit.ts';
import type { Db } from '#platform/database/engine/open.ts';
import { retryInDoubt } from '#platform/database/engine/retry-in-doubt.ts';
import { isAway } from '#platform/database/engine/unavailable.ts';
import { acceptedDelivery } from '#platform/database/tables/accepted-delivery.ts';
import type { Send, SendAnswerRecord } from '#platform/database/tables/send-record.ts';
import { type AcceptPolicy, acceptAll, type Decision } from './rows/acceptance.ts';
import { answerIn } from './rows/decision-refusal.ts';

/** How long a commit waits for more sends that are being composed. */
const maxWaitMs = 5;

type Store = (sends: Send[]) => Promise<Decision[]>;

export interface CommitTerms {
  policy: AcceptPolicy;
  /** Sends that are being composed, of those that take no time worth mentioning. */
  composing(): number;
  /** Measures a transaction and counts its decisions. `isAtomic`: nothing is stored if one send is refused. */
  measured(store: Store, isAtomic: boolean): Store;
  /** New events are in the database. */
  onEvents(): void;
  /** The end of a lease that begins now. */
  leaseEnd(): number;
  /** PostgreSQL may be away for a minute; the caller must still learn whether the send was stored. */
  giveUpAfterMs: number;
}

export interface Commit {
  one(send: Send): Promise<Decision>;
  /**
   * In order. A send whose own commit fails has its error. `isAtomic`: if any is refused, nothing is written, whatever the other
   * decisions say.
   */
  all(sends: Send[], isAtomic: boolean): Promise<(Decision | Error)[]>;
}

export function createCommit(db: Db, terms: CommitTerms): Commit {
  const { policy, composing, giveUpAfterMs } = terms;
  const markAsRetry = (send: Send) => ({ ...send, retryLeaseUntil: terms.leaseEnd() });
  const forAll = { markAsRetry: (sends: Send[]) => sends.map(markAsRetry), giveUpAfterMs };

  function storing(isAtomic: boolean): Store {
    const store = terms.measured((sends) => acceptAll(db, sends, policy, isAtomic), isAtomic);
    return async (sends) => {
      const decisions = await store(sends);
      terms.onEvents();
      return decisions;
    };
  }

  const store = storing(false);
  // If at least as many sends are about to arrive, a shared commit halves the cost of each.
  const isComing = (gathered: number) => composing() > gathered;
  const one = retryInDoubt(groupCommit(store, { isComing, maxWaitMs }), { markAsRetry, giveUpAfterMs });
  const together = retryInDoubt(store, forAll);
  const atomically = retryInDoubt(storing(true), forAll);
  return {
    one,
    all: (sends, isAtomic) => (isAtomic ? atomically(sends) : orOneByOne(together, one, sends)),
  };
}

/** If several cannot be committed, each is tried by itself, so that a bad one fails alone; but not if the database is away. */
async function orOneByOne(
  together: Store,
  one: (send: Send) => Promise<Decision>,
  sends: Send[],
): Promise<(Decision | Error)[]> {
  try {
    return await together(sends);
  } catch (error) {
    if (isAway(error)) throw error;
    return Promise.all(sends.map((send) => one(send).catch((cause: Error) => cause)));
  }
}

/** The members of the request's line in the mail log. */
export interface RequestLog {
  /** X-Request-Id. */
  requestId: string;
  /** Names of members that were ignored. */
  ignored?: string | undefined;
  /** The repairs of a complete message. */
  repaired?: string | undefined;
  /** Bulk mail that cannot be unsubscribed from with one click (platform/values/one-click.ts). */
  lacksOneClick?: boolean;
}

/** The steps that follow a commit. */
export interface AfterCommit {
  /** Whether a delivery can be leased and sent immediately; `settle` reports after the commit whether it was accepted. */
  admit(domain: string, orgId: string): DispatchAdmission;
  /** Called after the commit of mail that is sent later. */
  onScheduled(at: number): void;
  /** Called after the commit, for the mail log. */
  onAccepted(send: Send, answer: SendAnswerRecord, request: RequestLog): void;
  /** Called after the commit for a send that was ignored because it repeats the one with this answer, for the mail log. */
  onRepeated(send: Send, answer: SendAnswerRecord, request: RequestLog): void;
}

/**
 * Call before the commit; and `settle` after it, with null if it failed. Deliveries that can start immediately then go to the
 * runner from memory, without another read from the database. Those of scheduled mail it finds in the database when their time
 * comes.
 */
export function startCommit(
  parts: AfterCommit,
  send: Send,
  request: RequestLog,
): { settle(decision: Decision | null): void } {
  const { scheduledAt, recipients } = send;
  const slots = scheduledAt === null ? recipients.map(({ domain }) => parts.admit(domain, send.orgId)) : [];
  for (const [index, { startState }] of slots.entries()) recipients[index]!.startState = startState;
  return {
    settle(decision) {
      const { repeated, made, heldBy } = answerIn(decision);
      if (repeated) parts.onRepeated(send, repeated, request);
      const accepted = made?.accepted ?? [];
      if (made && accepted.length > 0) parts.onAccepted(send, made, request);
      if (accepted.length > 0 && scheduledAt !== null) parts.onScheduled(scheduledAt);
      const addresses = new Set(heldBy ? [] : accepted);
      for (const [index, slot] of slots.entries()) {
        const recipient = recipients[index]!;
        slot.settle(addresses.has(recipient.address) ? acceptedDelivery(send, recipient) : null);
      }
    },
  };
}
