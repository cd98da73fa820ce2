/** The rows of accepted sends, table by table, in the order that the foreign keys require. */

import type { Organization } from '#accounts/rows/organizations.ts';
import { patchedLength } from '#platform/base/byte-patch.ts';
import { iso } from '#platform/base/clock.ts';
import type { RawRow } from '#platform/database/engine/insert-rows.ts';
import type { Trx } from '#platform/database/engine/open.ts';
import { eventRow } from '#platform/database/tables/event-row.ts';
import { type HeldGroup, isInGroup, pauseReason } from '#platform/database/tables/mail-group.ts';
import { deliveries, emails } from '#platform/database/tables/mail-tables.ts';
import type {
  Send,
  SendAnswerRecord,
  SendMessage,
  SendRecipient,
} from '#platform/database/tables/send-record.ts';
import { mailboxText } from '#platform/values/address.ts';

/** The decision about one recipient. */
export type Disposition = 'queued' | 'suppressed' | 'insufficient_credit';

/** The cost of a send, and how much of it was taken from the wallet. */
export interface Paid {
  credits: number;
  fromWallet: number;
}

/** Why an address is suppressed. */
type ReasonOf = (key: SendRecipient['key']) => string | undefined;

export interface AcceptanceRows {
  tables: Record<'emails' | 'deliveries' | 'events' | 'credit_entries' | 'soft_bounces', object[]> &
    Record<'message_bases' | 'messages', RawRow[]>;
  /** Adds an accepted send, with the dispositions in the order of its recipients, and returns its answer. */
  add(send: Send, dispositions: Disposition[], paid: Paid, reasonOf: ReasonOf): SendAnswerRecord;
  /** After `add`, the group of the send of which an auto-pause holds the mail. */
  hold(send: Send, dispositions: Disposition[], org: Pick<Organization, 'heldGroups'>): HeldGroup | undefined;
  /** Holds those deliveries, once they are inserted: few organizations have any, so the rows of all others stay as they are. */
  holdHeld(trx: Trx): Promise<void>;
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

  const held: string[] = [];

  return {
    tables,
    add(send, dispositions, paid, reasonOf) {
      tables.emails.push(emailRow(send, paid));
      const used = new Set<number>();
      for (const [position, recipient] of send.recipients.entries()) {
        const disposition = dispositions[position]!;
        if (disposition === 'queued') used.add(recipient.message);
        const messageId = disposition === 'queued' ? send.messages[recipient.message]!.id : null;
        tables.deliveries.push(deliveryRow(send, recipient, position, disposition, messageId));
        if (disposition === 'insufficient_credit') continue;
        const { orgId, emailId, acceptedAt: at } = send;
        const event = eventOf(send, disposition, () => reasonOf(recipient.key));
        tables.events.push(eventRow({ ...event, orgId, emailId, recipient: recipient.address, at }));
      }
      if (send.base && used.size > 0)
        tables.message_bases.push({ email_id: send.emailId, raw: send.packed! });
      for (const index of used) tables.messages.push(messageRow(send, send.messages[index]!));
      return answerOf(send, dispositions);
    },
    hold(send, dispositions, { heldGroups }) {
      const group = heldGroups?.find((one) => isInGroup(one, send));
      if (!group) return undefined;
      const { orgId, emailId, acceptedAt: at, recipients } = send;
      const data = { reason: pauseReason(group), pauseId: group.pauseId };
      for (const [position, { deliveryId, address: recipient }] of recipients.entries()) {
        if (dispositions[position] !== 'queued') continue;
        held.push(deliveryId);
        tables.events.push(eventRow({ orgId, emailId, type: 'email.held', recipient, at, data }));
      }
      return group;
    },
    async holdHeld(trx) {
      if (held.length === 0) return;
      const state = { status: 'held', due_at: null, lease_owner: null, auto_held: true };
      await trx('deliveries').whereIn('id', held).update(state);
    },
  };
}

function eventOf(
  { trackedLinks, scheduledAt }: Send,
  disposition: Disposition,
  reason: () => string | undefined,
) {
  if (disposition !== 'queued') return { type: `email.${disposition}`, data: { reason: reason() } };
  const links = trackedLinks === null ? {} : { trackedLinks };
  if (scheduledAt === null) return { type: 'email.queued', data: links };
  return { type: 'email.scheduled', data: { scheduledAt: iso(scheduledAt), ...links } };
}

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

function emailRow(send: Send, { credits, fromWallet }: Paid): object {
  const hasNames = send.recipients.some(({ name }) => name !== '');
  return emails.write({
    ...send,
    id: send.emailId,
    recipients: hasNames ? send.recipients.map(mailboxText) : [],
    credits,
    walletCredits: fromWallet,
    createdAt: send.acceptedAt,
    updatedAt: send.acceptedAt,
  });
}

function messageRow({ emailId, base, packed }: Send, { id, bytes }: SendMessage): RawRow {
  return base
    ? { id, email_id: emailId, size: patchedLength(bytes), raw: bytes, is_patch: true }
    : { id, email_id: emailId, size: bytes.length, raw: packed!, is_patch: false };
}

function deliveryRow(
  send: Send,
  recipient: SendRecipient,
  position: number,
  disposition: Disposition,
  messageId: string | null,
): object {
  return deliveries.write({
    id: recipient.deliveryId,
    emailId: send.emailId,
    orgId: send.orgId,
    messageId,
    position,
    kind: recipient.kind,
    recipient: recipient.address,
    domain: recipient.domain,
    ...(disposition === 'queued'
      ? startOf(send, recipient)
      : { status: disposition, dueAt: null, leaseOwner: null }),
    createdAt: send.acceptedAt,
    expiresAt: send.expiresAt,
    hasDeadline: send.hasDeadline,
    updatedAt: send.acceptedAt,
  });
}

/** All cases have the same columns, because many rows share one statement. */
function startOf({ acceptedAt, scheduledAt, lease }: Send, { startState }: SendRecipient) {
  if (startState === 'scheduled')
    return { status: 'scheduled' as const, dueAt: scheduledAt, leaseOwner: null };
  return startState === 'leased'
    ? { status: 'sending' as const, dueAt: lease.until, leaseOwner: lease.node }
    : { status: 'queued' as const, dueAt: acceptedAt, leaseOwner: null };
}
