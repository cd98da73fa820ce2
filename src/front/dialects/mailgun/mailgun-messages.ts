/** Mailgun's POST /messages: one email, or with `recipient-variables` one for each recipient. */

import { addressTexts } from '#front/dialects/address-texts.ts';
import { type DialectCall, fileName } from '#front/dialects/dialect.ts';
import {
  checkContent,
  type DialectContent,
  type DialectSend,
  idempotencyKeyOf,
  idempotencyOfSend,
  requestOf,
  type SendTerms,
} from '#front/dialects/dialect-send.ts';
import { streamNamedBy } from '#front/dialects/dialect-streams.ts';
import type { Form } from '#front/dialects/form.ts';
import { acceptMade } from '#front/dialects/several-emails.ts';
import { formBody, largestBody } from '#front/http/body-limits.ts';
import type { SendRequest } from '#mail/accept/requested-send.ts';
import { comparedId } from '#mail/compose/content-ids/content-ids.ts';
import { compareKey } from '#platform/values/address.ts';
import { lackingHeader } from '#platform/values/one-click.ts';
import type { Recipient } from '#platform/values/recipients.ts';
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
import { isOption } from './mailgun-options.ts';
import { fillable, type Variables, variablesIn } from './recipient-variables.ts';

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
  texts: {
    html: longestForm,
    text: longestForm,
    'amp-html': longestForm,
    'recipient-variables': longestForm,
  },
});

export async function send(call: DialectCall) {
  const sent = formOf(call);
  const form = completed(sent, sent.under('h:'));
  const variables = variablesIn(form.one('recipient-variables'));
  const { isTest, ...options } = optionsIn(form, call.now);
  const given = { ...fieldsOf(form), ...options };
  // The contents with variables are checked for each recipient.
  const common = variables ? { ...given, headers: undefined, tags: undefined } : given;
  const idempotency = idempotencyOfSend(idempotencyKeyOf(call), [given, form.one('recipient-variables')]);
  const stream = await streamNamedBy(call, form.all('o:tag'));
  const whole = { ...requestOf(call, common, terms, idempotency), stream };
  await requirePathDomain(call, whole.from);
  if (variables !== null && whole.recipients.some(({ kind }) => kind !== 'to'))
    throw new Refusal('BAD_REQUEST', 'recipient-variables: such an email cannot have cc or bcc.');
  const { subject, html, text, amp, headers, tags } = given;
  const fill = fillable({ subject, html, text, amp, headers, tags } satisfies DialectContent);
  const emailTo = (recipient: Recipient, own: Map<string, Variables>) => {
    const { address, key } = recipient;
    const filled = fill(address, own.get(compareKey(address)) ?? {}) as DialectContent;
    const content = checkContent(filled, terms.names);
    return {
      ...whole,
      ...content,
      lacking: lackingHeader(content.headers ?? {}, whole.recipients.length),
      recipients: [recipient],
      idempotency: ofOne(idempotency, key),
    };
  };
  const { answer } = await acceptMade(call, {
    count: variables === null ? 1 : whole.recipients.length,
    at: (index) => (variables === null ? whole : emailTo(whole.recipients[index]!, variables)),
    noun: 'recipient',
    isDryRun: isTest,
  });
  return queued(answer.id);
}

function fieldsOf(form: Form): Omit<DialectSend, 'tags' | 'tracking' | 'scheduledAt'> {
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
    amp: form.one('amp-html') || undefined,
    headers: Object.fromEntries(headers.flatMap(ownHeader)),
    attachments: attachmentsIn(form),
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

/** Of files with the same name, the first is shown, as at Mailgun; a second Content-ID of that name would mean nothing. */
function attachmentsIn(form: Form) {
  const { files } = form;
  for (const name of ['attachment', 'inline'])
    if (form.one(name))
      throw new Refusal('BAD_REQUEST', `${name}: must be a file: its part of the form needs a filename.`);
  const ids = new Set<string>();
  const isFirst = (filename: string) => ids.size < ids.add(comparedId(filename)).size;
  return files
    .filter(({ field }) => field === 'attachment' || field === 'inline')
    .map(({ field, filename, contentType, content }) => ({
      filename: fileName(filename, contentType),
      content: content.toString('base64'),
      // SDKs that do not know the type say octet-stream, or nothing, which reads as text/plain; the name tells more.
      ...(!isVague(contentType, filename) && { contentType }),
      ...(field === 'inline' && {
        disposition: 'inline',
        ...(isFirst(filename) && { contentId: filename }),
      }),
    }));
}

function isVague(contentType: string, filename: string): boolean {
  return (
    contentType === 'application/octet-stream' || (contentType === 'text/plain' && filename.includes('.'))
  );
}

/** A repeat with the caller's key sends to those recipients that the first call did not reach. */
function ofOne({ key, requestHash }: NonNullable<SendRequest['idempotency']>, recipient: Recipient['key']) {
  return { key: `${key} ${recipient}`, requestHash };
}
