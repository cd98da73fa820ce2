/** Resend's emails: send, schedule, look up and list. */
import { z } from 'zod';
import { allowedDomains } from '../../accounts/api-keys.ts';
import { uuidIn } from '../../api/query.ts';
import { scheduledAt } from '../../api/send/schema.ts';
import { iso, isoOrNull } from '../../base/clock.ts';
import type { RecipientKind } from '../../glossary.ts';
import { parseMailbox } from '../../mail/address.ts';
import { Refusal } from '../../mail/refusal.ts';
import { sendTimesFault } from '../../mail/send-times.ts';
import { type EmailStatus, statusOf } from '../../record/states.ts';
import { check, type DialectCall, type DialectRoute, requireItem } from '../dialect.ts';
import { type DialectSend, type SendTerms, sendAs } from '../dialect-send.ts';
import type { StoredEmail } from '../dialect-store.ts';
import { listQuery } from './resend-lists.ts';

export const resendEmailRoutes: DialectRoute[] = [
  { route: 'POST /emails', grant: 'email:send', hasBody: true, respond: send },
  { route: 'PATCH /emails/:id', grant: 'email:send', hasBody: true, respond: move },
  { route: 'POST /emails/:id/cancel', grant: 'email:send', respond: cancel },
  { route: 'GET /emails', grant: 'email:read', respond: listEmails },
  {
    route: 'GET /emails/:id',
    grant: 'email:read',
    respond: async (call) => present(await findEmail(call)),
  },
];

const terms: SendTerms = {
  maxRecipients: 50,
  names: { replyTo: 'reply_to', scheduledAt: 'scheduled_at' },
};

/** Suppressed recipients get no mail and an event, as Resend's do; if all are, Resend accepts the call and we refuse it. */
async function send(call: DialectCall) {
  const { answer } = await sendAs(call, fieldsOf(call, check(request, call.body)), terms);
  return { id: answer.emailId };
}

/** What our own rules do not check: they say what is wrong in the other members. */
const request = z.object({
  template: z.null({ error: 'Postern has no templates: send html or text' }).optional(),
  tags: z
    .union([z.array(z.object({ name: z.string(), value: z.string() })), z.record(z.string(), z.string())])
    .optional(),
  attachments: z.array(z.record(z.string(), z.unknown())).optional(),
  headers: z.record(z.string(), z.unknown()).optional(),
  to: z.unknown().optional(),
  cc: z.unknown().optional(),
  bcc: z.unknown().optional(),
  reply_to: z.unknown().optional(),
  from: z.unknown().optional(),
  subject: z.unknown().optional(),
  html: z.unknown().optional(),
  text: z.unknown().optional(),
  scheduled_at: z.unknown().optional(),
});

function fieldsOf({ now }: DialectCall, body: z.output<typeof request>): DialectSend {
  const { tags, headers, attachments } = body;
  return {
    from: body.from,
    to: listed(body.to),
    cc: listed(body.cc),
    bcc: listed(body.bcc),
    replyTo: listed(body.reply_to),
    subject: body.subject,
    html: body.html ?? undefined,
    text: body.text ?? undefined,
    headers:
      headers && Object.fromEntries(Object.entries(headers).map(([name, value]) => [name, joined(value)])),
    tags: Array.isArray(tags) ? Object.fromEntries(tags.map(({ name, value }) => [name, value])) : tags,
    attachments: attachments?.map(attachmentOf),
    tracking: undefined,
    scheduledAt: typeof body.scheduled_at === 'string' ? timeOf(body.scheduled_at, now) : body.scheduled_at,
  };
}

/** Null is left out: some SDKs write it for what was not given. */
function listed(value: unknown): unknown {
  return typeof value === 'string' ? [value] : (value ?? undefined);
}

/** Anymail gives some headers as lists. */
function joined(value: unknown): unknown {
  return Array.isArray(value) ? value.join(', ') : value;
}

function attachmentOf(given: Record<string, unknown>) {
  const { filename, content, path: url, content_type: type, content_id: id } = given;
  return {
    filename: typeof filename === 'string' && filename !== '' ? filename : 'attachment',
    ...(content !== undefined && { content: bytesIn(content) }),
    ...(typeof url === 'string' && { url }),
    ...(typeof type === 'string' && { contentType: type }),
    ...(typeof id === 'string' && { contentId: id }),
  };
}

