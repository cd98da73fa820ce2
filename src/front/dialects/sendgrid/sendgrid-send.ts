/** SendGrid's mail/send: each personalization is an email of its own. */
import { hash } from 'node:crypto';
import { type DialectCall, type DialectRoute, fileName } from '#front/dialects/dialect.ts';
import { idempotencyKeyOf, requestOf } from '#front/dialects/dialect-send.ts';
import { findStreamByNumber, streamNamedBy } from '#front/dialects/dialect-streams.ts';
import { acceptMade } from '#front/dialects/several-emails.ts';
import { below, jsonBody, largestBody, largestContent } from '#front/http/body-limits.ts';
import { nameIgnored } from '#front/http/ignored.ts';
import { checked } from '#front/http/issues.ts';
import type { SendRequest } from '#mail/accept/requested-send.ts';
import { iso } from '#platform/base/clock.ts';
import { newId } from '#platform/base/id.ts';
import { domainOf, mailboxText } from '#platform/values/address.ts';
import { Refusal } from '#platform/values/refusal.ts';
import { scheduledAtRefusal } from '#platform/values/send-times.ts';
import {
  ignoredIn,
  nameOfType,
  type Person,
  type Personalization,
  type SendgridRequest,
  sendRequest,
} from './sendgrid-request.ts';
import { substituteWith } from './substitutions.ts';

/** Generous: our own rules say more exactly what is wrong. */
const lists = {
  personalizations: 2_000,
  ...below('personalizations.*', {
    to: 2_000,
    cc: 2_000,
    bcc: 2_000,
    headers: 1_000,
    substitutions: 1_000,
    custom_args: 1_000,
  }),
  reply_to_list: 1_000,
  content: 100,
  attachments: 1_000,
  headers: 1_000,
  categories: 1_000,
  custom_args: 1_000,
};
const mailBody = jsonBody({
  largest: largestBody,
  members: 50_000,
  lists,
  texts: { 'content.*.value': largestContent, 'attachments.*.content': largestBody },
});

export const sendgridSendRoutes: DialectRoute[] = [
  { route: 'POST /v3/mail/send', grant: 'email:send', body: mailBody, respond: send },
];

const maxRecipients = 1000;

/** As at SendGrid, an email that reaches nobody is accepted, and its events are `dropped`. */
async function send(call: DialectCall) {
  const request = checked(sendRequest, call.body);
  nameIgnored(call.context, ignoredIn(call.body as Record<string, unknown>));
  const isDryRun = request.mail_settings?.sandbox_mode?.enable === true;
  const keyAt = idempotencyKeys(call);
  const stream = await streamOf(call, request);
  const made = { ...emailOf(call, request, 0, keyAt(0)), stream };
  const first = { ...made, attachments: withInvitation(request, made.attachments) };
  const { attachments } = first;
  const { answer } = await acceptMade(call, {
    count: request.personalizations.length,
    // The attachments are the same in all, and are decoded once.
    at: (index) =>
      index === 0
        ? first
        : { ...emailOf(call, { ...request, attachments: null }, index, keyAt(index)), attachments, stream },
    noun: 'personalization',
    isDryRun,
  });
  call.context.status = isDryRun ? 200 : 202;
  if (!isDryRun) call.context.set('X-Message-Id', answer.emailId);
  return '';
}

/** That of the group, or the first one that a category names; undefined: that of the key. */
async function streamOf(
  call: DialectCall,
  { asm, categories }: SendgridRequest,
): Promise<string | undefined> {
  if (!asm) return streamNamedBy(call, [categories ?? []].flat());
  const stream = await findStreamByNumber(call, asm.group_id);
  if (stream) return stream.name;
  throw refusalAt('asm', 'a group that GET /v3/asm/groups lists');
}

/** Readers offer to accept an invitation among the contents. */
function withInvitation({ content }: SendgridRequest, attachments: SendRequest['attachments']) {
  const part = content.find(({ type }) => nameOfType(type) === 'text/calendar');
  if (!part || typeof attachments === 'function') return attachments;
  const method = /^METHOD:([A-Za-z-]{1,64})\r?$/m.exec(part.value)?.[1];
  const contentType =
    method && !/;\s?method=/i.test(part.type) ? `text/calendar; method=${method}` : part.type;
  const file = { filename: 'invite.ics', content: Buffer.from(part.value), contentType };
  return [...attachments, { ...file, isOnlyAlternative: true }];
}

/** A mail that is nothing but an invitation says what it is about. */
function onlyInvitation({ content, subject }: SendgridRequest): string | undefined {
  return content.every(({ type }) => nameOfType(type) === 'text/calendar')
    ? (subject ?? undefined)
    : undefined;
}

/** Each email has a key of its own, which is that of the call with its number. */
function idempotencyKeys(call: DialectCall) {
  const key = idempotencyKeyOf(call);
  const requestHash = key === '' ? '' : hash('sha256', JSON.stringify(call.body));
  return (index: number) => ({ key: key === '' ? newId() : `${key}/${index}`, requestHash });
}

