/** The rows of accepted sends, table by table, in the order that the foreign keys require. */

import { patchedLength } from '../../base/byte-patch.ts';
import { mailboxText } from '../../mail/address.ts';
import { eventRow } from '../events/event-row.ts';
import type { Send, SendAnswerRecord, SendMessage, SendRecipient } from './send-record.ts';

/** The decision about one recipient. */
export type Disposition = 'queued' | 'suppressed' | 'insufficient_credit';

export interface AcceptanceRows {
  tables: Record<
    'emails' | 'message_bases' | 'messages' | 'deliveries' | 'events' | 'credit_entries' | 'soft_bounces',
    object[]
  >;
  /** Adds an accepted send, with the dispositions in the order of its recipients, and returns its answer. */
  add(send: Send, dispositions: Disposition[], credits: number): SendAnswerRecord;
}

export function newRows(): AcceptanceRows {
  const tables: AcceptanceRows['tables'] = {
    emails: [],
    message_bases: [],
    messages: [],
    deliveries: [],
    events: [],
    credit_entries: [],
    soft_bounces: [],
  };

  return {
    tables,
    add(send, dispositions, credits) {
      tables.emails.push(emailRow(send, credits));
      const used = new Set<number>();
      for (const [position, recipient] of send.recipients.entries()) {
        const disposition = dispositions[position]!;
        if (disposition === 'queued') used.add(recipient.message);
        const messageId = disposition === 'queued' ? send.messages[recipient.message]!.id : null;
        tables.deliveries.push(deliveryRow(send, recipient, position, disposition, messageId));
        if (disposition === 'insufficient_credit') continue;
        const { orgId, emailId, acceptedAt: at } = send;
        const data = disposition === 'queued' ? queuedData(send) : {};
        const type = `email.${disposition}`;
        tables.events.push(eventRow({ orgId, emailId, type, recipient: recipient.address, at, data }));
      }
      if (send.base) tables.message_bases.push({ email_id: send.emailId, raw: send.base });
      for (const index of used) tables.messages.push(messageRow(send, send.messages[index]!));
      return answerOf(send, dispositions);
    },
  };
}

const queuedData = ({ trackedLinks }: Send) => (trackedLinks === null ? {} : { trackedLinks });

function answerOf(send: Send, dispositions: Disposition[]): SendAnswerRecord {
  const addressesWith = (disposition: Disposition) =>
    send.recipients
      .filter((_, position) => dispositions[position] === disposition)
      .map(({ address }) => address);
  return {
    id: send.messageId,
    emailId: send.emailId,
    accepted: addressesWith('queued'),
    suppressed: addressesWith('suppressed'),
    insufficientCredit: addressesWith('insufficient_credit'),
  };
}

function emailRow(send: Send, credits: number): object {
  return {
    id: send.emailId,
    org_id: send.orgId,
    key_id: send.keyId,
    message_id: send.messageId,
    sender: send.from,
    reply_to: send.replyTo,
    subject: send.subject,
    recipients: JSON.stringify(send.recipients.map(mailboxText)),
    tags: JSON.stringify(send.tags),
    tracking: JSON.stringify(send.tracking),
    tls: send.tls,
    credits,
    created_at: send.acceptedAt,
    updated_at: send.acceptedAt,
  };
}

function messageRow({ emailId, base }: Send, { id, raw }: SendMessage): object {
  const size = base ? patchedLength(raw) : raw.length;
  return { id, email_id: emailId, size, raw, is_patch: base !== null };
}

function deliveryRow(
  send: Send,
  recipient: SendRecipient,
  position: number,
  disposition: Disposition,
  messageId: string | null,
): object {
  return {
    id: recipient.deliveryId,
    email_id: send.emailId,
    org_id: send.orgId,
    message_id: messageId,
    position,
    kind: recipient.kind,
    recipient: recipient.address,
    domain: recipient.domain,
    ...(disposition === 'queued'
      ? leaseColumns(send, recipient)
      : { status: disposition, due_at: null, lease_owner: null }),
    created_at: send.acceptedAt,
    expires_at: send.expiresAt,
    updated_at: send.acceptedAt,
  };
}

/** Both cases have the same columns, because many rows share one statement. */
function leaseColumns({ acceptedAt, lease }: Send, { disposition }: SendRecipient): object {
  return disposition === 'leased'
    ? { status: 'sending', due_at: lease.until, lease_owner: lease.node }
    : { status: 'queued', due_at: acceptedAt, lease_owner: null };
}
