/** A send as it is committed, and its answer. */
import type { Recipient } from '#platform/values/recipients.ts';
import type { EmailRow } from './mail-tables.ts';

/** The columns of an email that are known only when it is accepted. */
type DecidedColumn = 'id' | 'recipients' | 'credits' | 'walletCredits' | 'createdAt' | 'updatedAt';

export interface Send extends Omit<EmailRow, DecidedColumn | 'stream'> {
  emailId: string;
  /** Null: `transactional` (platform/values/stream.ts). */
  stream?: string | null;
  /**
   * to: the send is refused if all recipients in `to` are suppressed, whoever else it has; any: if all recipients are; none:
   * never, and if all are, it is kept with its events and costs nothing.
   */
  mustReach: 'to' | 'any' | 'none';
  /** The send is refused if the credits do not last for every recipient. */
  mustAffordAll?: boolean | undefined;
  recipients: SendRecipient[];
  messages: SendMessage[];
  /** The bytes that the messages are patches of (platform/base/byte-patch.ts); null if they are not. */
  base: Buffer | null;
  /**
   * The base, or without one the message, as it is stored (platform/values/packed-message.ts); null until the send is composed.
   */
  packed: Buffer | null;
  /** Recipients that its stream may have in a day; null: as many as the organization. */
  streamLimit?: number | null;
  /** How many of the links are tracked; null: all that can be. */
  trackedLinks: number | null;
  idempotency: {
    /** The caller's key, or the hash of the duplicate window. */
    kind: 'key' | 'window';
    key: string;
    requestHash: string;
  };
  acceptedAt: number;
  /** Mail of this server itself: it costs nothing, is not counted, and is sent to whoever it is for. */
  isServer?: boolean | undefined;
  /** One of several sends of a call. */
  isInBatch?: boolean | undefined;
  expiresAt: number;
  /** The sender has set `expiresAt` (`expiresAfter`): no attempt starts at or after it. */
  hasDeadline: boolean;
  /** Owner and end of the leases of deliveries that start leased. */
  lease: { node: string; until: number };
  /** Set if the answer to an earlier try of this commit was lost: the new end of its leases. */
  retryLeaseUntil?: number;
}

export interface SendRecipient extends Recipient {
  deliveryId: string;
  /** Index in `messages`. */
  message: number;
  /** How the delivery starts: leased to this node, which sends it at once; due in its backlog; or scheduled for later. */
  startState: 'leased' | 'due' | 'scheduled';
}

export interface SendMessage {
  id: string;
  /** The whole message; with a base, the patch of it. */
  bytes: Buffer;
}

/** The answer to a send, kept for repeats. */
export interface SendAnswerRecord {
  id: string;
  emailId: string;
  accepted: string[];
  suppressed: string[];
  insufficientCredit: string[];
}
