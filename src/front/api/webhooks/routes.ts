/** /api/public/webhooks: endpoints that events are posted to. test-and-replay.ts has the calls that post events. */

import { answer, byId, doneAnswer, type Management, requireFound, resource } from '#front/api/management.ts';
import { noBody } from '#front/http/body-limits.ts';
import { parseWebhookUrl } from '#mail/webhooks/endpoint-url.ts';
import { addWebhook, changeWebhook, rotateSecret } from '#mail/webhooks/endpoints.ts';
import { countMessages } from '#mail/webhooks/rows/webhook-attempts.ts';
import { deleteWebhook, findWebhook, listWebhooks, type Webhook } from '#mail/webhooks/rows/webhooks.ts';
import { isoOrNull } from '#platform/base/clock.ts';
import { Refusal } from '#platform/values/refusal.ts';
import { presentWebhook } from './present-webhook.ts';
import { newWebhook, webhookChange, webhookSchemas } from './schema.ts';

const { NewSecretAnswer, NewWebhookAnswer, WebhookAnswer, WebhooksAnswer } = webhookSchemas;

export const webhooks = resource('Webhooks', byId('webhook', findWebhook));

export const webhookEndpoints = [
  webhooks.collection({
    route: 'GET /webhooks',
    operationId: 'listWebhooks',
    summary: 'List webhooks',
    description: 'All webhooks, without their secrets.',
    response: answer('The webhooks.', WebhooksAnswer),
    respond: async ({ db, orgId }) => ({ webhooks: (await listWebhooks(db, orgId)).map(presentWebhook) }),
  }),
  webhooks.collection({
    route: 'POST /webhooks',
    operationId: 'addWebhook',
    summary: 'Add a webhook',
    description:
      'Posts events to a URL from now on, signed according to Standard Webhooks or in the format of another service. The ' +
      'secret is shown only in this response. An organization can have fifty webhooks.',
    body: newWebhook,
    response: answer('The webhook and its secret.', NewWebhookAnswer),
    errors: { VALIDATION_ERROR: true },
    async respond({ db, orgId, body, seal, allowPrivate, now }) {
      const { events: types, ...given } = body;
      const parsed = parseWebhookUrl(given.url, allowPrivate, given.format);
      if ('problem' in parsed) throw refusedUrl(given.url, parsed.problem);
      const added = await addWebhook(
        db,
        { ...given, orgId, types },
        { seal, allowPrivate, now, requestedBy: 'owner' },
      );
      return { webhook: presentWebhook(added.webhook), secret: added.secret };
    },
  }),
  webhooks.item({
    route: 'GET /webhooks/{id}',
    operationId: 'getWebhook',
    summary: 'Show a webhook',
    description: 'A webhook, and how many events wait for it or were given up.',
    response: answer('The webhook.', WebhookAnswer),
    respond: ({ db, found }) => withCounts(found, db),
  }),
  webhooks.item({
    route: 'PATCH /webhooks/{id}',
    operationId: 'changeWebhook',
    summary: 'Change a webhook',
    description:
      'Sets which events are posted to a webhook, and disables or enables it. Events that happen while it is disabled are ' +
      'not posted, unless you replay them.',
    body: webhookChange,
    response: answer('The changed webhook.', WebhookAnswer),
    errors: { VALIDATION_ERROR: true },
    async respond({ body: { events: types, enabled }, ...call }) {
      const { db, found, orgId } = call;
      await changeWebhook(call, found, { types, enabled });
      return withCounts(requireFound(await findWebhook(db, found.id, orgId), 'webhook'), db);
    },
  }),
  webhooks.item({
    route: 'DELETE /webhooks/{id}',
    body: noBody,
    operationId: 'removeWebhook',
    summary: 'Remove a webhook',
    description: 'Deletes a webhook and the events that wait for it.',
    response: doneAnswer('The webhook is removed.'),
    async respond({ db, found }) {
      await deleteWebhook(db, found.id);
      return {};
    },
  }),
  webhooks.item({
    route: 'POST /webhooks/{id}/rotate',
    body: noBody,
    operationId: 'rotateWebhookSecret',
    summary: "Rotate a webhook's secret",
    description:
      'Creates a new secret. For 24 hours, posts are signed with both secrets. In the formats sendgrid and mailgun, which ' +
      'have one signature, the new secret alone signs from now on.',
    response: answer('The new secret.', NewSecretAnswer),
    async respond({ db, found, seal, now }) {
      const made = requireFound(await rotateSecret(db, found, { seal, now }), 'webhook');
      return { id: found.id, ...made, oldSecretUntil: isoOrNull(made.oldSecretUntil) };
    },
  }),
];

function refusedUrl(url: string, problem: string): Refusal {
  const expected = 'a URL that events can be posted to, such as https://app.example.com/webhooks';
  const received = `string of ${url.length} characters`;
  const issue = { code: 'custom', expected, received, path: ['url'], message: `url: ${problem}` };
  return new Refusal('VALIDATION_ERROR', 'The request is not valid.', { issues: [issue] });
}

async function withCounts(webhook: Webhook, db: Management['db']) {
  return { webhook: presentWebhook(webhook), ...(await countMessages(db, webhook.id)) };
}
