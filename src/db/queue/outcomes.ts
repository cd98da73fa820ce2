/**
 * Records outcomes: the delivery's new state, the attempt with its transcript, the event and, after some bounces, the
 * suppression of the address; many in one transaction. The end of mail that was not tried is no attempt. A delivery whose lease this node has lost is skipped, because its new
 * owner records it. So is one that was attempted since, because the node may have lost the lease and got it again: the
 * number of attempts, which every outcome increases, is the fencing token.
 *
 * A commit whose answer was lost is tried again, and recognises by its attempt rows, or by the final state of
 * mail that was not tried, what it had already written.
 */

import { failpoint } from '../../base/failpoints.ts';
import { newId } from '../../base/id.ts';
import type { Attempt, Reply } from '../../glossary.ts';
import { compareKey } from '../../mail/address.ts';
import { isTestMail } from '../../mail/test-route.ts';
import {
  softMailboxCategory,
  suppressionReason,
  type Transition,
  wasTried,
} from '../../record/transition.ts';
import { replyIn } from '../accounts/bounce-reply.ts';
import { noteSoftBounces, type SoftBounce } from '../accounts/soft-bounces.ts';
import { type NewSuppression, suppress } from '../accounts/suppressions.ts';
import { insertRows } from '../engine/insert-rows.ts';
import { type JsonColumns, jsonItems, query } from '../engine/json-rows.ts';
import type { Db, Trx } from '../engine/open.ts';
import { inSharedCommit } from '../engine/shared-commit.ts';
import { writeTogether } from '../engine/write-together.ts';
import { bumpUpdatedAt } from '../events/bump-updated-at.ts';
import { eventRow } from '../events/event-row.ts';
import { packAttempt, packResult } from '../events/packed-records.ts';
import { countTlsSessions } from './tls-results.ts';

/**
 * Returns for each transition whether it is written; false: the lease was lost. `suppressAfter`: the categories of hard
 * bounces that suppress the address.
 */
export async function recordAll(
  db: Db,
  node: string,
  transitions: Transition[],
  suppressAfter: readonly string[],
): Promise<boolean[]> {
  return inSharedCommit(db, async (trx) => {
    const updated = await updateDeliveries(trx, node, transitions);
    failpoint('recording');
    const isFresh = ({ delivery }: Transition) => updated.has(delivery.id);
    const kept = transitions.filter(isFresh);
    const before =
      kept.length < transitions.length ? await writtenBefore(trx, transitions) : new Set<Transition>();
    const written = transitions.map((transition) => isFresh(transition) || before.has(transition));
    if (kept.length === 0) return written;
    const at = Math.max(...kept.map(({ attempt }) => attempt.endedAt));
    const emailIds = kept.map(({ delivery }) => delivery.emailId);
    const real = kept.filter(({ delivery }) => !isTestMail(delivery));
    const suppressed = real.flatMap((transition) => suppressionAfter(transition, suppressAfter));
    await writeTogether(trx, [
      (all) => bumpUpdatedAt(all, emailIds, at),
      (all) => insertRows(all, 'attempts', kept.filter(({ attempt }) => wasTried(attempt)).map(attemptRow)),
      (all) => insertRows(all, 'events', kept.map(eventOf)),
    ]);
    const soft = suppressAfter.length === 0 ? [] : real.flatMap(softBounceOf);
    if (soft.length > 0) suppressed.push(...(await noteSoftBounces(trx, soft)));
    await suppress(trx, suppressed, at);
    // Last, because other nodes count the same large domains: their rows stay locked until the commit.
    await countTlsSessions(
      trx,
      kept.map(({ delivery: { domain }, attempt }) => ({ domain, attempt })),
    );
    return written;
  });
}

/** Writes the new states in one statement. Returns the deliveries that this node still had leased. */
async function updateDeliveries(trx: Trx, node: string, transitions: Transition[]): Promise<Set<string>> {
  const fence: JsonColumns<Transition> = {
    id: ['uuid', ({ delivery }) => delivery.id],
    before: ['integer', ({ delivery }) => delivery.attempts],
  };
  const rows = jsonItems<Transition>(trx, { ...fence, ...columns });
  const { from, column } = rows;
  const assignments = Object.keys(columns).map((name) => `${name} = ${column(name)}`);
  const updated = await query<{ id: string }>(
    trx,
    `update deliveries set ${assignments.join(', ')}, lease_owner = null
     from ${from}
     where deliveries.id = ${column('id')} and deliveries.attempts = ${column('before')} and ${isOurs}
     returning deliveries.id`,
    [rows.json(transitions), node],
  );
  return new Set(updated.map(({ id }) => id));
}

