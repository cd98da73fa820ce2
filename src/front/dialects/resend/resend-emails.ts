/** Resend's emails: send, schedule, look up and list. */
import { z } from 'zod';
import { requireAllowedDomain, requireSender } from '#accounts/sender.ts';
import {
  type DialectCall,
  type DialectRoute,
  fileName,
  requireById,
  requireItem,
  scalarText,
} from '#front/dialects/dialect.ts';
import {
  type DialectSend,
  idempotencyKeyOf,
  idempotencyOfSend,
  requestOf,
  requestsOf,
  type SendTerms,
} from '#front/dialects/dialect-send.ts';
import { messageOf } from '#front/dialects/refusals.ts';
import { below, jsonBody, largestBody, largestContent, noBody, smallJson } from '#front/http/body-limits.ts';
import { checked } from '#front/http/issues.ts';
import { reschedule } from '#mail/queue/rows/scheduled-mail.ts';
import { cancelEmail } from '#mail/record/rows/cancel-email.ts';
import { type EmailRecord, findEmail } from '#mail/record/rows/emails.ts';
import { type EmailSummary, searchEmails } from '#mail/record/rows/search-emails.ts';
import { iso, isoOrNull } from '#platform/base/clock.ts';
import type { RecipientKind } from '#platform/values/glossary.ts';
import { readTime, timeForm } from '#platform/values/read-time.ts';
import { Refusal } from '#platform/values/refusal.ts';
import { scheduledAtRefusal } from '#platform/values/send-times.ts';
import { type EmailStatus, statusOf } from '#platform/values/states.ts';
import { pageOf } from './resend-lists.ts';

/** Generous: our own rules say more exactly what is wrong. */
const lists = {
  to: 2_000,
  cc: 2_000,
  bcc: 2_000,
  reply_to: 1_000,
  headers: 1_000,
  tags: 1_000,
  attachments: 1_000,
};
const texts = { html: largestContent, text: largestContent, 'attachments.*.content': largestBody };
/** SDKs send files as the bytes themselves, or as the JSON of a Buffer of Node. */
const bytes = ['attachments.*.content', 'attachments.*.content.data'];
const emailBody = jsonBody({ largest: largestBody, members: 50_000, lists, texts, bytes });
const batchBody = jsonBody({
  largest: largestBody,
  members: 50_000,
  lists: { ...below('*', lists), '': 1_000 },
  texts: below('*', texts),
  bytes: bytes.map((path) => `*.${path}`),
});

export const resendEmailRoutes: DialectRoute[] = [
  { route: 'POST /emails', grant: 'email:send', body: emailBody, respond: send },
  { route: 'POST /emails/batch', grant: 'email:send', body: batchBody, respond: sendBatch },
  { route: 'PATCH /emails/:id', grant: 'email:send', body: smallJson, respond: move },
  { route: 'POST /emails/:id/cancel', grant: 'email:send', body: noBody, respond: cancel },
  { route: 'GET /emails', grant: 'email:read', respond: listEmails },
  {
    route: 'GET /emails/:id',
    grant: 'email:read',
    respond: async (call) => present(await requireEmail(call)),
  },
];

const terms: SendTerms = {
  maxRecipients: 50,
  names: {
    replyTo: 'reply_to',
    scheduledAt: 'scheduled_at',
    contentId: 'content_id',
    contentType: 'content_type',
    url: 'path',
  },
};

/** Suppressed recipients get no mail and an event, as Resend's do. */
async function send(call: DialectCall) {
  const request = requestFrom(call, call.body, idempotencyOfSend(idempotencyKeyOf(call), call.body));
  const { answer } = await call.accept(request, call.caller);
  return { id: answer.emailId };
}

/** The idempotency key is kept with the body as it came: `in 5 min` is another time in each repeat. */
function requestFrom(call: DialectCall, body: unknown, idempotency: ReturnType<typeof idempotencyOfSend>) {
  const given = checked(email, body);
  return {
    ...requestOf(call, fieldsOf(call, given), terms, idempotency),
    stream: given.topic_id || undefined,
  };
}

const batch = z.array(z.unknown()).min(1).max(100);

/** Strict: all emails are accepted, or none. Permissive: those that are valid. */
async function sendBatch(call: DialectCall) {
  const mode = call.context.get('x-batch-validation') || 'strict';
  if (mode !== 'strict' && mode !== 'permissive')
    throw new Refusal('BAD_REQUEST', 'x-batch-validation: must be strict or permissive.');
  const emails = checked(batch, call.body);
  const { key, requestHash } = idempotencyOfSend(idempotencyKeyOf(call), emails);
  const results = await call.acceptAll({
    requests: requestsOf(emails, (one, index) =>
      requestFrom(call, one, { key: `${key}:${index}`, requestHash }),
    ),
    count: emails.length,
    isAtomic: mode === 'strict',
  });
  const data = results.flatMap((one) => (one instanceof Refusal ? [] : [{ id: one.answer.emailId }]));
  if (mode === 'strict') return { data };
  const errors = results.flatMap((one, index) =>
    one instanceof Refusal ? [{ index, message: messageOf(one, results.length) }] : [],
  );
  return { data, errors };
}

