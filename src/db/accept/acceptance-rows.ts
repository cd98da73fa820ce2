/** The rows that accepted sends become, table by table, in the order in which the foreign keys let them in. */

import { patchedLength } from '../../base/byte-patch.ts';
import { newId } from '../../base/id.ts';
import type { EventType, TlsFloor } from '../../glossary.ts';
import type { SendAnswerRecord } from './idempotency.ts';

export interface Send {
  emailId: string;
  orgId: string;
  /** Null: sent by somebody in the dashboard. */
  keyId: string | null;
  /** Message-ID without its angle brackets. */
  messageId: string;
  from: string;
  replyTo: string | null;
  subject: string;
  tags: Record<string, string>;
  tracking: { openTracking: boolean; clickTracking: boolean };
  /** What the domain or the organization demands of connections. */
  tls: TlsFloor;
  recipients: SendRecipient[];
  messages: SendMessage[];
  /** What the messages are patches of (base/byte-patch.ts), where they are. */
  base: Buffer | null;
  /** How many of the links are tracked; null: all that can be. */
  trackedLinks: number | null;
  idempotency: {
    /** The caller's key, or the hash of the duplicate window. */
    kind: 'key' | 'window';
    key: string;
    requestHash: string;
  };
  acceptedAt: number;
  expiresAt: number;
  /** Whose the deliveries are that enter leased, and until when. */
  lease: { node: string; until: number };
  /** The answer to an earlier try of this commit was lost; until when its leases are to last now. */
  againUntil?: number;
}

export interface SendRecipient {
  deliveryId: string;
  address: string;
  /** What addresses are compared by. */
  key: string;
  domain: string;
  /** Which of the messages is this recipient's. */
  message: number;
  /** How its delivery enters the queue: leased to us, to be sent at once; or due, to wait in its lane. */
  entry: 'leased' | 'due';
}

interface SendMessage {
  id: string;
  raw: Buffer;
}

/** The recipients of a send by what becomes of them. */
export type AcceptBatch = 'queued' | 'suppressed' | 'insufficient_credit';

export interface AcceptanceRows {
  tables: Record<
    'emails' | 'message_bases' | 'messages' | 'deliveries' | 'events' | 'credit_entries',
    object[]
  >;
  /** Adds an accepted send, its recipients' lots in their order, and answers it. */
  add(send: Send, lots: AcceptBatch[], credits: number): SendAnswerRecord;
  addNews(orgId: string, type: EventType, data: object, at: number): void;
}

export function newRows(): AcceptanceRows {
  const tables: AcceptanceRows['tables'] = {
    emails: [],
    message_bases: [],
    messages: [],
    deliveries: [],
    events: [],
    credit_entries: [],
  };

  function addEvent(
    orgId: string,
    emailId: string | null,
    type: EventType,
    recipient: string | null,
    at: number,
    data: object,
  ) {
    const id = newId();
    tables.events.push({
      id,
      org_id: orgId,
      email_id: emailId,
      type,
      recipient,
      at,
      data: JSON.stringify(data),
    });
  }

  return {
    tables,
    add(send, lots, credits) {
      tables.emails.push(emailRow(send, credits));
      const used = new Set<number>();
      for (const [position, recipient] of send.recipients.entries()) {
        const lot = lots[position]!;
        if (lot === 'queued') used.add(recipient.message);
        const messageId = lot === 'queued' ? send.messages[recipient.message]!.id : null;
        tables.deliveries.push(deliveryRow(send, recipient, position, lot, messageId));
        if (lot === 'insufficient_credit') continue;
        const data = lot === 'queued' ? queuedData(send) : {};
        addEvent(send.orgId, send.emailId, `email.${lot}`, recipient.address, send.acceptedAt, data);
      }
      if (send.base) tables.message_bases.push({ email_id: send.emailId, raw: send.base });
      for (const index of used) tables.messages.push(messageRow(send, send.messages[index]!));
      return answerOf(send, lots);
    },
    addNews: (orgId, type, data, at) => addEvent(orgId, null, type, null, at, data),
  };
}

const queuedData = ({ trackedLinks }: Send) => (trackedLinks === null ? {} : { trackedLinks });

function answerOf(send: Send, lots: AcceptBatch[]): SendAnswerRecord {
  const inLot = (lot: AcceptBatch) =>
    send.recipients.filter((_, position) => lots[position] === lot).map(({ address }) => address);
  return {
    id: send.messageId,
    emailId: send.emailId,
    accepted: inLot('queued'),
    suppressed: inLot('suppressed'),
    insufficientCredit: inLot('insufficient_credit'),
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
    recipients: JSON.stringify(send.recipients.map(({ address }) => address)),
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
  lot: AcceptBatch,
  messageId: string | null,
): object {
  return {
    id: recipient.deliveryId,
    email_id: send.emailId,
    org_id: send.orgId,
    message_id: messageId,
    position,
    recipient: recipient.address,
    domain: recipient.domain,
    ...(lot === 'queued' ? entryOf(send, recipient) : { status: lot, due_at: null, lease_owner: null }),
    created_at: send.acceptedAt,
    expires_at: send.expiresAt,
    updated_at: send.acceptedAt,
  };
}

/** The same columns whatever the entry, for many rows share a statement. */
function entryOf({ acceptedAt, lease }: Send, { entry }: SendRecipient): object {
  return entry === 'leased'
    ? { status: 'sending', due_at: lease.until, lease_owner: lease.node }
    : { status: 'queued', due_at: acceptedAt, lease_owner: null };
}
