/**
 * Records returned mail: the delivery's new state, the mail itself, the event and, if needed, the suppression of the
 * address; many mails in one transaction, with the deliveries locked. The commit comes before the 250.
 */

import { replyIn } from '#accounts/rows/bounce-reply.ts';
import { noteSoftBounces, type SoftBounce } from '#accounts/rows/soft-bounces.ts';
import { type NewSuppression, suppress } from '#accounts/rows/suppressions.ts';
import { isSoftForMailbox, suppressionReason } from '#mail/deliver/transition.ts';
import { type BounceTransition, transitionOnBounce } from '#mail/returned/bounce-transition.ts';
import { failureOf } from '#mail/returned/failed-recipient.ts';
import type { Complaint, ParseResult, ReportedFailure } from '#mail/returned/parse-result.ts';
import { newId } from '#platform/base/id.ts';
import { insertRows, insertWithBytes } from '#platform/database/engine/insert-rows.ts';
import type { Db, Trx } from '#platform/database/engine/open.ts';
import { json, number, orNull, records, text, value } from '#platform/database/engine/records.ts';
import { inSharedCommit } from '#platform/database/engine/shared-commit.ts';
import { bumpUpdatedAt } from '#platform/database/tables/bump-updated-at.ts';
import { eventRow } from '#platform/database/tables/event-row.ts';
import { deliveries, emails } from '#platform/database/tables/mail-tables.ts';
import { emptyServerMessages } from '#platform/database/tables/messages.ts';
import { attemptDetail } from '#platform/database/tables/packed-records.ts';
import { compareKey } from '#platform/values/address.ts';
import { type DeliveryStatus, serverOrgId } from '#platform/values/glossary.ts';
import { isTestMail } from '#platform/values/test-route.ts';

/** Mail that came in, as it was received. */
export const returnedMails = records({
  id: text,
  /** The delivery that it is about; null for a letter. */
  deliveryId: orNull(text),
  kind: value<ParseResult['kind']>(),
  at: number,
  sender: text,
  recipient: text,
  /** Address of the SMTP client. */
  peer: text,
  size: number,
  reading: json<Record<string, unknown>>(),
  /** The first bytes of the mail. */
  raw: value<Buffer>(),
});

export type ReturnedMail = Omit<
  ReturnType<typeof returnedMails.read>,
  'id' | 'deliveryId' | 'kind' | 'reading'
>;

export interface IncomingBounce {
  deliveryId: string;
  reading: ReportedFailure | Complaint;
  mail: ReturnedMail;
}

/** The delivery that a returned mail is about, with what the mail log needs. */
export type BouncedDelivery = Omit<DeliveryRow, 'status' | 'mayHaveArrived'>;

/** 'wait': the delivery is being sent, try again; 'gone': the delivery does not exist. `transition` null: nothing changed. */
export type BounceResult =
  | 'wait'
  | 'gone'
  | { to: BouncedDelivery; status: DeliveryStatus; transition: BounceTransition | null };

export async function recordBounces(
  db: Db,
  list: IncomingBounce[],
  suppressAfter: readonly string[],
): Promise<BounceResult[]> {
  return inSharedCommit(db, async (trx) => {
    const ids = [...new Set(list.map(({ deliveryId }) => deliveryId))];
    // Ordered, so that two nodes never deadlock.
    await trx('deliveries').whereIn('id', ids).orderBy('id').forUpdate().select('id');
    const known = await readDeliveries(trx, ids);
    const isNewReport = await newForwardReports(trx, list, known);
    const done: Changed[] = [];
    const outcomes = list.map((incoming): BounceResult => {
      const delivery = known.get(incoming.deliveryId);
      if (!delivery) return 'gone';
      const move = transitionOnBounce(delivery, incoming.reading);
      if (move === 'wait') return 'wait';
      const isRepeat = move?.event.type === 'email.forward_failed' && !isNewReport(incoming);
      const transition = isRepeat ? null : move;
      const outcome = { to: delivery, status: delivery.status, transition };
      if (transition) {
        done.push({ incoming, delivery, transition });
        delivery.status = transition.status;
      }
      return outcome;
    });
    if (done.length === 0) return outcomes;
    for (const { incoming, transition } of done) await updateDelivery(trx, incoming, transition);
    const at = Math.max(...done.map(({ incoming }) => incoming.mail.at));
    const emailIds = done.map(({ delivery }) => delivery.emailId);
    await bumpUpdatedAt(trx, emailIds, at);
    const events = done.map(({ incoming: { mail }, delivery, transition: { event } }) =>
      eventRow({ ...delivery, ...event, at: mail.at }),
    );
    await insertRows(trx, 'events', events);
    const mails = done.map(({ incoming: { mail, deliveryId, reading }, delivery }) =>
      mailRow(withoutLink(mail, delivery), deliveryId, reading),
    );
    await insertWithBytes(trx, 'inbound_mails', mails);
    await emptyServerMessages(
      trx,
      done.map(({ delivery }) => delivery),
    );
    const real = done.filter(({ delivery }) => !isTestMail(delivery) && delivery.orgId !== serverOrgId);
    const suppressions = real.flatMap(({ delivery, transition }) =>
      suppressionAfter(delivery, transition, suppressAfter),
    );
    const soft = suppressAfter.length === 0 ? [] : real.flatMap(softBounceOf);
    if (soft.length > 0) suppressions.push(...(await noteSoftBounces(trx, soft)));
    await suppress(trx, suppressions, at);
    return outcomes;
  });
}

