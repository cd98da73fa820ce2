/**
 * Webhooks by a real receiver that behaves as badly as they do: every event arrives at least once, verified by the
 * library, in the order of its email.
 */
import test from 'ava';
import { cliOf } from '#lab/cli.ts';
import { ok, type Received, type Receiver, startReceiver } from '#lab/scenes/webhook-receiver.ts';
import { deliverAll, nextTry, openMessages, sendAll, startWebhookWorld } from '#lab/scenes/webhook-world.ts';
import type { World } from '#lab/scenes/world.ts';
import { until } from '#lab/until.ts';

/** The events that there are, each with what was told of it. */
async function eventsOf(
  world: World,
): Promise<{ id: string; type: string; email_id: string; position: number }[]> {
  return world.db('events').orderBy('position');
}

const distinct = <T>(values: T[]) => [...new Set(values)].sort();

const emailOf = ({ body }: Received): string => body.data.emailId;

test('whatever the receiver does, it gets every event, signed, and those of each email in order', async (t) => {
  const { world, orgId, endpoint } = await startWebhookWorld(t, {
    overrides: { webhookTimeoutMs: 500 },
  });
  const { receiver } = await endpoint();
  let asked = 0;
  const moods: Receiver['answer'][] = [
    (_, response) => response.writeHead(500).end('no'),
    (_, response) => response.writeHead(429, { 'retry-after': '90' }).end(),
    () => {},
    (_, response) => response.writeHead(301, { location: receiver.url }).end(),
    (_, response) => response.writeHead(200).end('thank you'),
    (_, response) => response.destroy(),
  ];
  // No event meets all of them ten times.
  receiver.answer = (request, response) =>
    (asked < 18 ? moods[asked++ % moods.length]! : ok)(request, response);
  const emails = await sendAll(world, orgId);
  // Away for a while.
  await receiver.down();
  await until(async () => (await openMessages(world)).length > 0);
  for (let n = 0; n < 4; n++) await nextTry(world);
  await receiver.up();
  await deliverAll(world, 100);

  const events = await eventsOf(world);
  t.deepEqual(distinct(events.map(({ type }) => type)), [
    ...['email.bounced', 'email.clicked', 'email.complained', 'email.deferred', 'email.delivered'],
    ...['email.opened', 'email.queued', 'suppression.added'],
  ]);
  const accepted = receiver.accepted();
  t.deepEqual(
    distinct(accepted.map(({ id }) => id)),
    distinct(events.map(({ id }) => id)),
    'every event, and nothing else',
  );
  t.deepEqual(distinct(receiver.requests.map(({ fault }) => fault)), [null]);
  const place = new Map(events.map(({ id, position }) => [id, position]));
  // That an address was suppressed is no event of the email's, though it names it.
  const own = accepted.filter(({ body }) => body.type.startsWith('email.'));
  for (const emailId of emails) {
    const places = own.filter((each) => emailOf(each) === emailId).map(({ id }) => place.get(id)!);
    t.deepEqual(
      places,
      [...places].sort((a, b) => a - b),
      'in its order',
    );
    t.true(places.length >= 2);
  }
  for (const { id, body, raw } of receiver.requests) {
    const event = events.find((each) => each.id === id)!;
    t.is(body.type, event.type);
    t.true(Buffer.byteLength(raw) < 20_000);
    if (event.email_id) t.deepEqual(body.data.tags, { plan: 'pro' });
  }
  t.false(
    receiver.requests.some(({ raw }) => raw.includes('In confidence')),
    'no mail content',
  );
  const attempts = await world.db('webhook_attempts');
  const seen = new Set(attempts.map(({ status }) => status));
  for (const status of [500, 429, 301, 200, null])
    t.true(seen.has(status), `an attempt of ${status} is kept`);
  t.deepEqual(distinct(attempts.filter(({ status }) => status === 500).map(({ answer }) => answer)), ['no']);
});

