/** Mailgun's POST /messages: one email, or with `recipient-variables` one for each recipient. */
import { setImmediate as yieldToOthers } from 'node:timers/promises';
import type { SendRequest } from '../../accept.ts';
import { formBody, largestBody } from '../../api/body-limits.ts';
import { compareKey } from '../../mail/address.ts';
import type { Recipient } from '../../mail/recipients.ts';
import { Refusal } from '../../mail/refusal.ts';
import { addressTexts } from '../address-texts.ts';
import { CallBudget, weightOf } from '../call-budget.ts';
import type { DialectCall } from '../dialect.ts';
import {
  checkContent,
  type DialectContent,
  type DialectSend,
  idempotencyKeyOf,
  idempotencyOf,
  requestOf,
  type SendTerms,
} from '../dialect-send.ts';
import type { Form } from '../form.ts';
import {
  acceptFor,
  addressesIn,
  completed,
  deliveryTimeIn,
  formOf,
  longestForm,
  maxRecipients,
  queued,
  requirePathDomain,
  tagsIn,
  trackingIn,
} from './mailgun-fields.ts';
import { isOption } from './mailgun-options.ts';
import { fillable, variablesIn } from './recipient-variables.ts';

const terms: SendTerms = {
  maxRecipients,
  names: {
    headers: 'h',
    tags: 'v',
    attachments: 'attachment',
    scheduledAt: 'o:deliverytime',
    replyTo: 'h:Reply-To',
  },
};

/** A field for each of 1,000 recipients, in each of the lists, and the rest. */
export const messageBody = formBody({
  largest: largestBody,
  fields: 4_000,
  files: 1_000,
  texts: { html: longestForm, text: longestForm, 'recipient-variables': longestForm },
});

export async function send(call: DialectCall) {
  const sent = formOf(call);
  const form = completed(sent, sent.under('h:'));
  const variables = variablesIn(form.one('recipient-variables'));
  const given = fieldsOf(form, call.now);
  // The contents with variables are checked for each recipient.
  const common = variables ? { ...given, headers: undefined, tags: undefined } : given;
  const idempotency = idempotencyOf(idempotencyKeyOf(call), [given, form.one('recipient-variables')]);
  const whole = requestOf(call, common, terms, idempotency);
  await requirePathDomain(call, whole.from);
  const accept = acceptFor(call, form);
  if (variables === null) return queued(await accept(whole));
  const { subject, html, text, headers, tags, attachments } = given;
  const content = { subject, html, text, headers, tags } satisfies DialectContent;
  const budget = new CallBudget();
  const weight = weightOf(content);
  budget.take((weight + weightOf(attachments)) * whole.recipients.length);
  const requests = personal(whole, content, variables);
  for (const one of requests()) {
    // The texts that the variables add.
    budget.take(weightOf(contentOf(one)) - weight);
    await yieldToOthers();
  }
  return queued(await acceptAll(accept, requests(), workersFor(whole)));
}

function fieldsOf(form: Form, now: number): DialectSend {
  const headers = form.under('h:');
  const replyTo = headers.find(([name]) => name.toLowerCase() === 'reply-to')?.[1];
  const optional = (list: string[]) => (list.length > 0 ? list : undefined);
  return {
    from: form.one('from'),
    to: optional(addressesIn(form, 'to')),
    cc: optional(addressesIn(form, 'cc')),
    bcc: optional(addressesIn(form, 'bcc')),
    replyTo: replyTo === undefined ? undefined : addressTexts(replyTo),
    subject: form.one('subject'),
    html: form.one('html'),
    text: form.one('text'),
    headers: Object.fromEntries(headers.flatMap(ownHeader)),
    tags: tagsIn(form),
    attachments: attachmentsIn(form),
    tracking: trackingIn(form),
    scheduledAt: deliveryTimeIn(form, now),
  };
}

/** Mailgun writes addresses of its own where a header has these, at which it takes in unsubscribing mail; we have none. */
const unsubscribePlaces = /<%(?:tag_)?unsubscribe_(?:email|url)%>/g;

function ownHeader([name, value]: [string, string]): [string, string][] {
  const lower = name.toLowerCase();
  if (lower === 'reply-to' || isOption(name)) return [];
  if (lower !== 'list-unsubscribe') return [[name, value]];
  const places = value
    .split(/,(?=\s*<)/)
    .filter((place) => place.replace(unsubscribePlaces, '').trim() !== '');
  return places.length === 0 ? [] : [[name, places.map((place) => place.trim()).join(', ')]];
}

function attachmentsIn({ files }: Form) {
  return files
    .filter(({ field }) => field === 'attachment' || field === 'inline')
    .map(({ field, filename, contentType, content }) => ({
      filename: filename || 'attachment',
      content: content.toString('base64'),
      // SDKs that do not know the type say octet-stream, or nothing, which reads as text/plain; the name tells more.
      ...(!isVague(contentType, filename) && { contentType }),
      ...(field === 'inline' && { contentId: filename, disposition: 'inline' }),
    }));
}

function isVague(contentType: string, filename: string): boolean {
  return (
    contentType === 'application/octet-stream' || (contentType === 'text/plain' && filename.includes('.'))
  );
}

/**
 * The emails for the recipients, one at a time: all of them together could need gigabytes. So they are made twice, first
 * to check them all, then to accept them.
 */
function personal(
  whole: SendRequest,
  content: DialectContent,
  variables: NonNullable<ReturnType<typeof variablesIn>>,
): () => Generator<SendRequest> {
  if (whole.recipients.some(({ kind }) => kind !== 'to'))
    throw new Refusal('BAD_REQUEST', 'recipient-variables: such an email cannot have cc or bcc.');
  const fill = fillable(content);
  return function* () {
    for (const recipient of whole.recipients) {
      const { address, key } = recipient;
      const filled = fill(address, variables.get(compareKey(address)) ?? {}) as DialectContent;
      const checked = checkContent(filled, terms.names);
      yield { ...whole, ...checked, recipients: [recipient], idempotency: ofOne(whole.idempotency!, key) };
    }
  };
}

function contentOf({ subject, html, text, headers, tags }: SendRequest): DialectContent {
  return { subject, html, text, headers, tags };
}

/** A repeat with the caller's key sends to those recipients that the first call did not reach. */
function ofOne({ key, requestHash }: NonNullable<SendRequest['idempotency']>, recipient: Recipient['key']) {
  return { key: `${key} ${recipient}`, requestHash };
}

/** Small emails share commits; large ones are composed one after the other, so that their memory is bounded. */
const together = 10;
const large = 256 * 1024;

function workersFor({ attachments, html = '', text = '' }: SendRequest): number {
  const files = Array.isArray(attachments) ? attachments : [];
  const size = files.reduce((sum, { content }) => sum + content.length, html.length + text.length);
  return size > large ? 1 : together;
}

/** Resolves to the Message-ID of the first email. */
async function acceptAll(
  accept: (request: SendRequest) => Promise<string>,
  requests: Generator<SendRequest>,
  workers: number,
): Promise<string> {
  const ids: string[] = [];
  // An error in one of these loops ends the generator, and so the others.
  const work = async () => {
    for (const request of requests) ids.push(await accept(request));
  };
  const ended = await Promise.allSettled(Array.from({ length: workers }, work));
  const failed = ended.find((one) => one.status === 'rejected');
  if (!failed) return ids[0]!;
  const { reason } = failed;
  if (reason instanceof Refusal && ids.length > 0)
    reason.message = `${ids.length} recipients were accepted, the others were not: ${reason.message}`;
  throw reason;
}