const missing = (what: string, instead: string) =>
  z.union([z.null(), z.literal('')], { error: `Postern has no ${what}: ${instead}` }).optional();

const maxTags = 75;
/** Symfony's are `{"X-Tag": "welcome"}`, one or several. */
const tag = z.union([z.object({ name: scalarText, value: scalarText }), z.record(z.string(), scalarText)]);

/** The members that our own rules do not check; those say what is wrong in the others. */
const email = z.looseObject({
  template: missing('templates', 'send html or text'),
  // A topic is a stream of ours, by its name.
  topic_id: scalarText.nullish(),
  tags: z.union([z.array(tag).max(maxTags), z.record(z.string(), scalarText)]).nullish(),
  attachments: z.array(z.record(z.string(), z.unknown())).nullish(),
  headers: z.record(z.string(), z.unknown()).nullish(),
});

function fieldsOf({ now }: DialectCall, body: z.output<typeof email>): DialectSend {
  const { tags, attachments } = body;
  const scheduled = body.scheduled_at ?? body.scheduledAt;
  return {
    from: body.from,
    to: listed(body.to),
    cc: listed(body.cc),
    bcc: listed(body.bcc),
    // Calls without an SDK are written after the examples for Node.
    replyTo: listed(body.reply_to ?? body.replyTo),
    subject: body.subject,
    html: body.html ?? undefined,
    text: body.text ?? undefined,
    headers: headersOf(body.headers ?? {}),
    tags: Array.isArray(tags) ? tagsIn(tags) : (tags ?? undefined),
    attachments: attachments?.map(attachmentOf),
    tracking: undefined,
    scheduledAt: typeof scheduled === 'string' ? timeOf(scheduled, now) : (scheduled ?? undefined),
  };
}

/** The values of a name that is given several times are one, with commas, as categories of other services are. */
function tagsIn(list: Record<string, string>[]): Record<string, string> {
  const pairs = list.flatMap((one) =>
    'name' in one && 'value' in one ? [[one.name!, one.value!] as const] : Object.entries(one),
  );
  const byName = Map.groupBy(pairs, ([name]) => name);
  return Object.fromEntries([...byName].map(([name, all]) => [name, all.map(([, value]) => value).join()]));
}

/** Null is left out: some SDKs write it for what was not given. */
function listed(value: unknown): unknown {
  return typeof value === 'string' ? [value] : (value ?? undefined);
}

/** Anymail gives some headers as lists. */
function headersOf(headers: Record<string, unknown>): Record<string, unknown> {
  const joined = (value: unknown) => (Array.isArray(value) ? value.join(', ') : value);
  return Object.fromEntries(Object.entries(headers).map(([name, value]) => [name, joined(value)]));
}

function attachmentOf(given: Record<string, unknown>) {
  const { filename, content, path: url } = given;
  const type = given.content_type || given.contentType;
  const id = given.content_id || given.contentId || given.inline_content_id;
  return {
    filename: fileName(filename, type),
    ...(content != null && (content !== '' || !url) && { content: bytesIn(content) }),
    ...(url ? { url } : {}),
    ...(type ? { contentType: type } : {}),
    ...(id ? { contentId: id } : {}),
  };
}

/** The SDKs for Python, Go and Ruby send a list of bytes, old ones for Node the JSON of a Buffer. Ours is base64. */
function bytesIn(content: unknown): unknown {
  const list = Array.isArray(content) ? content : (content as { data?: unknown }).data;
  return Array.isArray(list) && list.every(isByte) ? Buffer.from(list).toString('base64') : content;
}

function isByte(value: unknown): boolean {
  return Number.isInteger(value) && (value as number) >= 0 && (value as number) <= 255;
}

const units: Record<string, number> = {
  sec: 1000,
  min: 60_000,
  hour: 3_600_000,
  day: 86_400_000,
  week: 604_800_000,
};

/** Resend reads words, too; of those, "in 5 min" and the like. */
function timeOf(text: string, now: number): string {
  const [, count, unit] = /^in (an?|\d{1,7}) (sec|min|hour|day|week)(?:ond|ute)?s?$/i.exec(text.trim()) ?? [];
  if (unit) return iso(now + (/\d/.test(count!) ? Number(count) : 1) * units[unit.toLowerCase()]!);
  const at = readTime(text);
  if (at !== null) return iso(at);
  const span = 'a span such as "in 5 min", "in 2 hours" or "in 1 day"';
  throw new Refusal('VALIDATION_ERROR', `scheduled_at: must be ${timeForm}, or ${span}.`);
}

