/** `postern webhook`: endpoints that events are posted to. A secret is printed once, by the command that creates it. */

import { type Command, Option } from 'commander';
import { createSeal } from '#accounts/seal.ts';
import { eventTypes, lines } from '#cli/args/arguments.ts';
import { addConsent, type Consent, isWanted } from '#cli/args/consent.ts';
import {
  requireEventId,
  requireOrganization,
  requireOwner,
  requireWebhook,
  withOwner,
} from '#cli/args/lookup.ts';
import type { CommandContext } from '#cli/command-context.ts';
import { receivedBodies } from '#cli/posted-mail.ts';
import { attemptFields, attemptRows, documentOf, rowsOf, webhookFields } from '#cli/render/webhook-view.ts';
import { presentAttempt, presentStoredAttempt } from '#front/api/webhooks/present-webhook.ts';
import { createResolver } from '#mail/deliver/route/resolver.ts';
import { addWebhook, changeWebhook, rotateSecret, testWebhook } from '#mail/webhooks/endpoints.ts';
import { createPoster, timeoutMs } from '#mail/webhooks/guarded-post.ts';
import { countMessages, listWebhookAttempts } from '#mail/webhooks/rows/webhook-attempts.ts';
import { deleteWebhook, listWebhooks } from '#mail/webhooks/rows/webhooks.ts';
import { type WebhookFormatName, webhookFormats } from '#mail/webhooks/subscribed-types.ts';
import { createAttemptWebhook } from '#mail/webhooks/webhook-attempt.ts';
import { isoOrNull, systemClock } from '#platform/base/clock.ts';
import { replayCommand } from './webhook-replay.ts';

const defaultLines = 20;
const maxLines = 1000;

export function webhookCommands(program: Command, context: CommandContext): void {
  const webhook = program
    .command('webhook')
    .description('Manage webhook endpoints, which receive events by HTTP POST.');
  const ofOne = (command: string, description: string) =>
    webhook.command(command).description(description).argument('<ID>', 'id of the webhook, or its end');

  withOwner(webhook.command('add'))
    .description('Add a webhook endpoint; the secret that signs its posts is shown only once.')
    .argument('<URL>', 'URL that events are posted to, https or http')
    .option('--event <T>', 'only events of this type; without it, all events', eventTypes)
    .addOption(
      new Option('--format <F>', 'write and sign events as this service does')
        .choices(webhookFormats)
        .default('standard'),
    )
    .action((url: string, options: AddOptions) => add(context, url, options));

  webhook
    .command('list')
    .description('List the webhooks of one or all organizations.')
    .option('--org <ORG>', 'id or name of the organization')
    .action(({ org }: { org?: string }) => list(context, org));

  ofOne('show', 'Show a webhook and the number of its pending and failed messages.').action((id: string) =>
    show(context, id),
  );

  ofOne('test', 'Post the event webhook.test now; exit with 1 if the endpoint does not accept it.').action(
    (id: string) => test(context, id),
  );

  ofOne('attempts', 'List the latest attempts and their responses.')
    .argument('[EVENT]', 'id of an event: only its attempts')
    .option('-n <N>', 'how many', lines(1, maxLines), defaultLines)
    .action((id: string, event: string | undefined, { n }: { n: number }) => attempts(context, id, event, n));

  replayCommand(webhook, context);

  ofOne('enable', 'Re-enable a disabled webhook; its pending messages are posted.').action((id: string) =>
    enable(context, id),
  );

  ofOne(
    'rotate',
    'Create a new secret, shown only once; for 24 hours the old secret signs posts as well.',
  ).action((id: string) => rotate(context, id));

  addConsent(ofOne('remove', 'Delete a webhook and its pending messages.')).action(
    (id: string, consent: Consent) => remove(context, id, consent),
  );
}

interface AddOptions {
  org?: string;
  event?: string[];
  format: WebhookFormatName;
}

async function add(
  context: CommandContext,
  url: string,
  { org, event = [], format }: AddOptions,
): Promise<void> {
  const { db, out, config, secrets, now } = context;
  const { id: orgId } = await requireOwner(context, org);
  const terms = { seal: createSeal(secrets()), allowPrivate: config().webhookAllowPrivate, now: now() };
  const added = await addWebhook(await db(), { orgId, url, types: event, format }, terms);
  const { id, url: addedUrl, types, publicKey } = added.webhook;
  const document = { id, secret: added.secret, publicKey, url: addedUrl, events: types, format };
  out.print(document, { fields: { ...document, events: types.join(' ') || 'all' } });
  if (added.secret !== null)
    out.note('the secret is shown only this time; your application verifies the signatures with it');
  if (addedUrl.startsWith('http:')) out.note('over http, anyone on the network path can read the events');
}

