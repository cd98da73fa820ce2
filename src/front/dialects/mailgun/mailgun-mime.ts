/**
 * Mailgun's POST /messages.mime: a whole message, which is sent as it is, as by SMTP submission: its options, `X-Mailgun-…`, are
 * taken out, its line ends become CRLF, and nothing else is changed. Symfony and Laravel use it.
 */

import { hash } from 'node:crypto';
import { z } from 'zod';
import { warnOfBulk } from '#front/api/send/warning.ts';
import type { DialectCall } from '#front/dialects/dialect.ts';
import { idempotencyKeyOf, idempotencyOfSend, mailbox, tags } from '#front/dialects/dialect-send.ts';
import { streamNamedBy } from '#front/dialects/dialect-streams.ts';
import type { Form } from '#front/dialects/form.ts';
import { formBody, largestBody } from '#front/http/body-limits.ts';
import { checked } from '#front/http/issues.ts';
import { withCrlf } from '#front/submission/send-request.ts';
import type { SendRequest } from '#mail/accept/requested-send.ts';
import { maxHeadLength, readHead } from '#mail/compose/head.ts';
import { Refusal } from '#platform/values/refusal.ts';
import {
  addressesIn,
  completed,
  formOf,
  longestForm,
  maxRecipients,
  optionsIn,
  queued,
  requirePathDomain,
} from './mailgun-fields.ts';
import { optionPrefix } from './mailgun-options.ts';

/** Some clients send the message as a field. */
export const mimeBody = formBody({
  largest: largestBody,
  fields: 4_000,
  files: 10,
  texts: { message: longestForm },
});

const envelope = z.object({ to: z.array(mailbox).min(1).max(maxRecipients) });

export async function sendMime(call: DialectCall) {
  const given = formOf(call);
  const raw = messageIn(given);
  // Anything else that is wrong with it is refused below.
  const { fields, isTooLarge } = readHead(withCrlf(raw.subarray(0, maxHeadLength + 1)));
  const header: [string, string][] = isTooLarge ? [] : fields.map(({ name, value }) => [name, value]);
  const form = completed(given, header);
  if (form.one('recipient-variables'))
    throw new Refusal('BAD_REQUEST', 'recipient-variables: send html or text to /messages instead.');
  const to = checked(envelope, { to: addressesIn(form, 'to') }).to.map(({ address }) => address);
  const submitted = await call.readSubmitted(call.orgId, raw, {
    to,
    requestId: call.context.state.requestId,
    requireTls: false,
    received: '',
    removedPrefix: optionPrefix,
    mayHaveBareLineEnds: true,
  });
  const { tags: own, tracking, scheduledAt, isTest } = optionsIn(form, call.now);
  const key = idempotencyKeyOf(call);
  await requirePathDomain(call, submitted.from);
  const accept = isTest ? call.dryRun : call.accept;
  const stream = submitted.stream ?? (await streamNamedBy(call, form.all('o:tag')));
  const request: SendRequest = {
    ...submitted,
    stream,
    tags: checked(tags, { ...submitted.tags, ...own }),
    tracking,
    scheduledAt: scheduledAt === undefined ? submitted.scheduledAt : Date.parse(scheduledAt),
    mustReach: 'none',
    idempotency: (key === '' && submitted.idempotency) || idempotencyOfSend(key, [to, hash('sha256', raw)]),
    onLacksOneClick: () => warnOfBulk(call.context),
  };
  return queued((await accept(request, call.caller)).answer.id);
}

/** Some clients send it as a field. */
function messageIn(form: Form): Buffer {
  const file = form.files.find(({ field }) => field === 'message')?.content;
  const raw = file ?? Buffer.from(form.one('message') ?? '');
  if (raw.length === 0) throw new Refusal('BAD_REQUEST', 'message: give the message as a file.');
  return raw;
}
