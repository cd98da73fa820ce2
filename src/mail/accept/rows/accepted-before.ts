/**
 * Finds sends that an earlier try of the same commit accepted although its answer was lost with the connection. The rows of
 * emails show it by id, for as long as such a retry may take; idempotency keys and duplicate windows are deleted sooner.
 * Runs after the locks, which the earlier try may still hold.
 *
 * The deliveries of such a send are leased to a node that never got the answer. If the leases are unchanged, they are
 * renewed and the send continues as if nothing had been lost. If they are not, mail/queue/held-leases.ts has freed the
 * deliveries meanwhile, and any node may send them.
 */
import { jsonRows, query } from '#platform/database/engine/json-rows.ts';
import type { Trx } from '#platform/database/engine/open.ts';
import type { Send, SendAnswerRecord } from '#platform/database/tables/send-record.ts';

export interface AcceptedBefore {
  answer: SendAnswerRecord;
  /** The deliveries are still leased to the caller, which sends them. */
  isOurs: boolean;
}

interface Row {
  emailId: string;
  recipient: string;
  status: string;
}

/** Returned by email id. */
export async function findAcceptedBefore(trx: Trx, sends: Send[]): Promise<Map<string, AcceptedBefore>> {
  const retried = sends.filter(({ retryLeaseUntil: againUntil }) => againUntil !== undefined);
  if (retried.length === 0) return new Map();
  const rows = await readRows(trx, retried);
  const renewed = await renew(trx, retried);
  const taken = retried.flatMap((send): [string, AcceptedBefore][] => {
    const own = rows.filter(({ emailId }) => emailId === send.emailId);
    const leased = send.recipients.filter(({ startState: entry }) => entry === 'leased');
    const isOurs = leased.every(({ deliveryId }) => renewed.has(deliveryId));
    return own.length > 0 ? [[send.emailId, { answer: answerOf(send, own), isOurs }]] : [];
  });
  return new Map(taken);
}

function readRows(trx: Trx, sends: Send[]): Promise<Row[]> {
  const { from, column } = jsonRows(trx, { id: 'uuid' });
  return query<Row>(
    trx,
    `select deliveries.email_id as "emailId", recipient, status from ${from} cross join deliveries
     where deliveries.email_id = ${column('id')} order by deliveries.position`,
    [JSON.stringify(sends.map(({ emailId }) => ({ id: emailId })))],
  );
}

/** A lease that still has the end that the first try gave it has not been taken by anyone else. */
async function renew(trx: Trx, sends: Send[]): Promise<Set<string>> {
  const leases = sends.flatMap(({ recipients, lease, retryLeaseUntil: againUntil }) =>
    recipients
      .filter(({ startState: entry }) => entry === 'leased')
      .map(({ deliveryId }) => ({
        id: deliveryId,
        node: lease.node,
        until: lease.until,
        new_until: againUntil,
      })),
  );
  const { from, column } = jsonRows(trx, { id: 'uuid', node: 'text', until: 'bigint', new_until: 'bigint' });
  const renewed = await query<{ id: string }>(
    trx,
    `update deliveries set due_at = ${column('new_until')} from ${from}
     where deliveries.id = ${column('id')} and coalesce(deliveries.lease_owner, '') = ${column('node')}
       and deliveries.status = 'sending' and deliveries.due_at = ${column('until')}
     returning deliveries.id`,
    [JSON.stringify(leases)],
  );
  return new Set(renewed.map(({ id }) => id));
}

function answerOf({ messageId: id, emailId }: Send, rows: Row[]): SendAnswerRecord {
  const addressesWith = (wanted: (status: string) => boolean) =>
    rows.filter(({ status }) => wanted(status)).map(({ recipient }) => recipient);
  return {
    id,
    emailId,
    accepted: addressesWith((status) => status !== 'suppressed' && status !== 'insufficient_credit'),
    suppressed: addressesWith((status) => status === 'suppressed'),
    insufficientCredit: addressesWith((status) => status === 'insufficient_credit'),
  };
}