/** Those whose rows say so already: an earlier try of this commit succeeded. */
async function writtenBefore(trx: Trx, transitions: Transition[]): Promise<Set<Transition>> {
  const nameOf = (...parts: (string | number)[]) => parts.join(' ');
  const ids = transitions.map(({ delivery }) => delivery.id);
  const tried = await trx('attempts')
    .whereIn('delivery_id', ids)
    .select('delivery_id', 'number', 'started_at', 'ended_at');
  const ended = await trx('deliveries').whereIn('id', ids).select('id', 'status', 'updated_at');
  const known = new Set([
    ...tried.map((row) => nameOf(row.delivery_id, row.number, row.started_at, row.ended_at)),
    ...ended.map((row) => nameOf(row.id, row.status, row.updated_at)),
  ]);
  return new Set(
    transitions.filter(({ delivery: { id }, attempts, attempt, status }) =>
      known.has(
        wasTried(attempt)
          ? nameOf(id, attempts, attempt.startedAt, attempt.endedAt)
          : nameOf(id, status, attempt.endedAt),
      ),
    ),
  );
}

/**
 * An expression, so that the index of leases is not used: it would read all leases of this node to find a few, and on
 * PostgreSQL also all that it had since the last vacuum.
 */
const isOurs = "coalesce(deliveries.lease_owner, '') = ? and deliveries.status = 'sending'";

/** The columns that an outcome changes, besides the lease. */
const columns: JsonColumns<Transition> = {
  status: ['text', ({ status }) => status],
  attempts: ['integer', ({ attempts }) => attempts],
  due_at: ['bigint', ({ dueAt }) => dueAt],
  updated_at: ['bigint', ({ attempt }) => attempt.endedAt],
  delivered_at: ['bigint', ({ deliveredAt }) => deliveredAt],
  // The queue is searched by the replies to what still waits.
  last_reply: ['text', ({ dueAt, attempt }) => (dueAt === null ? null : json(attempt.reply))],
  mx: ['text', ({ dueAt, attempt }) => (dueAt === null ? null : json(attempt.mx))],
  tls: ['text', ({ dueAt, attempt }) => (dueAt === null ? null : json(attempt.tls))],
  packed: ['bytea', ({ dueAt, attempt }) => (dueAt === null ? packedResult(attempt) : null)],
  bounce: ['text', ({ bounce }) => json(bounce)],
};

function attemptRow({ delivery, attempts, attempt }: Transition): object {
  return {
    id: newId(),
    delivery_id: delivery.id,
    number: attempts,
    started_at: attempt.startedAt,
    ended_at: attempt.endedAt,
    // Older versions filled columns instead, of which these two must not be null.
    verdict: '',
    transcript: '',
    packed: packAttempt(attempt),
  };
}

/** The delivery's row and the event have the same. */
const packedResults = new WeakMap<Attempt, string>();

function packedResult(attempt: Attempt): string {
  const known = packedResults.get(attempt);
  if (known !== undefined) return known;
  const packed = packResult(attempt);
  packedResults.set(attempt, packed);
  return packed;
}

function eventOf({ delivery, attempt, event }: Transition) {
  const { orgId, emailId, recipient } = delivery;
  const { response: _, mx: __, tls: ___, ...data } = event.data;
  const row = eventRow({ orgId, emailId, recipient, type: event.type, at: attempt.endedAt, data });
  return { ...row, packed: packedResult(attempt) };
}

function suppressionAfter(transition: Transition, suppressAfter: readonly string[]): NewSuppression[] {
  const { recipient, orgId, emailId } = transition.delivery;
  const reason = suppressionReason(transition, suppressAfter);
  if (reason === null) return [];
  const reply = replyOf(transition);
  return [{ orgId, address: recipient, addressKey: compareKey(recipient), reason, emailId, reply }];
}

function softBounceOf(transition: Transition): SoftBounce[] {
  const category = softMailboxCategory(transition);
  if (category === null) return [];
  const { recipient, orgId, emailId } = transition.delivery;
  const reply = replyOf(transition);
  return [{ orgId, recipient, emailId, category, at: transition.attempt.endedAt, reply }];
}

function replyOf({ attempt: { reply, outcome } }: Transition): Reply {
  return replyIn(outcome.diagnostic, reply);
}

function json(value: unknown): string | null {
  return value === null ? null : JSON.stringify(value);
}
