/**
 * Converts a submitted message to a send request. The recipients come from the envelope; fields that must not be sent are
 * removed from the message: Bcc (RFC 5322 section 3.6.3), Return-Path (RFC 5321 section 4.4) and our own fields.
 */
import { createHash } from 'node:crypto';
import type { SendRequest } from '#mail/accept/requested-send.ts';
import { type Field, fieldValue, type Head, readHead } from '#mail/compose/head.ts';
import { lackingField } from '#platform/values/one-click.ts';
import type { Recipient } from '#platform/values/recipients.ts';
import { isTlsNotRequired, tlsRequiredField } from '#platform/values/tls-required.ts';
import { recipientsIn } from './address-fields.ts';
import { readContent } from './message-rules.ts';
import { repaired, writtenId } from './repairs.ts';
import { isSendTime, sendTimesOf } from './send-time-fields.ts';
import { isStream, streamOf } from './stream-field.ts';
import { isTag, tagsOf } from './tag-fields.ts';

const unsent = ['bcc', 'resent-bcc', 'return-path'];

export interface Submitted {
  /** The recipients of the envelope. */
  to: string[];
  requestId: string;
  /** REQUIRETLS was given with MAIL; it overrides the header (RFC 8689 section 5). */
  requireTls: boolean;
  /** See mail/compose/raw-message.ts. Not part of the hash, so that a retry is the same request. */
  received: string;
  /** Fields whose names begin so are not sent. */
  removedPrefix?: string;
  /** A bare CR or LF becomes CRLF. Without it there is none (front/smtp/strict-stream.ts). */
  mayHaveBareLineEnds?: boolean;
}

export function requestOf(
  given: Buffer,
  { to, requestId, requireTls, received, removedPrefix, mayHaveBareLineEnds }: Submitted,
): SendRequest {
  const { raw, head, repairs } = repaired(mayHaveBareLineEnds ? withCrlf(given) : given);
  const { from, replyTo, subject, messageId, hasLongLines } = readContent(raw, head);
  const recipients = recipientsIn(head, to);
  const id = messageId ?? writtenId(fieldValue(readHead(given), 'message-id') ?? '');
  return {
    recipients,
    from,
    subject,
    replyTo,
    attachments: [],
    headers: {},
    tags: tagsOf(head.fields),
    stream: streamOf(head.fields),
    ...sendTimesOf(head.fields),
    tracking: {},
    idempotency: id === null ? null : idempotencyOfMessage(id, recipients, raw, head),
    requestId,
    repaired: [...repairs, ...(hasLongLines ? ['long lines'] : [])].join(', ') || undefined,
    lacking: lackingField((name) => fieldValue(head, name), recipients.length),
    tlsRequired: requireTls || tlsRequiredOf(head),
    rawMessage: { raw: without(raw, head, removedPrefix), messageId, received },
  };
}

function tlsRequiredOf(head: Head): false | undefined {
  return isTlsNotRequired(fieldValue(head, tlsRequiredField) ?? '') ? false : undefined;
}

/** A server on the way, and a client that tries again, may give the same message another time and another way. */
const ofTransport = ['date', 'received'];

/**
 * A repeat is the same message to the same recipients. A client with more recipients than one transaction accepts sends the
 * rest in another one, and some programs give all their messages one Message-ID.
 */
function idempotencyOfMessage(
  messageId: string,
  recipients: Recipient[],
  raw: Buffer,
  head: Head,
): SendRequest['idempotency'] {
  const hash = createHash('sha256');
  hash.update(JSON.stringify([messageId, recipients.map(({ key }) => key).sort()]));
  for (const piece of kept(raw, head, ({ name }) => ofTransport.includes(name))) hash.update(piece);
  const digest = hash.digest('hex');
  return { key: `Message-ID ${digest}`, requestHash: digest };
}

function without(raw: Buffer, head: Head, prefix: string | undefined): Buffer {
  const isRemoved = ({ name }: Field) => prefix !== undefined && name.startsWith(prefix);
  const isUnsent = (field: Field) =>
    unsent.includes(field.name) || isTag(field) || isSendTime(field) || isStream(field) || isRemoved(field);
  return head.fields.some(isUnsent) ? Buffer.concat(kept(raw, head, isUnsent)) : raw;
}

/** The message without some of its fields. */
function kept(raw: Buffer, { fields, end }: Head, isLeftOut: (field: Field) => boolean): Buffer[] {
  const rest = fields.filter((field) => !isLeftOut(field));
  return [...rest.map(({ start, end }) => raw.subarray(start, end)), raw.subarray(end)];
}

/** RFC 5321 section 2.3.8. */
export function withCrlf(raw: Buffer): Buffer {
  const text = raw.toString('latin1');
  return /\r(?!\n)|(?<!\r)\n/.test(text) ? Buffer.from(text.replace(/\r\n?|\n/g, '\r\n'), 'latin1') : raw;
}