async function move(call: DialectCall) {
  const email = await ownEmail(call);
  const { scheduled_at: text } = checked(z.object({ scheduled_at: z.string() }), call.body);
  const at = Date.parse(timeOf(text, call.now));
  const expected = scheduledAtRefusal(at, call.now)?.issues[0]?.expected;
  if (expected) throw new Refusal('VALIDATION_ERROR', `scheduled_at: must be ${expected}`);
  const { id: emailId, orgId } = email;
  if ((await reschedule(call.db, { emailId, orgId, at, now: call.now })) === 'rescheduled')
    return { object: 'email', id: email.id };
  throw new Refusal(
    'VALIDATION_ERROR',
    'Email is not scheduled, or its time has come: it cannot be moved any more.',
  );
}

/** A repeat has the answer of the first call. */
async function cancel(call: DialectCall) {
  const email = await ownEmail(call);
  const order = { reason: 'canceled through the API', bySender: true, now: call.now };
  const { canceled } = requireItem(await cancelEmail(call.db, email, order), 'email');
  if (canceled.length === 0)
    throw new Refusal(
      'VALIDATION_ERROR',
      'Email is not scheduled, or it has been sent: nothing of it waits.',
    );
  call.eventSignal.notify();
  return { object: 'email', id: email.id };
}

/** The key may send from the email's domain. */
async function ownEmail(call: DialectCall): Promise<EmailRecord> {
  const email = await requireEmail(call);
  requireAllowedDomain(requireSender(email.from), call.caller);
  return email;
}

export function requireEmail({ db, orgId, caller, params }: DialectCall): Promise<EmailRecord> {
  return requireById(params.id!, (id) => findEmail(db, id, orgId, caller), 'email');
}

async function listEmails(call: DialectCall) {
  const { db, orgId, caller } = call;
  return pageOf(
    call,
    async ({ limit, after, before }, onCut) => {
      const edge = { ...(after !== undefined && { after }), ...(before !== undefined && { before }) };
      const { emails, next } = await searchEmails(db, {
        orgId,
        onlyTest: caller.isTest,
        tags: {},
        limit,
        ...edge,
      });
      if (next !== null) onCut();
      return emails;
    },
    presentSummary,
  );
}

function presentSummary(email: EmailSummary) {
  return { ...fieldsIn(email), ...listsOf(email.recipients), last_event: lastEventOf(email.status) };
}

/** The members that a list shows, too. */
function fieldsIn(email: Omit<EmailSummary, 'recipients' | 'status'>) {
  return {
    id: email.id,
    message_id: `<${email.messageId}>`,
    from: email.from,
    created_at: iso(email.createdAt),
    subject: email.subject,
    reply_to: email.replyTo === null ? null : email.replyTo.split(', '),
    scheduled_at: isoOrNull(email.scheduledAt),
    topic_id: email.stream,
  };
}

/** The bodies are not kept in parts, so `html` and `text` are null. */
function present(email: EmailRecord) {
  const { tags } = email;
  return {
    object: 'email',
    ...fieldsIn(email),
    ...listsOf(email.deliveries.map(({ kind, recipient: address }) => ({ kind, address }))),
    last_event: lastEvent(email),
    html: null,
    text: null,
    tags: Object.entries(tags).map(([name, value]) => ({ name, value })),
  };
}

function listsOf(recipients: { kind: RecipientKind; address: string }[]) {
  const of = (wanted: RecipientKind) =>
    recipients.filter(({ kind }) => kind === wanted).map(({ address }) => address);
  const orNull = (list: string[]) => (list.length > 0 ? list : null);
  return { to: of('to'), cc: orNull(of('cc')), bcc: orNull(of('bcc')) };
}

function lastEvent({ deliveries }: EmailRecord): string {
  if (deliveries.some(({ clicks }) => clicks.count > 0)) return 'clicked';
  if (deliveries.some(({ opens }) => opens.count > 0)) return 'opened';
  return lastEventOf(statusOf(deliveries.map(({ status }) => status)));
}

const lastEvents: Partial<Record<EmailStatus, string>> = {
  scheduled: 'scheduled',
  deferred: 'delivery_delayed',
  delivered: 'delivered',
  partially_delivered: 'delivered',
  bounced: 'bounced',
  complained: 'complained',
  expired: 'failed',
  failed: 'failed',
  canceled: 'canceled',
  suppressed: 'suppressed',
  insufficient_credit: 'failed',
};

function lastEventOf(status: EmailStatus): string {
  return lastEvents[status] ?? 'sent';
}