/** Node's JSON of a Buffer becomes base64. */
function bytesIn(content: unknown): unknown {
  const { type, data } = (content ?? {}) as { type?: unknown; data?: unknown };
  return type === 'Buffer' && Array.isArray(data) ? Buffer.from(data).toString('base64') : content;
}

const units: Record<string, number> = { min: 60_000, minute: 60_000, hour: 3_600_000, day: 86_400_000 };

/** Resend reads words, too; of those, "in 5 min" and the like. */
function timeOf(text: string, now: number): string {
  const [, count, unit] = /^in (\d{1,5}) (min|minute|hour|day)s?$/i.exec(text.trim()) ?? [];
  return unit ? iso(now + Number(count) * units[unit.toLowerCase()]!) : text;
}

async function move(call: DialectCall) {
  const email = await ownEmail(call);
  const { scheduled_at: text } = check(z.object({ scheduled_at: z.string() }), call.body);
  const { scheduled_at: at } = check(z.object({ scheduled_at: scheduledAt }), {
    scheduled_at: timeOf(text, call.now),
  });
  const fault = sendTimesFault({ scheduledAt: at }, call.now, 0);
  if (fault) throw fault;
  if (await call.store.moveEmail(email, at, call.now)) return { object: 'email', id: email.id };
  throw new Refusal(
    'BAD_REQUEST',
    'The email is not scheduled, or its time has come: it cannot be moved any more.',
  );
}

async function cancel(call: DialectCall) {
  const email = await ownEmail(call);
  if (!(await call.store.cancelEmail(email, call.now)))
    throw new Refusal('NOT_FOUND', 'There is no such email.');
  call.management.eventSignal.notify();
  return { object: 'email', id: email.id };
}

/** The key may send from the email's domain. */
async function ownEmail(call: DialectCall): Promise<StoredEmail> {
  const email = await findEmail(call);
  const allowed = allowedDomains(call.caller);
  if (allowed.length === 0 || allowed.includes(parseMailbox(email.from)?.domain ?? '')) return email;
  throw new Refusal('DOMAIN_NOT_ALLOWED', `This API key can only send from ${allowed.join(', ')}.`);
}

async function findEmail({ store, orgId, params }: DialectCall): Promise<StoredEmail> {
  const id = uuidIn(params.id!);
  return requireItem(id === null ? null : await store.findEmail(orgId, id), 'email');
}

async function listEmails(call: DialectCall) {
  const { limit, after } = listQuery(call);
  const { emails, next } = await call.store.searchEmails({
    orgId: call.orgId,
    tags: {},
    limit,
    ...(after !== undefined && { after }),
  });
  const data = emails.map(({ id, messageId, recipients, from, subject, createdAt, status }) => ({
    id,
    message_id: `<${messageId}>`,
    ...listsOf(recipients),
    from,
    created_at: iso(createdAt),
    subject,
    reply_to: null,
    last_event: lastEventOf(status),
    scheduled_at: null,
  }));
  return { object: 'list', has_more: next !== null, data };
}

/** The bodies are not kept in parts, so `html` and `text` are null. */
function present(email: StoredEmail) {
  const { tags } = email;
  return {
    object: 'email',
    id: email.id,
    message_id: `<${email.messageId}>`,
    ...listsOf(email.deliveries.map(({ kind, recipient: address }) => ({ kind, address }))),
    from: email.from,
    created_at: iso(email.createdAt),
    subject: email.subject,
    reply_to: email.replyTo === null ? null : email.replyTo.split(', '),
    last_event: lastEvent(email),
    html: null,
    text: null,
    scheduled_at: isoOrNull(email.scheduledAt),
    topic_id: null,
    tags: Object.entries(tags).map(([name, value]) => ({ name, value })),
  };
}

function listsOf(recipients: { kind: RecipientKind; address: string }[]) {
  const of = (wanted: RecipientKind) =>
    recipients.filter(({ kind }) => kind === wanted).map(({ address }) => address);
  const orNull = (list: string[]) => (list.length > 0 ? list : null);
  return { to: of('to'), cc: orNull(of('cc')), bcc: orNull(of('bcc')) };
}

function lastEvent({ deliveries }: StoredEmail): string {
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
