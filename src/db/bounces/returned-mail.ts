/**
 * Writes what returned mail says: the delivery's new state, the mail itself, the event, and where it is called for the
 * suppression of the address, all in one transaction, many mails in one. It is committed before the other side is told
 * that its mail was taken. The deliveries are locked while their fate is decided.
 */
import { v7 as uuid } from 'uuid';
import { type ReturnedTransition, transitionOnReturn } from '../../bounces/bounce-transition.ts';
import type { Complaint, Failure, ParsedReturn } from '../../bounces/parse/parse-result.ts';
import type { DeliveryStatus } from '../../glossary.ts';
import { compareKey } from '../../mail/address.ts';
import { suppressionReason } from '../../record/transition.ts';
import { type NewSuppression, suppress } from '../accounts/suppressions.ts';
import { insertRows, insertWithBytes } from '../engine/insert-rows.ts';
import type { Db, Trx } from '../engine/open.ts';
import { inSharedCommit } from '../engine/shared-commit.ts';
import { bumpUpdatedAt } from '../events/bump-updated-at.ts';

/** A mail as it came in. */
export interface InboundMail {
  sender: string;
  recipient: string;
  /** The address that it came from. */
  peer: string;
  at: number;
  size: number;
  /** Its beginning. */
  raw: Buffer;
}

export interface ReturnedMailRecord {
  deliveryId: string;
  reading: Failure | Complaint;
  mail: InboundMail;
}

/** The delivery that a returned mail is about, as the mail log tells of it. */
export interface ReturnedDelivery {
  emailId: string;
  orgId: string;
  recipient: string;
  domain: string;
  from: string;
  tags: Record<string, string>;
  attempts: number;
}

/** 'wait': the delivery is being sent, ask again; 'gone': there is no such delivery. `move` null: nothing changed. */
export type ReturnedOutcome =
  | 'wait'
  | 'gone'
  | { to: ReturnedDelivery; status: DeliveryStatus; move: ReturnedTransition | null };

export async function recordReturned(
  db: Db,
  list: ReturnedMailRecord[],
  suppressAfter: readonly string[],
): Promise<ReturnedOutcome[]> {
  return inSharedCommit(db, async (trx) => {
    await lock(
      trx,
      list.map(({ deliveryId }) => deliveryId),
    );
    const books = await openBooks(
      trx,
      list.map(({ deliveryId }) => deliveryId),
    );
    const done: { returned: ReturnedMailRecord; book: Book; move: ReturnedTransition }[] = [];
    const outcomes = list.map((returned): ReturnedOutcome => {
      const book = books.get(returned.deliveryId);
      if (!book) return 'gone';
      const move = transitionOnReturn(book, returned.reading);
      if (move === 'wait') return 'wait';
      const outcome = { to: book, status: book.status, move };
      if (move) {
        done.push({ returned, book, move });
        book.status = move.status;
      }
      return outcome;
    });
    if (done.length === 0) return outcomes;
    for (const { returned, move } of done) await updateDelivery(trx, returned, move);
    const at = Math.max(...done.map(({ returned }) => returned.mail.at));
    await bumpUpdatedAt(
      trx,
      done.map(({ book }) => book.emailId),
      at,
    );
    await insertRows(
      trx,
      'events',
      done.map(({ returned, book, move }) => eventRow(returned, book, move)),
    );
    await insertWithBytes(
      trx,
      'inbound_mails',
      done.map(({ returned: { mail, deliveryId, reading } }) => mailRow(mail, deliveryId, reading)),
    );
    const suppressions = done.flatMap(({ book, move }) => suppressionAfter(book, move, suppressAfter));
    await suppress(trx, suppressions, at);
    return outcomes;
  });
}

interface Book extends ReturnedDelivery {
  status: DeliveryStatus;
  mayHaveArrived: boolean;
}

/** In one order everywhere, so that two nodes never wait for each other. */
async function lock(trx: Trx, ids: string[]): Promise<void> {
  await trx('deliveries')
    .whereIn('id', [...new Set(ids)])
    .orderBy('id')
    .forUpdate()
    .select('id');
}

async function openBooks(db: Db, ids: string[]): Promise<Map<string, Book>> {
  const rows = await db('deliveries')
    .join('emails', 'emails.id', 'deliveries.email_id')
    .whereIn('deliveries.id', [...new Set(ids)])
    .select('deliveries.*', 'emails.sender', 'emails.tags');
  const inDoubt = await mayHaveArrived(db, rows);
  return new Map(
    rows.map((row) => {
      const book = {
        emailId: row.email_id,
        orgId: row.org_id,
        recipient: row.recipient,
        domain: row.domain,
        from: row.sender,
        tags: JSON.parse(row.tags),
        attempts: row.attempts,
        status: row.status,
        mayHaveArrived: inDoubt.has(row.id),
      };
      return [row.id, book];
    }),
  );
}

/** Which of those that wait for their next attempt had one of which nobody knows how it ended. */
async function mayHaveArrived(trx: Db, rows: { id: string; status: string }[]): Promise<Set<string>> {
  const waiting = rows.filter(({ status }) => status === 'deferred').map(({ id }) => id);
  if (waiting.length === 0) return new Set();
  const attempts = await trx('attempts').whereIn('delivery_id', waiting).select('delivery_id', 'verdict');
  const doubtful = attempts.filter(({ verdict }) => JSON.parse(verdict).possibleDuplicate);
  return new Set(doubtful.map((attempt) => attempt.delivery_id));
}

async function updateDelivery(
  trx: Trx,
  { deliveryId: id, mail }: ReturnedMailRecord,
  move: ReturnedTransition,
) {
  await trx('deliveries')
    .where({ id })
    .update({
      status: move.status,
      due_at: null,
      parked_at: null,
      updated_at: mail.at,
      ...(move.bounce && { bounce: JSON.stringify(move.bounce) }),
    });
}

function eventRow({ mail }: ReturnedMailRecord, book: Book, { event }: ReturnedTransition): object {
  return {
    id: uuid(),
    org_id: book.orgId,
    email_id: book.emailId,
    type: event.type,
    recipient: book.recipient,
    at: mail.at,
    data: JSON.stringify(event.data),
  };
}

/** A complaint is a wish, which no policy overrules. */
function suppressionAfter(
  { orgId, recipient, emailId }: Book,
  { status, bounce }: ReturnedTransition,
  suppressAfter: readonly string[],
): NewSuppression[] {
  const reason = status === 'complained' ? 'complaint' : suppressionReason({ bounce }, suppressAfter);
  if (reason === null) return [];
  return [{ orgId, address: recipient, addressKey: compareKey(recipient), reason, emailId }];
}

export function mailRow(mail: InboundMail, deliveryId: string | null, reading: ParsedReturn): object {
  const { sender, recipient, peer, at, size, raw } = mail;
  const { is: kind, ...rest } = reading;
  return {
    id: uuid(),
    delivery_id: deliveryId,
    kind,
    sender,
    recipient,
    peer,
    at,
    reading: JSON.stringify(rest),
    size,
    raw,
  };
}

/** Null: there is no such delivery. */
export async function findReturnedDelivery(db: Db, id: string): Promise<ReturnedDelivery | null> {
  return (await openBooks(db, [id])).get(id) ?? null;
}

export async function deliveriesOf(db: Db, emailId: string): Promise<string[]> {
  return db('deliveries').where({ email_id: emailId }).pluck('id');
}
