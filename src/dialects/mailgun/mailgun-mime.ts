/** Mailgun's POST /messages.mime: a whole message, which is sent as it is, as by SMTP submission. Symfony and Laravel use it. */

import { tags } from '../../api/send/schema.ts';
import { parseMailbox } from '../../mail/address.ts';
import { Refusal } from '../../mail/refusal.ts';
import { requestOf } from '../../smtp-in/submission/send-request.ts';
import { check, type DialectCall } from '../dialect.ts';
import { idempotencyOf } from '../dialect-send.ts';
import type { Form } from '../form.ts';
import {
  addressesIn,
  deliveryTimeIn,
  formOf,
  maxRecipients,
  refuseUnknown,
  requirePathDomain,
  switchIn,
  tagsIn,
  trackingIn,
} from './mailgun-fields.ts';
import { queued } from './mailgun-messages.ts';

export async function sendMime(call: DialectCall) {
  const { caller, context, now } = call;
  const form = formOf(call);
  refuseUnknown(form);
  const to = envelopeOf(form);
  const { requestId } = context.state;
  const submitted = requestOf(messageIn(form), { to, requestId, requireTls: false, received: '' });
  const time = deliveryTimeIn(form, now);
  const request = {
    ...submitted,
    tags: check(tags, { ...submitted.tags, ...tagsIn(form) }),
    tracking: trackingIn(form),
    scheduledAt: time === undefined ? submitted.scheduledAt : Date.parse(time),
    mustReach: 'none' as const,
    idempotency: submitted.idempotency ?? idempotencyOf('', null),
  };
  await requirePathDomain(call, request.from);
  const accept = switchIn(form, 'o:testmode') ? call.dryRun : call.accept;
  const { answer } = await accept(request, caller);
  return queued(answer.id);
}

function envelopeOf(form: Form): string[] {
  const list = addressesIn(form, 'to').map((text) => {
    const mailbox = parseMailbox(text);
    if (mailbox) return mailbox.address;
    throw new Refusal('BAD_REQUEST', `to: ${JSON.stringify(text.slice(0, 100))} is not an email address.`);
  });
  if (list.length === 0) throw new Refusal('BAD_REQUEST', 'to: give at least one recipient.');
  if (list.length <= maxRecipients) return list;
  throw new Refusal('BAD_REQUEST', `An email can have at most ${maxRecipients} recipients.`);
}

/** Some clients send it as a field. Line ends must be CRLF (RFC 5321 section 2.3.8), and nothing else is changed. */
function messageIn(form: Form): Buffer {
  const file = form.files.find(({ field }) => field === 'message')?.content;
  const raw = file ?? Buffer.from(form.one('message') ?? '');
  if (raw.length === 0) throw new Refusal('BAD_REQUEST', 'message: give the message as a file.');
  const text = raw.toString('latin1');
  return /\r(?!\n)|(?<!\r)\n/.test(text) ? Buffer.from(text.replace(/\r\n?|\n/g, '\r\n'), 'latin1') : raw;
}
