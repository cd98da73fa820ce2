/** `postern webhook`, as a process of its own beside a running server. */
import test from 'ava';
import { cliOf, createCli, startCli } from '#lab/cli.ts';
import { faultOf, startReceiver } from '#lab/scenes/webhook-receiver.ts';
import { startWorld } from '#lab/scenes/world.ts';
import { until } from '#lab/until.ts';

const allow = { POSTERN_WEBHOOK_ALLOW_PRIVATE: 'true' };

test('add, list, show, test, rotate, remove, without a server', async (t) => {
  const { json, refusal, cli } = await startCli(t, allow);
  const receiver = await startReceiver(t);
  const added = await json(
    `webhook add ${receiver.url} --org Acme --event email.delivered --event email.bounced`,
  );
  t.regex(added.secret, /^whsec_[\w+/]{43}=$/);
  t.deepEqual(added.events, ['email.delivered', 'email.bounced']);
  const [listed] = await json('webhook list --org Acme');
  t.like(listed, { id: added.id, url: receiver.url, status: 'active', events: added.events });
  t.false(JSON.stringify(listed).includes('whsec_'));
  t.like(await json('webhook list'), [{ id: added.id }]);
  t.like(await json(`webhook show ${added.id}`), { status: 'active', open: 0, failed: 0 });

  receiver.secret = added.secret;
  receiver.answer = (_, response) => response.end('thank you');
  t.like(await json(`webhook test ${added.id}`), { ok: true, status: 200, answer: 'thank you', error: null });
  const [tested] = receiver.requests;
  t.is(tested!.fault, null);
  t.like(tested!.body, { type: 'webhook.test', data: { webhookId: added.id } });

  const rotated = await json(`webhook rotate ${added.id}`);
  t.not(rotated.secret, added.secret);
  receiver.answer = (_, response) => response.writeHead(500).end('no');
  const failed = await cli(`webhook test ${added.id} --json`);
  t.is(failed.code, 1);
  t.like(JSON.parse(failed.stdout.toString()), { ok: false, status: 500, answer: 'no', error: 'HTTP 500' });
  const { raw, headers } = receiver.requests[1]!;
  for (const secret of [added.secret, rotated.secret]) t.is(faultOf(secret, raw, headers, Date.now), null);

  const attempts = await json(`webhook attempts ${added.id}`);
  t.deepEqual(
    attempts.map(({ status }: { status: number }) => status),
    [500, 200],
  );
  t.like(attempts[1], { eventId: tested!.id, type: 'webhook.test', number: 1, url: receiver.url });
  t.deepEqual(await json(`webhook attempts ${added.id} ${tested!.id}`), [attempts[1]]);

  t.deepEqual(await json(`webhook remove ${added.id}`), { id: added.id, removed: true });
  t.regex(await refusal(1, `webhook test ${added.id}`), /there is no webhook with the id/);
  t.deepEqual(await json('webhook list --org Acme'), []);
});

test('a private address that was allowed once is not posted to when it is not allowed any more', async (t) => {
  const { env, dataDir } = await startCli(t);
  // Allowed when it was added, and not any more.
  const receiver = await startReceiver(t);
  const added = await createCli(t, { ...env, ...allow } as Record<string, string>).json(
    `webhook add ${receiver.url} --org Acme`,
  );
  const { cli } = createCli(t, { POSTERN_DATA_DIR: dataDir });
  const refused = await cli(`webhook test ${added.id} --json`);
  t.is(refused.code, 1);
  t.like(JSON.parse(refused.stdout.toString()), { ok: false, error: '127.0.0.1 is a private address' });
  t.is(receiver.sockets.count, 0);
});

test('beside a server: an endpoint that was added is told, a replay is posted', async (t) => {
  const world = await startWorld(t, { settings: allow });
  const cli = cliOf(t, world);
  const { json } = createCli(t, { ...(cli.env as Record<string, string>), ...allow });
  const receiver = await startReceiver(t, { now: world.clock.now });
  const { id, secret } = await json(`webhook add ${receiver.url} --org Tenant --event email.delivered`);
  receiver.secret = secret;
  const { body } = await world.send({ to: 'ann@there.invalid' });
  await receiver.received(1);
  t.is(receiver.requests[0]!.fault, null);
  t.is(receiver.requests[0]!.body.data.emailId, body.emailId);
  await until(async () => (await world.db('webhook_attempts')).length === 1);
  t.like(await json(`webhook replay ${id} ${receiver.requests[0]!.id}`), { replayed: 1 });
  await world.clock.passUntil(() => receiver.requests.length === 2);
  await until(async () => (await world.db('webhook_attempts')).length === 2);
  t.is((await json(`webhook replay ${id} --since 2d`)).replayed, 1);
  await world.clock.passUntil(() => receiver.requests.length === 3);
  t.is(new Set(receiver.requests.map((each) => each.id)).size, 1);
});