test('after the whole schedule the endpoint is disabled, which an event tells the others', async (t) => {
  const { world, endpoint } = await startWebhookWorld(t, {});
  const { receiver, id } = await endpoint(['email.delivered']);
  const other = await endpoint(['webhook.disabled']);
  receiver.answer = (_, response) => response.writeHead(503).end();
  const { body } = await world.send({ to: 'ann@there.invalid' });
  await receiver.received(1);
  for (let n = 2; n <= 10; n++) {
    await until(async () => (await world.db('webhook_attempts')).length === n - 1);
    await until(async () => (await world.db('webhook_messages').whereNotNull('lease_owner')).length === 0);
    await nextTry(world);
  }
  await other.receiver.received(1);
  t.is(receiver.requests.length, 10);
  t.is(new Set(receiver.requests.map((each) => each.id)).size, 1, 'the same webhook-id');
  const times = receiver.requests.map(({ timestamp }) => timestamp);
  const waits = times.slice(1).map((time, at) => time - times[at]!);
  const hours = [2, 5, 10, 14, 20, 24].map((each) => each * 3600);
  for (const [at, wait] of [5, 300, 1800, ...hours].entries()) {
    t.true(waits[at]! >= wait && waits[at]! <= wait + 10, `wait ${at + 1}: ${waits[at]} for ${wait}`);
  }
  t.is(receiver.requests[0]!.body.data.emailId, body.emailId);
  const webhook = await world.db('webhooks').where({ id }).first();
  t.like(webhook, { status: 'disabled' });
  t.regex(webhook.reason, /HTTP 503/);
  t.like(other.receiver.requests[0]!.body, {
    type: 'webhook.disabled',
    data: { webhookId: id, url: receiver.url },
  });
  // What happens while it is disabled is not posted.
  const missed = (await world.send({ to: 'bob@there.invalid' })).body.emailId;
  await world.when(missed, ({ status }) => status === 'delivered');
  await world.clock.passUntil(
    async () => {
      const newest = await world.db('events').orderBy('position', 'desc').first('position');
      const reader = await world.db('event_readers').where({ name: 'webhooks' }).first();
      return reader.position >= newest.position;
    },
    { step: '2s' },
  );

  // Enabled again, what failed is told by a replay.
  const { json } = cliOf(t, world);
  t.like(await json(`webhook enable ${id}`), { status: 'active', failed: 1 });
  receiver.answer = (_, response) => response.writeHead(200).end();
  t.like(await json(`webhook replay ${id} --failed`), { replayed: 1 });
  await world.clock.passUntil(() => receiver.requests.length >= 11);
  t.is(receiver.requests[10]!.id, receiver.requests[0]!.id);
});

test('410 disables at once; what waits goes on when it is enabled', async (t) => {
  const { world, endpoint } = await startWebhookWorld(t, {});
  const { receiver, id } = await endpoint();
  receiver.answer = (_, response) => response.writeHead(410).end();
  const { body } = await world.send({ to: 'ann@there.invalid' });
  await until(async () => (await world.db('webhooks').first()).status === 'disabled');
  await world.when(body.emailId, ({ status }) => status === 'delivered');
  await world.clock.jump('2d');
  t.is(receiver.requests.length, 1);
  t.deepEqual(await world.db('events').where({ type: 'webhook.disabled' }).pluck('email_id'), [null]);
  receiver.answer = (_, response) => response.writeHead(200).end();
  await cliOf(t, world).json(`webhook enable ${id}`);
  await world.clock.passUntil(() => receiver.requests.length >= 2);
  t.is(receiver.requests[1]!.id, receiver.requests[0]!.id);
});

test('Retry-After holds off the endpoint as a whole, and no other', async (t) => {
  const { world, endpoint } = await startWebhookWorld(t);
  const { receiver } = await endpoint(['email.queued']);
  const other = await endpoint(['email.queued']);
  receiver.answer = (_, response) => response.writeHead(429, { 'retry-after': '600' }).end();
  await world.send({ to: 'ann@there.invalid' });
  await until(async () => (await world.db('webhooks').whereNotNull('paused_until')).length === 1);
  receiver.answer = (_, response) => response.writeHead(200).end();
  await world.send({ to: 'bob@there.invalid' });
  // Before the clock passes the end of the leases: what is under way by then is posted again.
  await world.clock.passUntil(() => other.receiver.requests.length >= 2);
  await world.clock.advance('9m');
  t.is(receiver.requests.length, 1);
  await world.clock.advance('1m');
  await world.clock.passUntil(() => receiver.requests.length >= 3);
});

