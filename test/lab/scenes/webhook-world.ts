/** A world with endpoints, and the hands to turn its clock from one try to the next. */
import type { ExecutionContext } from 'ava';
import { createSeal } from '../../../src/accounts/seal.ts';
import { loadSecrets } from '../../../src/base/secrets.ts';
import { addWebhook } from '../../../src/webhooks/endpoints.ts';
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
  const add = async (url: string, types: string[] = []) => {
    const terms = { seal, allowPrivate: true, now: world.clock.now() };
    const { webhook, secret } = await addWebhook(world.db, { orgId, url, types }, terms);
    return { id: webhook.id, secret };
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
      receiver.secret = secret;
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
  await until(async () => (await tries(world)) > before, { what: 'the next try' });
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