async function list({ db, out }: CommandContext, org: string | undefined): Promise<void> {
  const orgId = org === undefined ? null : (await requireOrganization(await db(), org)).id;
  const webhooks = await listWebhooks(await db(), orgId);
  out.print(webhooks.map(documentOf), rowsOf(webhooks));
}

async function show({ db, out }: CommandContext, id: string): Promise<void> {
  const webhook = await requireWebhook(await db(), id);
  const counts = await countMessages(await db(), webhook.id);
  out.print(
    { ...documentOf(webhook), ...counts },
    { fields: { ...webhookFields(webhook), open: counts.open, failed: counts.failed } },
  );
}

async function test(context: CommandContext, id: string): Promise<void> {
  const { db, out, config, secrets } = context;
  const webhook = await requireWebhook(await db(), id);
  const { dnsServers, webhookAllowPrivate: allowPrivate } = config();
  const poster = createPoster({ resolve: createResolver(dnsServers), allowPrivate, timeoutMs });
  const { open: openSecret } = createSeal(secrets());
  const attemptWebhook = createAttemptWebhook({
    post: poster.post,
    makeReceivedBody: await receivedBodies(context),
    openSecret,
    clock: systemClock,
  });
  const attempt = await testWebhook(await db(), webhook, {
    attemptWebhook,
    clock: systemClock,
  }).finally(poster.close);
  out.print(
    { id: webhook.id, ok: attempt.error === null, ...presentAttempt(attempt) },
    { fields: attemptFields(attempt) },
  );
  if (attempt.error !== null) context.exitCode = 1;
}

async function attempts(
  { db, out }: CommandContext,
  id: string,
  event: string | undefined,
  limit: number,
): Promise<void> {
  const webhook = await requireWebhook(await db(), id);
  const eventId = event === undefined ? undefined : await requireEventId(await db(), event);
  const records = await listWebhookAttempts(await db(), webhook.id, { limit, eventId });
  out.print(records.map(presentStoredAttempt), attemptRows(records));
}

async function enable({ db, out, now }: CommandContext, id: string): Promise<void> {
  const webhook = await requireWebhook(await db(), id);
  await changeWebhook({ db: await db(), now: now() }, webhook, { enabled: true });
  const { open, failed } = await countMessages(await db(), webhook.id);
  const fields = { enabled: webhook.id, open, failed };
  out.print({ id: webhook.id, status: 'active', open, failed }, { fields });
  if (webhook.status === 'active') out.note('it was already enabled');
  if (failed > 0) out.note(`\`postern webhook replay ${webhook.id} --failed\` posts what failed again`);
  if (webhook.status === 'disabled')
    out.note(
      'events that happened while it was disabled were not posted; `postern webhook replay … --since` posts them',
    );
}

async function rotate({ db, out, secrets, now }: CommandContext, id: string): Promise<void> {
  const webhook = await requireWebhook(await db(), id);
  const made = (await rotateSecret(await db(), webhook, { seal: createSeal(secrets()), now: now() }))!;
  const { secret, publicKey, oldSecretUntil } = made;
  out.print(
    { id: webhook.id, ...made, oldSecretUntil: isoOrNull(oldSecretUntil) },
    {
      fields: {
        id: webhook.id,
        secret,
        'public key': publicKey,
        'old one signs until': { time: oldSecretUntil },
      },
    },
  );
  if (secret !== null) out.note('the secret is shown only this time');
}

async function remove(context: CommandContext, idOrEnd: string, consent: Consent): Promise<void> {
  const { db, out } = context;
  const { id, url } = await requireWebhook(await db(), idOrEnd);
  const { open } = await countMessages(await db(), id);
  const effect = {
    question: `delete the webhook ${url} and its pending messages (${open})`,
    fields: { webhook: url, pending: open },
    document: { id, url, open },
  };
  if (!(await isWanted(context, effect, consent))) return;
  await deleteWebhook(await db(), id);
  out.print({ id, removed: true }, { fields: { removed: url } });
}
