/** Resend's webhooks: our endpoints whose posts have Resend's format. */
import { z } from 'zod';
import { type DialectCall, type DialectRoute, requireById, requireItem } from '#front/dialects/dialect.ts';
import { noBody, smallJson } from '#front/http/body-limits.ts';
import { checked } from '#front/http/issues.ts';
import { findReceived } from '#mail/received/rows/received-mails.ts';
import { type EventRecord, findEvents } from '#mail/record/rows/read-events.ts';
import { parseWebhookUrl } from '#mail/webhooks/endpoint-url.ts';
import { addWebhook, changeWebhook, rotateSecret } from '#mail/webhooks/endpoints.ts';
import { resend, resendTypes } from '#mail/webhooks/formats/resend-format.ts';
import { resendEvent } from '#mail/webhooks/received/resend-received.ts';
import {
  listWebhookAttempts,
  listWebhookMessages,
  type WebhookMessageRecord,
} from '#mail/webhooks/rows/webhook-attempts.ts';
import { replay } from '#mail/webhooks/rows/webhook-replay-rows.ts';
import { deleteWebhook, findWebhook, listWebhooks, type Webhook } from '#mail/webhooks/rows/webhooks.ts';
import { iso, isoOrNull } from '#platform/base/clock.ts';
import { Refusal } from '#platform/values/refusal.ts';
import { listOf, pageOf } from './resend-lists.ts';

const grant = 'full_access';

export const resendWebhookRoutes: DialectRoute[] = [
  { route: 'POST /webhooks', grant, body: smallJson, respond: add },
  { route: 'GET /webhooks', grant, respond: list },
  {
    route: 'GET /webhooks/:id',
    grant,
    // Our secrets are shown once.
    respond: async (call) => ({ object: 'webhook', ...fields(await find(call)), signing_secret: null }),
  },
  { route: 'PATCH /webhooks/:id', grant, body: smallJson, respond: change },
  { route: 'DELETE /webhooks/:id', grant, body: noBody, respond: remove },
  { route: 'POST /webhooks/:id/signing-secret/rotate', grant, body: noBody, respond: rotate },
  { route: 'GET /webhooks/:id/events', grant, respond: listEvents },
  { route: 'GET /webhooks/:id/events/:event', grant, respond: getEvent },
  { route: 'GET /webhooks/:id/events/:event/attempts', grant, respond: listAttempts },
  { route: 'POST /webhooks/:id/events/:event/replay', grant, body: noBody, respond: replayEvent },
];

const events = z.array(z.string()).max(100);

async function add(call: DialectCall) {
  const { endpoint, events: names } = checked(z.object({ endpoint: z.string(), events }), call.body);
  const { db, seal, allowPrivate } = call;
  const parsed = parseWebhookUrl(endpoint, allowPrivate, 'resend');
  if ('problem' in parsed) throw new Refusal('BAD_REQUEST', `endpoint: ${parsed.problem}`);
  const request = { orgId: call.orgId, url: endpoint, types: ourTypes(names), format: 'resend' } as const;
  const { webhook, secret } = await addWebhook(db, request, {
    seal,
    allowPrivate,
    now: call.now,
    requestedBy: 'owner',
  });
  call.context.status = 201;
  return { object: 'webhook', id: webhook.id, signing_secret: secret };
}

/** Event types of ours; those of Resend that never happen here (`contact.created`) are left out. */
function ourTypes(names: string[]): string[] {
  const types = Object.entries(resendTypes).filter(([, name]) => names.includes(name));
  if (types.length > 0) return types.map(([type]) => type);
  throw new Refusal('BAD_REQUEST', `events: Postern has none of these; it has ${theirTypes([]).join(', ')}.`);
}

/** No types means all. */
function theirTypes(types: readonly string[]): string[] {
  const wanted = Object.entries(resendTypes).filter(([type]) => types.length === 0 || types.includes(type));
  return [...new Set(wanted.map(([, name]) => name))];
}

