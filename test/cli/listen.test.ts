/** `postern listen` as a developer has it: beside the database, and a receiver that verifies by the library. */
import { once } from 'node:events';
import { createServer, type IncomingHttpHeaders } from 'node:http';
import type { AddressInfo } from 'node:net';
import { text } from 'node:stream/consumers';
import test, { type ExecutionContext } from 'ava';
import { Webhook } from 'standardwebhooks';
import { addSuppression } from '#accounts/rows/suppressions.ts';
import { cliOf } from '#lab/cli.ts';
import { startWorld } from '#lab/scenes/world.ts';
import { until } from '#lab/until.ts';

interface Received {
  headers: IncomingHttpHeaders;
  body: string;
}

async function startReceiver(t: ExecutionContext) {
  const received: Received[] = [];
  const server = createServer(async (request, response) => {
    received.push({ headers: request.headers, body: await text(request) });
    response.writeHead(received.length === 2 ? 500 : 200).end('thanks');
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  t.teardown(() => server.close());
  return { received, url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/hook` };
}

test('events are posted as they come, signed, whether the server runs or not', async (t) => {
  const world = await startWorld(t);
  const { url, received } = await startReceiver(t);
  const before = await world.send({ to: 'before@there.invalid' });
  await world.when(before.body.emailId, ({ status }) => status === 'delivered');
  const said = cliOf(t, world).start('listen', '--forward', url, '--org', 'Tenant');
  await until(() => said.stderr().includes('forwarding to'), {
    what: () => said.stderr(),
  });
  const secret = /whsec_[\w+/=-]+/.exec(said.stderr())![0];
  const { body } = await world.send({ to: 'ann@there.invalid', tags: { order: '4711' } });
  await until(() => received.length === 2, { what: () => said.stderr() });
  await world.stop();
  const suppressed = { orgId: (await world.db('organizations').first('id')).id, address: 'x@y.invalid' };
  await addSuppression(world.db, { ...suppressed, addressKey: 'x@y.invalid', reason: 'test' }, Date.now());
  await until(() => received.length === 3);

  const told = received.map(({ headers, body: bytes }) =>
    new Webhook(secret).verify(bytes, headers as Record<string, string>),
  ) as { type: string; data: Record<string, unknown> }[];
  t.deepEqual(
    told.map(({ type }) => type),
    ['email.queued', 'email.delivered', 'suppression.added'],
  );
  t.like(told[1]!.data, { emailId: body.emailId, recipient: 'ann@there.invalid', tags: { order: '4711' } });
  await until(() => said.stdout().split('\n').length === 4);
  t.regex(said.stdout(), /email\.queued {2}ann@there\.invalid {2}200 in \d+ ms\n/);
  t.regex(said.stdout(), /email\.delivered {2}ann@there\.invalid {2}answered 500 in \d+ ms\n/);
  t.is((await said.exit()).code, 0);
});

test('an event whose receiver is not there is told and passed over; bad usage is refused', async (t) => {
  const world = await startWorld(t);
  const { refusal, start } = cliOf(t, world);
  const secret = `whsec_${Buffer.alloc(32, 7).toString('base64')}`;
  const args = [
    'listen',
    '--forward',
    'http://127.0.0.1:1/',
    '--secret',
    secret,
    '--event',
    'email.delivered',
    '--json',
  ];
  const said = start(...args);
  await until(() => said.stderr().includes('forwarding to'), {
    what: () => said.stderr(),
  });
  await world.send({ to: 'ann@there.invalid' });
  await until(() => said.stdout().includes('\n'));
  t.like(JSON.parse(said.stdout()), {
    type: 'email.delivered',
    recipient: 'ann@there.invalid',
    status: null,
  });
  t.regex(JSON.parse(said.stdout()).error, /ECONNREFUSED|bad port/);
  t.regex(await refusal(2, 'listen'), /--forward/);
  t.regex(await refusal(2, 'listen --forward ftp://x'), /http:\/\/localhost:3000/);
  t.regex(await refusal(2, 'listen --forward http://x --event email.bounce'), /email\.bounced/);
  t.regex(await refusal(2, 'listen --forward http://x --secret whsec_AAAA'), /24 to 64/);
  t.regex(await refusal(1, 'listen --forward http://x --org Nobody'), /Nobody/);
});
