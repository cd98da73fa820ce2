/**
 * Writes what came of attempts: the delivery's new state, the attempt with its transcript, the event, and after some
 * bounces the suppression of the address, many of them in one transaction. A delivery whose lease this node has lost is
 * left alone: its new owner tells its story.
 */
import { v7 as uuid } from 'uuid';
import { compareKey } from '../address.ts';
import { type Move, suppressionReason } from '../status/record.ts';
import { insertRows } from './insert.ts';
import type { Db, Trx } from './open.ts';
import { type NewSuppression, suppress } from './suppressions.ts';
import { touchEmails } from './touch.ts';

/**
 * For each move whether it was written; false: the lease was lost. `suppressAfter`: the categories of hard bounces
 * after which an address is not written to again.
 */
export async function recordAll(
  db: Db,
  node: string,
  moves: Move[],
  suppressAfter: readonly string[],
): Promise<boolean[]> {
  return db.transaction(async (trx) => {
    const written: boolean[] = [];
    for (const move of moves) written.push(await writeMove(trx, node, move));
    const kept = moves.filter((_, index) => written[index]);
    if (kept.length === 0) return written;
    const at = Math.max(...kept.map(({ attempt }) => attempt.endedAt));
    await touchEmails(
      trx,
      kept.map(({ delivery }) => delivery.emailId),
      at,
    );
    await insertRows(trx, 'attempts', kept.map(attemptRow));
    await insertRows(trx, 'events', kept.map(eventRow));
    await suppress(
      trx,
      kept.flatMap((move) => suppressionAfter(move, suppressAfter)),
      at,
    );
    return written;
  });
}

async function writeMove(trx: Trx, node: string, move: Move): Promise<boolean> {
  const { delivery, attempt } = move;
  const count = await trx('deliveries')
    .where({ id: delivery.id, lease_owner: node, status: 'sending' })
    .update({
      status: move.status,
      attempts: delivery.attempts + 1,
      due_at: move.dueAt,
      lease_owner: null,
      updated_at: attempt.endedAt,
      delivered_at: move.deliveredAt,
      last_reply: json(attempt.reply),
      mx: json(attempt.mx),
      tls: json(attempt.tls),
      bounce: json(move.bounce),
    });
  return count > 0;
}

function attemptRow({ delivery, attempt }: Move): object {
  return {
    id: uuid(),
    delivery_id: delivery.id,
    number: delivery.attempts + 1,
    started_at: attempt.startedAt,
    ended_at: attempt.endedAt,
    verdict: json(attempt.verdict),
    reply: json(attempt.reply),
    mx: json(attempt.mx),
    tls: json(attempt.tls),
    transcript: json(attempt.transcript),
  };
}

function eventRow({ delivery, attempt, event }: Move): object {
  return {
    id: uuid(),
    org_id: delivery.orgId,
    email_id: delivery.emailId,
    type: event.type,
    recipient: delivery.recipient,
    at: attempt.endedAt,
    data: json(event.data),
  };
}

function suppressionAfter(move: Move, suppressAfter: readonly string[]): NewSuppression[] {
  const { recipient, orgId, emailId } = move.delivery;
  const reason = suppressionReason(move, suppressAfter);
  if (reason === null) return [];
  return [{ orgId, address: recipient, addressKey: compareKey(recipient), reason, emailId }];
}

function json(value: unknown): string | null {
  return value === null ? null : JSON.stringify(value);
}