test('an email waits for its earlier event, the others do not', async (t) => {
  const { world, endpoint } = await startWebhookWorld(t);
  const { receiver } = await endpoint();
  const isPoison = ({ body }: Received) =>
    body.type === 'email.queued' && body.data.recipient.startsWith('ann');
  let isMended = false;
  receiver.answer = (request, response) =>
    response.writeHead(isPoison(request) && !isMended ? 500 : 200).end();
  const { body: ann } = await world.send({ to: 'ann@there.invalid' });
  const { body: bob } = await world.send({ to: 'bob@there.invalid' });
  const typesOf = (emailId: string) =>
    receiver
      .accepted()
      .filter((each) => emailOf(each) === emailId)
      .map(({ body }) => body.type);
  await world.when(ann.emailId, ({ status }) => status === 'delivered');
  await until(() => typesOf(bob.emailId).length === 2, { what: "bob's two events" });
  t.deepEqual(typesOf(bob.emailId), ['email.queued', 'email.delivered']);
  t.deepEqual(typesOf(ann.emailId), []);
  isMended = true;
  // A clock that has passed a lease has a message posted twice.
  await world.clock.passUntil(() => typesOf(ann.emailId).includes('email.delivered'));
  t.deepEqual([...new Set(typesOf(ann.emailId))], ['email.queued', 'email.delivered']);
});

test('an event is posted when it happens, and not at the next look: the clock stands still', async (t) => {
  const { world, endpoint } = await startWebhookWorld(t);
  const { receiver } = await endpoint(['email.queued', 'email.delivered']);
  const begun = world.clock.now();
  for (let n = 0; n < 3; n++) {
    await world.send({ to: `ann${n}@there.invalid` });
    await receiver.received(2 * n + 2);
  }
  t.is(world.clock.now(), begun);
});

test('a receiver that hangs for every request delays no mail and no other endpoint', async (t) => {
  const { world, endpoint } = await startWebhookWorld(t);
  const hanging = await endpoint();
  const other = await endpoint();
  hanging.receiver.answer = () => {};
  for (let n = 0; n < 40; n++) await world.send({ to: `ann${n}@there.invalid` });
  await world.mx[0]!.received(40);
  await other.receiver.received(80);
  t.true(hanging.receiver.requests.length <= 16, 'no more than its own room');
});

test('posts that were under way when the server stopped are made by the next one', async (t) => {
  const { world, endpoint } = await startWebhookWorld(t);
  const { receiver } = await endpoint(['email.queued']);
  receiver.answer = () => {};
  await world.send({ to: 'ann@there.invalid' });
  await receiver.received(1);
  receiver.answer = (_, response) => response.writeHead(200).end();
  await world.restart();
  await receiver.received(2);
  t.is(receiver.requests[1]!.id, receiver.requests[0]!.id);
  await until(async () => (await openMessages(world)).length === 0);
});

test('only the types that were asked for, and only the own organization', async (t) => {
  const { world, add } = await startWebhookWorld(t);
  const some = await startReceiver(t, { now: world.clock.now });
  const { id, secret } = await add(some.url, ['email.delivered']);
  some.secret = secret!;
  const { body } = await world.send({ to: 'ann@there.invalid' });
  await some.received(1);
  await until(async () => (await openMessages(world)).length === 0);
  const [{ type, data, ...rest }] = some.requests.map((each) => each.body);
  t.deepEqual({ type, rest: Object.keys(rest) }, { type: 'email.delivered', rest: ['timestamp'] });
  t.like(data, {
    emailId: body.emailId,
    id: body.id,
    recipient: 'ann@there.invalid',
    from: 'App <app@sender.invalid>',
    subject: 'Hello',
    tags: {},
    attempt: 1,
  });
  t.deepEqual(await world.db('webhook_messages').pluck('webhook_id'), [id]);
});
