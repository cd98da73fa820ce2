/**
 * A submitted message as the send that it is: who, what, and the message itself without what must not go out (Bcc,
 * RFC 5322 section 3.6.3; Return-Path, RFC 5321 section 4.4; our own tags). Recipients are the envelope's.
 */
import { createHash } from 'node:crypto';
import type { SendRequest } from '../../accept.ts';
import { recipients } from '../../api/send/schema.ts';
import type { Field } from '../../compose/head.ts';
import { parseMailbox } from '../../mail/address.ts';
import { readContent } from './message-rules.ts';
import { isTag, tagsOf } from './tag-fields.ts';

const unsent = ['bcc', 'resent-bcc', 'return-path'];

export function requestOf(raw: Buffer, to: string[], requestId: string): SendRequest {
  const { head, from, replyTo, subject, messageId } = readContent(raw);
  const unique = recipients(to);
  return {
    to: unique,
    from,
    subject,
    replyTo: replyTo && parseMailbox(replyTo)!.address,
    attachments: [],
    headers: {},
    tags: tagsOf(head.fields),
    tracking: {},
    idempotency: messageId === null ? null : idempotencyOf(messageId, unique, raw),
    requestId,
    rawMessage: { raw: without(raw, head.fields, head.end), messageId },
  };
}

/**
 * One message may come in parts: who has more recipients than a transaction takes sends the others with the same
 * Message-ID. So the recipients belong to the key.
 */
function idempotencyOf(messageId: string, to: SendRequest['to'], raw: Buffer): SendRequest['idempotency'] {
  const hash = createHash('sha256');
  hash.update(JSON.stringify([messageId, to.map(({ key }) => key).sort()]));
  return {
    key: `Message-ID ${hash.digest('hex')}`,
    requestHash: createHash('sha256').update(raw).digest('hex'),
  };
}

function without(raw: Buffer, fields: Field[], end: number): Buffer {
  const isUnsent = (field: Field) => unsent.includes(field.name) || isTag(field);
  if (!fields.some(isUnsent)) return raw;
  const kept = fields.filter((field) => !isUnsent(field)).map(({ start, end }) => raw.subarray(start, end));
  return Buffer.concat([...kept, raw.subarray(end)]);
}
