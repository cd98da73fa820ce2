/**
 * What is changed on one node, or by the command line, holds on the others within a second. Most is read anew for each
 * call; verified domains and keys are kept for a second (src/platform/base/bounded-cache.ts); suspensions are read once a second.
 */
import test, { type ExecutionContext } from 'ava';
import { setDomainStatus, setDomainTracking } from '#accounts/rows/domains-table.ts';
import { sharedSecret, startNode, tickAll } from '#lab/scenes/nodes.ts';
import { startWebhookWorld } from '#lab/scenes/webhook-world.ts';
import { until } from '#lab/until.ts';
import { suspend } from '#mail/queue/rows/suspensions.ts';
import { readSources } from '#mail/record/rows/emails.ts';
import { disableWebhook } from '#mail/webhooks/rows/webhooks.ts';

/** The world's node sends and takes mail; the other one takes mail, and is asked here. Its caches are warm. */
async function startBoth(t: ExecutionContext) {
  const scene = await startWebhookWorld(t, { database: 'postgres', settings: sharedSecret });
  const { world } = scene;
  const other = await startNode(t, world, { roles: ['http'] });
  let sent = 0;
  const send = (to = 'ann@there.invalid') => {
    sent += 1;
    const html = '<a href="https://example.com/">Hello</a>';
    return world.at(other.url).send({ to, subject: `${sent}`, html });
  };
  t.is((await send()).status, 200);
  await world.mx[0]!.received(1);
  return { ...scene, send };
}

test('a domain that is no longer verified sends nothing, and again once it is', async (t) => {
  const { world, send } = await startBoth(t);
  const [id] = await world.db('domains').pluck('id');
  await setDomainStatus(world.db, id, 'pending', world.clock.now());
  await until(async () => (await send()).status === 403, { what: 'the domain to be refused' });
  await setDomainStatus(world.db, id, 'verified', world.clock.now());
  t.is((await send()).status, 200, 'at once');
});

test('the next mail is signed with the new key, and tracked as the domain says now', async (t) => {
  const { world, send } = await startBoth(t);
  const [id] = await world.db('domains').pluck('id');
  await world.db('domains').where({ id }).update({ dkim_selector: 'rotated' });
  await setDomainTracking(world.db, id, { clicks: true, host: 'links.sender.invalid' });
  await until(
    async () => {
      const { body } = await send();
      const [raw] = await readSources(world.db, body.emailId);
      const text = raw!.toString().replaceAll('=\r\n', '');
      return text.includes('s=rotated') && text.includes('links.sender.invalid');
    },
    { what: 'the new key and the links' },
  );
  t.pass();
});

test('a webhook that is disabled is posted to no more', async (t) => {
  const { world, endpoint, send } = await startBoth(t);
  const { receiver, id } = await endpoint(['email.queued']);
  await send('bob@there.invalid');
  await until(() => receiver.requests.length === 1, { what: 'the first post' });
  await disableWebhook(world.db, id, 'not wanted', world.clock.now());
  await send('cid@there.invalid');
  await world.mx[0]!.received(3);
  for (let n = 0; n < 2; n++) await tickAll(world, 1);
  t.is(receiver.requests.length, 1);
});

test('a destination that is suspended gets nothing from any node', async (t) => {
  const { world, send } = await startBoth(t);
  await startNode(t, world, { roles: ['mta'] });
  const now = world.clock.now();
  const order = { destination: 'there.invalid', reason: 'a test', createdAt: now };
  await suspend(world.db, { ...order, until: now + 3600_000 });
  for (let n = 0; n < 5; n++) await tickAll(world, 2);
  const { body } = await send();
  for (let n = 0; n < 3; n++) await tickAll(world, 2);
  t.is((await world.get(body.emailId)).recipients[0].attempts, 0);
  t.is(world.mx[0]!.messages.length, 1);
});
