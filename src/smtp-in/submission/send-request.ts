/**
 * Converts a submitted message to a send request. The recipients come from the envelope; fields that must not be sent are
 * removed from the message: Bcc (RFC 5322 section 3.6.3), Return-Path (RFC 5321 section 4.4) and our own fields.
 */
import { createHash } from 'node:crypto';
import type { SendRequest } from '../../accept.ts';
import { type Field, fieldValue, type Head } from '../../compose/head.ts';
import type { Recipient } from '../../mail/recipients.ts';
import { isTlsNotRequired, tlsRequiredField } from '../../mail/tls-required.ts';
import { recipientsIn } from './address-fields.ts';
import { readContent } from './message-rules.ts';
import { isSendTime, sendTimesOf } from './send-time-fields.ts';
import { isTag, tagsOf } from './tag-fields.ts';

const unsent = ['bcc', 'resent-bcc', 'return-path'];

interface Submitted {
  /** The recipients of the envelope. */
  to: string[];
  requestId: string;
  /** REQUIRETLS was given with MAIL; it overrides the header (RFC 8689 section 5). */
  requireTls: boolean;
  /** See compose/raw-message.ts. Not part of the hash, so that a retry is the same request. */
  received: string;
  /** Other fields that are not sent. */
  isRemoved?: (field: Field) => boolean;
}

export function requestOf(
  raw: Buffer,
  { to, requestId, requireTls, received, isRemoved }: Submitted,
): SendRequest {
  const { head, from, replyTo, subject, messageId } = readContent(raw);
  const recipients = recipientsIn(head, to);
  return {
    recipients,
    from,
    subject,
    replyTo,
    attachments: [],
    headers: {},
    tags: tagsOf(head.fields),
    ...sendTimesOf(head.fields),
    tracking: {},
    idempotency: messageId === null ? null : idempotencyOf(messageId, recipients, raw),
    requestId,
    tlsRequired: requireTls || tlsRequiredOf(head),
    rawMessage: { raw: without(raw, head, isRemoved), messageId, received },
  };
}

function tlsRequiredOf(head: Head): false | undefined {
  return isTlsNotRequired(fieldValue(head, tlsRequiredField) ?? '') ? false : undefined;
}

/**
 * The recipients are part of the key: a client with more recipients than one transaction accepts sends the rest in another
 * one, with the same Message-ID.
 */
function idempotencyOf(messageId: string, recipients: Recipient[], raw: Buffer): SendRequest['idempotency'] {
  const hash = createHash('sha256');
  hash.update(JSON.stringify([messageId, recipients.map(({ key }) => key).sort()]));
  return {
    key: `Message-ID ${hash.digest('hex')}`,
    requestHash: createHash('sha256').update(raw).digest('hex'),
  };
}

function without(raw: Buffer, { fields, end }: Head, isRemoved = (_: Field) => false): Buffer {
  const isUnsent = (field: Field) =>
    unsent.includes(field.name) || isTag(field) || isSendTime(field) || isRemoved(field);
  if (!fields.some(isUnsent)) return raw;
  const kept = fields.filter((field) => !isUnsent(field)).map(({ start, end }) => raw.subarray(start, end));
  return Buffer.concat([...kept, raw.subarray(end)]);
}
