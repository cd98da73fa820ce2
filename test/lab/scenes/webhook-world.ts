/** A world with endpoints, and the hands to turn its clock from one try to the next. */
import type { ExecutionContext } from 'ava';
import { createSeal } from '#accounts/seal.ts';
import { addWebhook } from '#mail/webhooks/endpoints.ts';
import type { WebhookFormatName } from '#mail/webhooks/subscribed-types.ts';
import { newId } from '#platform/base/id.ts';
import { loadSecrets } from '#platform/base/secrets.ts';
import { insertRows } from '#platform/database/engine/insert-rows.ts';
import { partOf } from '../mail.ts';
import { until } from '../until.ts';
import { type Receiver, startReceiver } from './webhook-receiver.ts';
import { startWorld, type World, type WorldOptions } from './world.ts';

export async function startWebhookWorld(t: ExecutionContext, options: WorldOptions = {}) {
  const world = await startWorld(t, {
    ...options,
    settings: { POSTERN_WEBHOOK_ALLOW_PRIVATE: 'true', ...options.settings },
  });
  const [{ id: orgId }] = await world.db('organizations').select('id');
  const seal = createSeal(loadSecrets(world.config));
  const add = async (url: string, types: string[] = [], format?: WebhookFormatName) => {
    const terms = { seal, allowPrivate: true, now: world.clock.now() };
    const { webhook, secret } = await addWebhook(
      world.db,
      { orgId, url, types, ...(format && { format }) },
      terms,
    );
    return { id: webhook.id, secret, webhook, publicKey: webhook.publicKey };
  };
  return {
    world,
    orgId: orgId as string,
    seal,
    add,
    /** A receiver, and an endpoint for it. */
    async endpoint(types: string[] = []): Promise<{ receiver: Receiver; id: string }> {
      const receiver = await startReceiver(t, { now: world.clock.now });
      const { id, secret } = await add(receiver.url, types);
      receiver.secret = secret!;
      return { receiver, id };
    },
  };
}

const tries = async (world: World) => (await world.db('webhook_attempts')).length;

export const openMessages = (world: World) => world.db('webhook_messages').whereNotNull('lane');

/** Turns the clock to the next try, and waits until it has been made. */
export async function nextTry(world: World): Promise<void> {
  const before = await tries(world);
  const rows = await world
    .db('webhook_messages as message')
    .join('webhooks as endpoint', 'endpoint.id', 'message.webhook_id')
    .where('endpoint.status', 'active')
    .whereNotNull('message.due_at')
    .select('message.due_at', 'endpoint.paused_until');
  if (rows.length === 0) throw new Error('nothing is to be tried');
  const next = Math.min(...rows.map((row) => Math.max(row.due_at, row.paused_until ?? 0)));
  await world.clock.advance(Math.max(next - world.clock.now(), 0) + 1000);
  await world.clock.passUntil(async () => (await tries(world)) > before, { what: 'the next try', step: 10 });
}

/** Until all has been told. */
export async function deliverAll(world: World, max = 50): Promise<void> {
  for (let n = 0; n < max; n++) {
    await until(async () => (await world.db('webhook_messages').whereNotNull('lease_owner')).length === 0, {
      what: 'the tries under way to end',
    });
    if ((await openMessages(world)).length === 0) return;
    await nextTry(world);
  }
  throw new Error(`after ${max} tries there are ${(await openMessages(world)).length} open messages`);
}

const chrome =
  'Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/140.0.0.0 Safari/537.36';

/** Delivered, deferred and then delivered, bounced; opened, clicked, complained of. */
export async function sendAll(world: World, orgId: string): Promise<string[]> {
  const html = '<p>In confidence: <a href="https://app.invalid/">go</a></p>';
  const tracking = { openTracking: true, clickTracking: true };
  const fields = { html, tracking, tags: { plan: 'pro' } };
  const [plain, grey, gone] = await Promise.all(
    ['ann', 'greylist', 'unknown'].map(async (name) => {
      const { body } = await world.send({ to: `${name}@there.invalid`, ...fields });
      return body.emailId as string;
    }),
  );
  const reached = (status: string) => (email: { status: string }) => email.status === status;
  await world.when(plain!, reached('delivered'));
  await world.when(gone!, reached('bounced'));
  await world.when(grey!, reached('deferred'));
  const body = partOf(world.mx[0]!.messages.find(({ to }) => to[0]!.startsWith('ann'))!.raw, 'text/html');
  const links = [/<img src="([^"]+)"/, /<a href="([^"]+)"/].map((each) =>
    each.exec(body)![1]!.replaceAll('&amp;', '&'),
  );
  await world.clock.advance('31s');
  await world.passUntil(grey!, reached('delivered'));
  for (const link of links) await fetch(link, { redirect: 'manual', headers: { 'user-agent': chrome } });
  await world.when(plain!, ({ recipients }) => recipients[0].clicks.count === 1);
  // What returned mail will write.
  const complaint = {
    type: 'email.complained',
    recipient: 'ann@there.invalid',
    at: world.clock.now(),
    data: '{}',
  };
  await world.db.transaction((trx) =>
    insertRows(trx, 'events', [{ id: newId(), org_id: orgId, email_id: plain, ...complaint }]),
  );
  // Nothing tells the server of it: it looks each second, in steps that pass no lease.
  const read = async () => (await world.db('webhook_messages').where({ type: complaint.type })).length > 0;
  await world.clock.passUntil(read, { what: 'the complaint to be read', step: 100 });
  return [plain!, grey!, gone!];
}