async function list(call: DialectCall) {
  const webhooks = await listWebhooks(call.db, call.orgId);
  const own = webhooks.filter(({ format }) => format === 'resend');
  return listOf(call, own, fields);
}

function fields({ id, createdAt, status, url, types }: Webhook) {
  return {
    id,
    created_at: iso(createdAt),
    status: status === 'active' ? 'enabled' : 'disabled',
    endpoint: url,
    events: theirTypes(types),
  };
}

async function find({ db, orgId, params }: DialectCall): Promise<Webhook> {
  const webhook = await requireById(params.id!, (id) => findWebhook(db, id, orgId), 'webhook');
  return requireItem(webhook.format === 'resend' ? webhook : null, 'webhook');
}

const changes = z.object({ events: events.optional(), status: z.enum(['enabled', 'disabled']).optional() });

async function change(call: DialectCall) {
  const { events: names, status } = checked(changes, call.body ?? {});
  const webhook = await find(call);
  const types = names && ourTypes(names);
  const enabled = status && status === 'enabled';
  await changeWebhook(call, webhook, { types, enabled });
  return { object: 'webhook', id: webhook.id };
}

async function remove(call: DialectCall) {
  const { id } = await find(call);
  await deleteWebhook(call.db, id);
  return { object: 'webhook', id, deleted: true };
}

async function rotate(call: DialectCall) {
  const { db, seal } = call;
  const webhook = await find(call);
  const rotated = requireItem(await rotateSecret(db, webhook, { seal, now: call.now }), 'webhook');
  return { object: 'webhook', id: webhook.id, signing_secret: rotated.secret };
}

/** The events that were posted to a webhook, or are to be. */
async function listEvents(call: DialectCall) {
  const { id } = await find(call);
  return pageOf(call, (page) => listWebhookMessages(call.db, id, page), eventFields);
}

function eventFields({ id, type, createdAt, status, leaseOwner }: WebhookMessageRecord) {
  const open = leaseOwner === null ? 'pending' : 'attempting';
  const states = { delivered: 'success', failed: 'failed', waiting: open, queued: open };
  return { id, type: resendTypes[type] ?? type, created_at: iso(createdAt), status: states[status] };
}

function findMessage({ db, params }: DialectCall, webhook: Webhook): Promise<WebhookMessageRecord> {
  const find = async (eventId: string) =>
    (await listWebhookMessages(db, webhook.id, { eventId, limit: 1 }))[0] ?? null;
  return requireById(params.event!, find, 'event of this webhook');
}

async function getEvent(call: DialectCall) {
  const message = await findMessage(call, await find(call));
  const [event] = await findEvents(call.db, [message.id]);
  return {
    object: 'webhook_event',
    ...eventFields(message),
    next_attempt_at: isoOrNull(message.leaseOwner === null ? message.dueAt : null),
    // Events are deleted after their retention.
    payload: event ? await payloadOf(call, event) : null,
  };
}

async function payloadOf({ db, orgId }: DialectCall, event: EventRecord) {
  if (event.type !== 'email.received') return JSON.parse(resend.write(event, { secrets: [], timestamp: 0 }));
  const mail = await findReceived(db, orgId, String(event.data.receivedId));
  return mail && resendEvent(mail, null);
}

async function listAttempts(call: DialectCall) {
  const webhook = await find(call);
  const { id: eventId } = await findMessage(call, webhook);
  return pageOf(
    call,
    (page) => listWebhookAttempts(call.db, webhook.id, { ...page, eventId }),
    ({ id, status, answer, error, startedAt }) => ({
      id,
      http_status_code: status ?? 0,
      response: answer ?? error ?? '',
      sent_at: iso(startedAt),
    }),
  );
}

async function replayEvent(call: DialectCall) {
  const webhook = await find(call);
  const { id } = await findMessage(call, webhook);
  await replay(call.db, webhook, { eventId: id }, call.now);
  call.eventSignal.notify();
  return { object: 'webhook_event', id };
}
