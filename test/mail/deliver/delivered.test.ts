import test from 'ava';
import { verifyDkim } from '#lab/dkim.ts';
import { startWorld } from '#lab/scenes/world.ts';
import { loadSecrets } from '#platform/base/secrets.ts';
import { createMessageId } from '#platform/values/message-id.ts';

test('a send is accepted, signed, delivered and told', async (t) => {
  const world = await startWorld(t);
  const { status, body } = await world.send({
    to: ['Ann@there.invalid', 'bob@there.invalid'],
    html: '<p>Hello</p>',
    tags: { kind: 'welcome' },
  });
  t.is(status, 200);
  t.deepEqual(body, {
    success: true,
    id: createMessageId(loadSecrets(world.config), 'postern.invalid')(body.emailId),
    emailId: body.emailId,
    accepted: ['Ann@there.invalid', 'bob@there.invalid'],
  });

  const messages = await world.mx[0]!.received(2);
  t.deepEqual(messages.map(({ to }) => to[0]).sort(), ['Ann@there.invalid', 'bob@there.invalid']);
  t.not(messages[0]!.from, messages[1]!.from, 'each delivery has a return path of its own');
  t.deepEqual(messages[0]!.raw, messages[1]!.raw, 'the message is shared');
  t.true(messages[0]!.tls);
  const signatures = await verifyDkim(messages[0]!.raw, world.dns);
  t.deepEqual(
    signatures.map(({ domain, result }) => ({ domain, result })),
    [{ domain: 'sender.invalid', result: 'pass' }],
  );

  const email = await world.when(body.emailId, ({ status }) => status === 'delivered');
  t.is(email.recipients[0].lastResponse.code, 250);
  t.deepEqual(email.recipients[0].mx, {
    host: 'mx1.invalid',
    address: '127.0.0.2',
    port: world.mx[0]!.port,
  });
  t.is(email.recipients[0].tls.verified, false);
  t.deepEqual(email.events.map(({ type }: { type: string }) => type).sort(), [
    'email.delivered',
    'email.delivered',
    'email.queued',
    'email.queued',
  ]);
});