const ofDelivery = deliveries.pick('emailId', 'orgId', 'recipient', 'domain', 'attempts', 'status');
const ofEmail = emails.pick('from', 'tags', 'stream');

type DeliveryRow = ReturnType<typeof ofDelivery.read> &
  ReturnType<typeof ofEmail.read> & { mayHaveArrived: boolean };

interface Changed {
  incoming: IncomingBounce;
  delivery: DeliveryRow;
  transition: BounceTransition;
}

async function readDeliveries(db: Db, ids: string[]): Promise<Map<string, DeliveryRow>> {
  const rows = await db('deliveries')
    .join('emails', 'emails.id', 'deliveries.email_id')
    .whereIn('deliveries.id', ids)
    .select('deliveries.id', ...ofDelivery.columnsOf('deliveries'), ...ofEmail.columnsOf('emails'));
  const inDoubt = await mayHaveArrived(db, rows);
  return new Map(
    rows.map((row) => [
      row.id,
      { ...ofDelivery.read(row), ...ofEmail.read(row), mayHaveArrived: inDoubt.has(row.id) },
    ]),
  );
}

/**
 * The forward reports that are kept for one delivery: they leave its state as it is, so nothing else would limit how many
 * events a server, or whoever knows the return path, can make of one mail.
 */
const maxForwardReports = 10;

/** Whether a report is the first about its address (mail/returned/failed-recipient.ts); counts it. The deliveries are locked. */
async function newForwardReports(
  trx: Trx,
  list: IncomingBounce[],
  deliveries: Map<string, DeliveryRow>,
): Promise<(incoming: IncomingBounce) => boolean> {
  const reported = new Map<string, Set<unknown>>();
  for (const { deliveryId, reading } of list) {
    const recipient = deliveries.get(deliveryId)?.recipient;
    if (recipient && reading.kind === 'failed' && failureOf(recipient, reading) === null)
      reported.set(deliveryId, new Set());
  }
  if (reported.size > 0) {
    const ids = [...reported.keys()];
    const rows = await trx('inbound_mails')
      .whereIn('delivery_id', ids)
      .where('kind', 'failed')
      .select(...keptReport.columns);
    for (const { deliveryId, reading } of rows.map((row) => keptReport.read(row)))
      reported.get(deliveryId!)!.add(reading.recipient);
  }
  return ({ deliveryId, reading }) => {
    const addresses = reported.get(deliveryId);
    const address = (reading as ReportedFailure).recipient;
    if (!addresses || addresses.size >= maxForwardReports || addresses.has(address)) return false;
    addresses.add(address);
    return true;
  };
}

const keptReport = returnedMails.pick('deliveryId', 'reading');

/** The deferred deliveries that had an attempt with an unknown result. */
async function mayHaveArrived(trx: Db, rows: { id: string; status: string }[]): Promise<Set<string>> {
  const waiting = rows.filter(({ status }) => status === 'deferred').map(({ id }) => id);
  if (waiting.length === 0) return new Set();
  const attempts = await trx('attempts').whereIn('delivery_id', waiting);
  const doubtful = attempts.filter((row) => attemptDetail(row).verdict.possibleDuplicate);
  return new Set(doubtful.map((attempt) => attempt.delivery_id));
}

async function updateDelivery(
  trx: Trx,
  { deliveryId: id, mail }: IncomingBounce,
  transition: BounceTransition,
) {
  await trx('deliveries')
    .where({ id })
    .update({
      status: transition.status,
      due_at: null,
      updated_at: mail.at,
      ...(transition.bounce && { bounce: JSON.stringify(transition.bounce) }),
    });
}

/**
 * A complaint always suppresses, in the stream of its mail: other mail of the organization is another matter. An address that
 * bounces is so for all mail; the setting applies to bounces only.
 */
function suppressionAfter(
  { orgId, recipient, emailId, stream }: DeliveryRow,
  { status, bounce }: BounceTransition,
  suppressAfter: readonly string[],
): NewSuppression[] {
  const reason = status === 'complained' ? 'complaint' : suppressionReason({ bounce }, suppressAfter);
  if (reason === null) return [];
  const reply = bounce && replyIn(bounce.diagnostic);
  const addressKey = compareKey(recipient);
  const list = status === 'complained' ? { stream } : {};
  return [{ orgId, address: recipient, addressKey, reason, emailId, reply, ...list }];
}

function softBounceOf({ incoming: { mail }, delivery, transition: { bounce } }: Changed): SoftBounce[] {
  const { orgId, recipient, emailId } = delivery;
  if (!isSoftForMailbox(bounce)) return [];
  const { category, diagnostic } = bounce;
  return [{ orgId, recipient, emailId, category, at: mail.at, reply: replyIn(diagnostic) }];
}

/** The copy of the mail in a bounce of the server's own mail has its link. */
export const withoutLink = (mail: ReturnedMail, { orgId }: { orgId: string }): ReturnedMail =>
  orgId === serverOrgId ? { ...mail, raw: Buffer.alloc(0) } : mail;

export function mailRow(mail: ReturnedMail, deliveryId: string | null, reading: ParseResult): object {
  const { kind, ...rest } = reading;
  return returnedMails.write({ ...mail, id: newId(), deliveryId, kind, reading: rest });
}

export async function findBouncedDelivery(db: Db, id: string): Promise<BouncedDelivery | null> {
  return (await readDeliveries(db, [id])).get(id) ?? null;
}

export async function deliveriesOf(db: Db, emailId: string): Promise<string[]> {
  return db('deliveries').where({ email_id: emailId }).pluck('id');
}
