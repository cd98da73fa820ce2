/** /api/public/webhooks: endpoints that are told of events. What is posted to them: test-and-replay.ts. */
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
import {
  type AddManagementRoutes,
  idIn,
  type Management,
  management,
  readJson,
  requireFound,
} from '../management.ts';
import { presentWebhook } from './present-webhook.ts';
import { newWebhook, webhookChange } from './schema.ts';

export const addWebhookRoutes: AddManagementRoutes = (router, inBounds, parts) => {
  const one = '/webhooks/:id';
  router.get(
    '/webhooks',
    inBounds,
    management(parts, async (_, orgId) => ({
      webhooks: (await listWebhooks(parts.db, orgId)).map(presentWebhook),
    })),
  );
  router.post(
    '/webhooks',
    inBounds,
    management(parts, (context, orgId) => add(context, orgId, parts)),
  );
  router.get(
    one,
    inBounds,
    management(parts, async (context, orgId) => told(await webhookIn(context, orgId, parts), parts)),
  );
  router.patch(
    one,
    inBounds,
    management(parts, (context, orgId) => change(context, orgId, parts)),
  );
  router.delete(
    one,
    inBounds,
    management(parts, (context, orgId) => remove(context, orgId, parts)),
  );
  router.post(
    `${one}/rotate`,
    inBounds,
    management(parts, (context, orgId) => rotate(context, orgId, parts)),
  );
};

export async function webhookIn(context: Context, orgId: string, { db }: Management): Promise<Webhook> {
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
  const expected = 'a URL that may be posted to, such as https://app.example.com/webhooks';
  const received = `string of ${url.length} characters`;
  const issue = { code: 'custom', expected, received, path: ['url'], message: `url: ${fault}` };
  return new Refusal('VALIDATION_ERROR', 'The request is not valid.', { issues: [issue] });
}

async function told(webhook: Webhook, { db }: Management): Promise<object> {
  return { webhook: presentWebhook(webhook), ...(await countMessages(db, webhook.id)) };
}

async function change(context: Context, orgId: string, parts: Management): Promise<object> {
  const { db, clock } = parts;
  const { id } = await webhookIn(context, orgId, parts);
  const { events, enabled } = await readJson(context, webhookChange);
  if (events) await setWebhookTypes(db, id, events, clock.now());
  if (enabled === true) await activateWebhook(db, id, clock.now());
  if (enabled === false) await disableWebhook(db, id, disabledByOwner, clock.now());
  return told(await webhookIn(context, orgId, parts), parts);
}

async function remove(context: Context, orgId: string, parts: Management): Promise<object> {
  const { id } = await webhookIn(context, orgId, parts);
  await deleteWebhook(parts.db, id);
  return {};
}

async function rotate(context: Context, orgId: string, parts: Management): Promise<object> {
  const { db, seal, clock } = parts;
  const { id } = await webhookIn(context, orgId, parts);
  const { secret, oldSecretUntil } = requireFound(
    await rotateSecret(db, id, { seal, now: clock.now() }),
    'webhook',
  );
  return { id, secret, oldSecretUntil: iso(oldSecretUntil) };
}
