/** /api/public/webhooks: endpoints that events are posted to. test-and-replay.ts has the calls that post events. */
import type { Context } from 'koa';
import { iso } from '../../base/clock.ts';
import { countMessages } from '../../db/webhooks/webhook-attempts.ts';
import {
  activateWebhook,
  deleteWebhook,
  disableWebhook,
  findWebhook,
  listWebhooks,
  setWebhookTypes,
  type Webhook,
} from '../../db/webhooks/webhooks.ts';
import { Refusal } from '../../mail/refusal.ts';
import { parseWebhookUrl } from '../../webhooks/endpoint-url.ts';
import { addOwnWebhook, disabledByOwner, rotateSecret } from '../../webhooks/endpoints.ts';
import { jsonResponse } from '../endpoint.ts';
import {
  doneContent,
  exampleId,
  exampleTime,
  idIn,
  idInPath,
  invalidBody,
  invalidId,
  invalidMember,
  jsonBody,
  type Management,
  managementEndpoints,
  notFound,
  readJson,
  requireFound,
} from '../management.ts';
import { presentWebhook } from './present-webhook.ts';
import { newWebhook, webhookChange, webhookSchemas } from './schema.ts';

const url = 'https://app.example.com/webhooks';
const events = ['email.bounced', 'email.complained'];
const active = {
  id: exampleId,
  url,
  events,
  status: 'active',
  reason: null,
  failingSince: null,
  pausedUntil: null,
  createdAt: exampleTime,
};
const disabled = { ...active, events: [], status: 'disabled', reason: disabledByOwner };
const secret = 'whsec_dGhpcyBpcyBub3QgYSBzZWNyZXQhIQ==';
const parameters = [idInPath];
const errors = { BAD_REQUEST: invalidId, NOT_FOUND: notFound('webhook') };

export const webhookEndpoints = managementEndpoints('Webhooks', [
  {
    route: 'GET /webhooks',
    operationId: 'listWebhooks',
    summary: 'List webhooks',
    description: 'All webhooks, without their secrets.',
    response: jsonResponse('The webhooks.', webhookSchemas.WebhooksAnswer, 'One webhook', {
      success: true,
      webhooks: [active],
    }),
    respond: async (_, orgId, { db }) => ({ webhooks: (await listWebhooks(db, orgId)).map(presentWebhook) }),
  },
  {
    route: 'POST /webhooks',
    operationId: 'addWebhook',
    summary: 'Add a webhook',
    description:
      'Posts events to a URL from now on, signed according to Standard Webhooks. The secret is shown only in this ' +
      'response. An organization can have fifty webhooks.',
    body: jsonBody(newWebhook, 'For bounces and complaints', { url, events }),
    response: jsonResponse('The webhook and its secret.', webhookSchemas.NewWebhookAnswer, 'Added', {
      success: true,
      webhook: active,
      secret,
    }),
    errors: { VALIDATION_ERROR: invalidMember('url', 'string', 'undefined'), BAD_REQUEST: invalidBody },
    respond: add,
  },
  {
    route: 'GET /webhooks/{id}',
    operationId: 'getWebhook',
    summary: 'Show a webhook',
    description: 'A webhook, and how many events wait for it or were given up.',
    parameters,
    response: jsonResponse('The webhook.', webhookSchemas.WebhookAnswer, 'Everything was posted', {
      success: true,
      webhook: active,
      open: 0,
      failed: 0,
    }),
    errors,
    respond: async (context, orgId, parts) => withCounts(await requireWebhook(context, orgId, parts), parts),
  },
  {
    route: 'PATCH /webhooks/{id}',
    operationId: 'changeWebhook',
    summary: 'Change a webhook',
    description:
      'Sets which events are posted to a webhook, and disables or enables it. Events that happen while it is disabled are ' +
      'not posted, unless you replay them.',
    parameters,
    body: jsonBody(webhookChange, 'All events; disabled', { events: [], enabled: false }),
    response: jsonResponse('The changed webhook.', webhookSchemas.WebhookAnswer, 'Disabled', {
      success: true,
      webhook: disabled,
      open: 0,
      failed: 0,
    }),
    errors: { VALIDATION_ERROR: invalidMember('enabled', 'boolean', 'string'), ...errors },
    respond: change,
  },
  {
    route: 'DELETE /webhooks/{id}',
    operationId: 'removeWebhook',
    summary: 'Remove a webhook',
    description: 'Deletes a webhook and the events that wait for it.',
    parameters,
    response: { description: 'The webhook is removed.', content: doneContent },
    errors,
    respond: remove,
  },
  {
    route: 'POST /webhooks/{id}/rotate',
    operationId: 'rotateWebhookSecret',
    summary: "Rotate a webhook's secret",
    description: 'Creates a new secret. For 24 hours, posts are signed with both secrets.',
    parameters,
    response: jsonResponse('The new secret.', webhookSchemas.NewSecretAnswer, 'Created', {
      success: true,
      id: exampleId,
      secret,
      oldSecretUntil: exampleTime,
    }),
    errors,
    respond: rotate,
  },
]);

export async function requireWebhook(context: Context, orgId: string, { db }: Management): Promise<Webhook> {
  return requireFound(await findWebhook(db, idIn(context), orgId), 'webhook');
}

async function add(context: Context, orgId: string, parts: Management): Promise<object> {
  const { db, seal, allowPrivate, clock } = parts;
  const { url, events: types } = await readJson(context, newWebhook);
  const parsed = parseWebhookUrl(url, allowPrivate);
  if (typeof parsed === 'object') throw refusedUrl(url, parsed.fault);
  const terms = { seal, allowPrivate, now: clock.now() };
  const added = await addOwnWebhook(db, { orgId, url, types }, terms);
  if ('fault' in added) throw new Refusal('BAD_REQUEST', added.fault);
  return { webhook: presentWebhook(added.webhook), secret: added.secret };
}

function refusedUrl(url: string, fault: string): Refusal {
  const expected = 'a URL that events can be posted to, such as https://app.example.com/webhooks';
  const received = `string of ${url.length} characters`;
  const issue = { code: 'custom', expected, received, path: ['url'], message: `url: ${fault}` };
  return new Refusal('VALIDATION_ERROR', 'The request is not valid.', { issues: [issue] });
}

async function withCounts(webhook: Webhook, { db }: Management): Promise<object> {
  return { webhook: presentWebhook(webhook), ...(await countMessages(db, webhook.id)) };
}

async function change(context: Context, orgId: string, parts: Management): Promise<object> {
  const { db, clock } = parts;
  const { id } = await requireWebhook(context, orgId, parts);
  const { events, enabled } = await readJson(context, webhookChange);
  if (events) await setWebhookTypes(db, id, events, clock.now());
  if (enabled === true) await activateWebhook(db, id, clock.now());
  if (enabled === false) await disableWebhook(db, id, disabledByOwner, clock.now());
  return withCounts(await requireWebhook(context, orgId, parts), parts);
}

async function remove(context: Context, orgId: string, parts: Management): Promise<object> {
  const { id } = await requireWebhook(context, orgId, parts);
  await deleteWebhook(parts.db, id);
  return {};
}

async function rotate(context: Context, orgId: string, parts: Management): Promise<object> {
  const { db, seal, clock } = parts;
  const { id } = await requireWebhook(context, orgId, parts);
  const { secret, oldSecretUntil } = requireFound(
    await rotateSecret(db, id, { seal, now: clock.now() }),
    'webhook',
  );
  return { id, secret, oldSecretUntil: iso(oldSecretUntil) };
}
