/**
 * Sends whose commit was asked for before, and the answer was lost with the connection: which of them that commit had
 * taken after all. The emails say so by their ids, for as long as it may take to ask; what is known by idempotency key or
 * duplicate window is forgotten sooner. Comes after the locks, which the earlier try may still hold.
 *
 * Their deliveries are leased to a node that has not heard of it. Where the leases are still as they were, they begin
 * anew, and the send goes on as if nothing had been lost. Where they are not, the deliveries have been freed meanwhile
 * (queue/held-leases.ts), and are somebody else's to send.
 */

import { jsonRows, query } from '../engine/json-rows.ts';
import type { Trx } from '../engine/open.ts';
import type { Send } from './acceptance-rows.ts';
import type { SendAnswerRecord } from './idempotency.ts';

export interface AcceptedBefore {
  answer: SendAnswerRecord;
  /** Who asks goes on with its deliveries. */
  isOurs: boolean;
}

interface Row {
  emailId: string;
  recipient: string;
  status: string;
}

/** By the ids of their emails. */
export async function findAcceptedBefore(trx: Trx, sends: Send[]): Promise<Map<string, AcceptedBefore>> {
  const again = sends.filter(({ againUntil }) => againUntil !== undefined);
  if (again.length === 0) return new Map();
  const rows = await readRows(trx, again);
  const renewed = await renew(trx, again);
  const taken = again.flatMap((send): [string, AcceptedBefore][] => {
    const own = rows.filter(({ emailId }) => emailId === send.emailId);
    const leased = send.recipients.filter(({ entry }) => entry === 'leased');
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

/** A lease that ends when the first try would have it end has been nobody's since. */
async function renew(trx: Trx, sends: Send[]): Promise<Set<string>> {
  const leases = sends.flatMap(({ recipients, lease, againUntil }) =>
    recipients
      .filter(({ entry }) => entry === 'leased')
      .map(({ deliveryId }) => ({ id: deliveryId, node: lease.node, until: lease.until, anew: againUntil })),
  );
  const { from, column } = jsonRows(trx, { id: 'uuid', node: 'text', until: 'bigint', anew: 'bigint' });
  const renewed = await query<{ id: string }>(
    trx,
    `update deliveries set due_at = ${column('anew')} from ${from}
     where deliveries.id = ${column('id')} and coalesce(deliveries.lease_owner, '') = ${column('node')}
       and deliveries.status = 'sending' and deliveries.due_at = ${column('until')}
     returning deliveries.id`,
    [JSON.stringify(leases)],
  );
  return new Set(renewed.map(({ id }) => id));
}

function answerOf({ messageId: id, emailId }: Send, rows: Row[]): SendAnswerRecord {
  const those = (wanted: (status: string) => boolean) =>
    rows.filter(({ status }) => wanted(status)).map(({ recipient }) => recipient);
  return {
    ...{ id, emailId },
    accepted: those((status) => status !== 'suppressed' && status !== 'insufficient_credit'),
    suppressed: those((status) => status === 'suppressed'),
    insufficientCredit: those((status) => status === 'insufficient_credit'),
  };
}
