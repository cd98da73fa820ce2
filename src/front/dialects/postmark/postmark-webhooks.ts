/** Postmark's webhooks: our endpoints whose posts have Postmark's format. */
import { z } from 'zod';
import type { DialectCall, DialectRoute } from '#front/dialects/dialect.ts';
import { noBody, smallJson } from '#front/http/body-limits.ts';
import { checked } from '#front/http/issues.ts';
import { parseWebhookUrl } from '#mail/webhooks/endpoint-url.ts';
import { addWebhook, changeWebhook } from '#mail/webhooks/endpoints.ts';
import { deleteWebhook, listWebhooks, type Webhook } from '#mail/webhooks/rows/webhooks.ts';
import { Refusal } from '#platform/values/refusal.ts';
import { postmarkStreamOf } from '#platform/values/stream.ts';
import { findByNumber, numberOf } from './postmark-ids.ts';
import { inAnyCase, queryIn } from './postmark-query.ts';
import { streamOf } from './postmark-stream.ts';

const grant = 'full_access';

export const postmarkWebhookRoutes: DialectRoute[] = [
  { route: 'GET /webhooks', grant, respond: list },
  { route: 'POST /webhooks', grant, body: smallJson, respond: add },
  { route: 'GET /webhooks/:id', grant, respond: async (call) => present(await find(call)) },
  { route: 'PUT /webhooks/:id', grant, body: smallJson, respond: change },
  { route: 'DELETE /webhooks/:id', grant, body: noBody, respond: remove },
];

/** Our event types by Postmark's triggers. */
const typesOf = {
  Open: ['email.opened'],
  Click: ['email.clicked'],
  Delivery: ['email.delivered'],
  Bounce: ['email.bounced', 'email.expired'],
  SpamComplaint: ['email.complained'],
  SubscriptionChange: ['suppression.added', 'suppression.removed'],
};

type Trigger = keyof typeof typesOf;

const triggers = Object.keys(typesOf) as Trigger[];

async function list(call: DialectCall) {
  await streamOf(call, queryIn(call.context, ['messagestream']).messagestream);
  return { Webhooks: (await own(call)).map(present) };
}

async function own({ db, orgId }: DialectCall): Promise<Webhook[]> {
  return (await listWebhooks(db, orgId)).filter(({ format }) => format === 'postmark');
}

async function find(call: DialectCall): Promise<Webhook> {
  return findByNumber(await own(call), call.params.id!, 'webhook');
}

/** User name and password are never shown. First opens only, and contents, are not what we post. */
function present({ id, url, types }: Webhook) {
  const enabled = (trigger: Trigger) => ({ Enabled: isEnabled(types, trigger) });
  return {
    ID: numberOf(id),
    Url: url,
    MessageStream: postmarkStreamOf(null),
    HttpAuth: null,
    HttpHeaders: [],
    Triggers: {
      Open: { ...enabled('Open'), PostFirstOpenOnly: false },
      Click: enabled('Click'),
      Delivery: enabled('Delivery'),
      Bounce: { ...enabled('Bounce'), IncludeContent: false },
      SpamComplaint: { ...enabled('SpamComplaint'), IncludeContent: false },
      SubscriptionChange: enabled('SubscriptionChange'),
    },
  };
}

/** No types means all. */
function isEnabled(types: readonly string[], trigger: Trigger): boolean {
  return types.length === 0 || typesOf[trigger].some((type) => types.includes(type));
}

const trigger = inAnyCase({ Enabled: z.boolean().nullish() }).nullish();

const request = inAnyCase({
  Url: z.string().nullish(),
  MessageStream: z.string().nullish(),
  HttpAuth: inAnyCase({ Username: z.string().nullish(), Password: z.string().nullish() }).nullish(),
  HttpHeaders: z
    .array(z.unknown())
    .max(0, 'must be empty: Postern posts no headers of yours. Give a user name and a password instead')
    .nullish(),
  Triggers: z.partialRecord(z.enum(triggers), trigger).nullish(),
});

type Request = z.output<typeof request>;

async function add(call: DialectCall) {
  const given = checked(request, call.body);
  await streamOf(call, given.MessageStream);
  const { db, seal, allowPrivate } = call;
  const url = urlWith(given);
  const parsed = parseWebhookUrl(url, allowPrivate, 'postmark');
  if ('problem' in parsed) throw new Refusal('BAD_REQUEST', `Url: ${parsed.problem}`);
  const wanted = { orgId: call.orgId, url, types: typesFor(given, () => false), format: 'postmark' } as const;
  const options = { seal, allowPrivate, now: call.now, requestedBy: 'owner' as const };
  return present((await addWebhook(db, wanted, options)).webhook);
}

/** With the user name and the password, as our endpoints are given them. */
function urlWith({ Url, HttpAuth }: Request): string {
  const url = URL.parse(Url ?? '');
  if (!url || !HttpAuth) return Url ?? '';
  const encoded = (text: string | null | undefined) => encodeURIComponent((text ?? '').toWellFormed());
  url.username = encoded(HttpAuth.Username);
  url.password = encoded(HttpAuth.Password);
  return url.href;
}

function typesFor({ Triggers }: Request, isNow: (trigger: Trigger) => boolean): string[] {
  const types = triggers.flatMap((name) => ((Triggers?.[name]?.Enabled ?? isNow(name)) ? typesOf[name] : []));
  if (types.length > 0) return types;
  throw new Refusal('BAD_REQUEST', `Triggers: enable one or more of ${triggers.join(', ')}.`);
}

async function change(call: DialectCall) {
  const given = checked(request, call.body);
  const webhook = await find(call);
  if (given.HttpAuth || (given.Url && URL.parse(given.Url)?.href !== webhook.url))
    throw new Refusal(
      'BAD_REQUEST',
      'Url and HttpAuth of a webhook do not change. Create a new webhook, and delete this one.',
    );
  const types = typesFor(given, (name) => isEnabled(webhook.types, name));
  await changeWebhook(call, webhook, { types });
  return present({ ...webhook, types });
}

async function remove(call: DialectCall) {
  const { id } = await find(call);
  await deleteWebhook(call.db, id);
  return { ErrorCode: 0, Message: 'The webhook is deleted.' };
}