function emailOf(
  call: DialectCall,
  request: SendgridRequest,
  index: number,
  idempotency: SendRequest['idempotency'],
): SendRequest {
  const one = request.personalizations[index]!;
  const substitute = substituteWith(one.substitutions ?? {});
  const content = (wanted: string) => {
    const part = request.content.find(({ type }) => nameOfType(type) === wanted);
    return part && substitute(part.value);
  };
  const at = `personalizations.${index}`;
  const pathOf = (name: keyof Personalization & keyof SendgridRequest) =>
    one[name] == null ? name : `${at}.${name}`;
  const names = {
    to: `${at}.to`,
    cc: `${at}.cc`,
    bcc: `${at}.bcc`,
    replyTo: request.reply_to ? 'reply_to' : 'reply_to_list',
    subject: pathOf('subject'),
    html: 'content',
    text: 'content',
    headers: pathOf('headers'),
    tags: pathOf('custom_args'),
    scheduledAt: pathOf('send_at'),
    contentId: 'content_id',
    contentType: 'type',
  };
  const replyTo = request.reply_to ? [request.reply_to] : request.reply_to_list;
  const subject = one.subject ?? request.subject;
  const fields = {
    from: mailboxOf(senderOf(request, one, `${at}.from`)),
    to: one.to.map(mailboxOf),
    cc: one.cc?.map(mailboxOf),
    bcc: one.bcc?.map(mailboxOf),
    replyTo: replyTo?.map((given) => substitute(mailboxOf(given))),
    subject: subject == null ? undefined : substitute(subject),
    html: content('text/html'),
    text: content('text/plain') ?? onlyInvitation(request),
    amp: content('text/x-amp-html'),
    headers: mergedHeaders(request.headers, one.headers),
    tags: tagsOf(request, one),
    attachments: request.attachments?.map(attachmentOf),
    tracking: trackingOf(request),
    scheduledAt: timeOf(one.send_at ?? request.send_at, call.now, names.scheduledAt),
  };
  const audience = request.personalizations.length;
  return requestOf(call, fields, { maxRecipients, names, audience }, idempotency);
}

/** Older SDKs put a name with a comma into quotes. */
function mailboxOf({ email: address, name }: Person): string {
  return mailboxText({ name: (name ?? '').replace(/^"(.*)"$/s, '$1'), address });
}

/** All senders have one domain, so that the check of the first email's sender is that of all. */
function senderOf({ from }: SendgridRequest, one: Personalization, field: string): Person {
  if (!one.from || domainOf(one.from.email) === domainOf(from.email)) return one.from ?? from;
  throw refusalAt(field, 'the domain of from');
}

/** Names of headers are alike in any case. */
function mergedHeaders(common: Personalization['headers'], own: Personalization['headers']) {
  const names = new Set(Object.keys(own ?? {}).map((name) => name.toLowerCase()));
  const kept = Object.entries(common ?? {}).filter(([name]) => !names.has(name.toLowerCase()));
  return { ...Object.fromEntries(kept), ...own };
}

/** The tag named `tag` becomes the categories again in SendGrid's webhooks. */
function tagsOf({ categories, custom_args: common }: SendgridRequest, one: Personalization) {
  const tags = Object.fromEntries(
    Object.entries({ ...common, ...one.custom_args }).map(([name, value]) => [
      name,
      typeof value === 'string' ? value : JSON.stringify(value),
    ]),
  );
  const tag = [categories ?? []].flat().join(',');
  if (tag === '') return tags;
  if (tags.tag !== undefined) throw refusalAt('custom_args.tag', 'left out, because categories are given');
  return { ...tags, tag };
}

function attachmentOf(given: NonNullable<SendgridRequest['attachments']>[number]) {
  const { content, filename, type, disposition } = given;
  const contentId = given.content_id ?? given.contentId;
  return {
    content,
    filename: fileName(filename, type),
    ...(type && { contentType: type }),
    ...(disposition && { disposition }),
    ...(contentId && { contentId }),
  };
}

function trackingOf({ tracking_settings: settings }: SendgridRequest) {
  return {
    openTracking: settings?.open_tracking?.enable ?? undefined,
    clickTracking: settings?.click_tracking?.enable ?? undefined,
  };
}

/** Unix seconds. A time that has passed, or passes while the call is handled, is now. */
function timeOf(seconds: number | null | undefined, now: number, field: string): string | undefined {
  const scheduledAt = (seconds ?? 0) * 1000;
  if (scheduledAt <= now + 1000) return undefined;
  if (scheduledAt > 100 * now) throw refusalAt(field, 'a Unix time in seconds, not in milliseconds');
  const expected = scheduledAtRefusal(scheduledAt, now)?.issues[0]?.expected;
  if (expected) throw refusalAt(field, expected);
  return iso(scheduledAt);
}

function refusalAt(field: string, expected: string): Refusal {
  const message = `${field}: must be ${expected}`;
  const issue = { code: 'custom', expected, received: 'another value', path: [field], message };
  return new Refusal('VALIDATION_ERROR', message, { issues: [issue] });
}
