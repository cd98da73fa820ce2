/**
 * Records outcomes: the delivery's new state, the attempt with its transcript, the event and, after some bounces, the
 * suppression of the address; many in one transaction. A delivery whose lease this node has lost is skipped, because its new
 * owner records it. So is one that was attempted since, because the node may have lost the lease and got it again: the
 * number of attempts, which every outcome increases, is the fencing token.
 *
 * A commit whose answer was lost is tried again, and recognises by its attempt rows what it had already written.
 */

import { failpoint } from '../../base/failpoints.ts';
import { newId } from '../../base/id.ts';
import { compareKey } from '../../mail/address.ts';
import { suppressionReason, type Transition } from '../../record/transition.ts';
import { type NewSuppression, suppress } from '../accounts/suppressions.ts';
import { insertRows } from '../engine/insert-rows.ts';
import { jsonRows, query } from '../engine/json-rows.ts';
import type { Db, Trx } from '../engine/open.ts';
import { parallel } from '../engine/parallel.ts';
import { inSharedCommit } from '../engine/shared-commit.ts';
import { bumpUpdatedAt } from '../events/bump-updated-at.ts';

/**
 * For each move whether it is written; false: the lease was lost. `suppressAfter`: the categories of hard bounces
 * after which an address is not written to again.
 */
export async function recordAll(
  db: Db,
  node: string,
  moves: Transition[],
  suppressAfter: readonly string[],
): Promise<boolean[]> {
  return inSharedCommit(db, async (trx) => {
    const updated = await updateDeliveries(trx, node, moves);
    failpoint('recording');
    const isFresh = ({ delivery }: Transition) => updated.has(delivery.id);
    const kept = moves.filter(isFresh);
    const before = kept.length < moves.length ? await writtenBefore(trx, moves) : new Set<Transition>();
    const written = moves.map((move) => isFresh(move) || before.has(move));
    if (kept.length === 0) return written;
    const at = Math.max(...kept.map(({ attempt }) => attempt.endedAt));
    const emailIds = kept.map(({ delivery }) => delivery.emailId);
    const suppressed = kept.flatMap((move) => suppressionAfter(move, suppressAfter));
    await parallel(trx, [
      () => bumpUpdatedAt(trx, emailIds, at),
      () => insertRows(trx, 'attempts', kept.map(attemptRow)),
      () => insertRows(trx, 'events', kept.map(eventRow)),
    ]);
    await suppress(trx, suppressed, at);
    return written;
  });
}

/** The new states, in one statement; which of the deliveries were still this node's to move. */
async function updateDeliveries(trx: Trx, node: string, moves: Transition[]): Promise<Set<string>> {
  const { from, column } = jsonRows(trx, { id: 'uuid', ...columns });
  const assignments = Object.keys(columns).map((name) => `${name} = ${column(name)}`);
  const updated = await query<{ id: string }>(
    trx,
    `update deliveries set ${assignments.join(', ')}, lease_owner = null
     from ${from}
     where deliveries.id = ${column('id')} and deliveries.attempts = ${column('attempts')} - 1 and ${isOurs}
     returning deliveries.id`,
    [JSON.stringify(moves.map(deliveryRow)), node],
  );
  return new Set(updated.map(({ id }) => id));
}

/** Those whose attempt rows exist already: an earlier try of this commit succeeded. */
async function writtenBefore(trx: Trx, moves: Transition[]): Promise<Set<Transition>> {
  const nameOf = (...parts: (string | number)[]) => parts.join(' ');
  const rows = await trx('attempts')
    .whereIn(
      'delivery_id',
      moves.map(({ delivery }) => delivery.id),
    )
    .select('delivery_id', 'number', 'started_at', 'ended_at');
  const known = new Set(rows.map((row) => nameOf(row.delivery_id, row.number, row.started_at, row.ended_at)));
  return new Set(
    moves.filter(({ delivery, attempt }) =>
      known.has(nameOf(delivery.id, delivery.attempts + 1, attempt.startedAt, attempt.endedAt)),
    ),
  );
}

/**
 * By their ids: the index of leases would lead through all that this node has leased, in search of a few, and on
 * PostgreSQL past all that it had leased since the last vacuum.
 */
const isOurs = "coalesce(deliveries.lease_owner, '') = ? and deliveries.status = 'sending'";

function deliveryRow({ delivery, attempt, status, dueAt, deliveredAt, bounce }: Transition) {
  return {
    id: delivery.id,
    status,
    attempts: delivery.attempts + 1,
    due_at: dueAt,
    updated_at: attempt.endedAt,
    delivered_at: deliveredAt,
    last_reply: json(attempt.reply),
    mx: json(attempt.mx),
    tls: json(attempt.tls),
    bounce: json(bounce),
  };
}

/** The columns of `deliveryRow` except the id, with their PostgreSQL types. */
const columns = {
  status: 'text',
  attempts: 'integer',
  due_at: 'bigint',
  updated_at: 'bigint',
  delivered_at: 'bigint',
  last_reply: 'text',
  mx: 'text',
  tls: 'text',
  bounce: 'text',
};

function attemptRow({ delivery, attempt }: Transition): object {
  return {
    id: newId(),
    delivery_id: delivery.id,
    number: delivery.attempts + 1,
    started_at: attempt.startedAt,
    ended_at: attempt.endedAt,
    verdict: json(attempt.outcome),
    reply: json(attempt.reply),
    mx: json(attempt.mx),
    tls: json(attempt.tls),
    transcript: json(attempt.transcript),
  };
}

function eventRow({ delivery, attempt, event }: Transition): object {
  return {
    id: newId(),
    org_id: delivery.orgId,
    email_id: delivery.emailId,
    type: event.type,
    recipient: delivery.recipient,
    at: attempt.endedAt,
    data: json(event.data),
  };
}

function suppressionAfter(move: Transition, suppressAfter: readonly string[]): NewSuppression[] {
  const { recipient, orgId, emailId } = move.delivery;
  const reason = suppressionReason(move, suppressAfter);
  if (reason === null) return [];
  return [{ orgId, address: recipient, addressKey: compareKey(recipient), reason, emailId }];
}

function json(value: unknown): string | null {
  return value === null ? null : JSON.stringify(value);
}
