/** Renewals: when they come, what clients notice of them, and several nodes that share one certificate. */
import { Agent, request } from 'node:https';
import { text } from 'node:stream/consumers';
import test from 'ava';
import { certificateShown, startAcmeWorld } from '#lab/certificates/acme-world.ts';
import { problem } from '#lab/certificates/authority.ts';
import { memoryLog, temporaryDirectory } from '#lab/evidence.ts';
import { freePort } from '#lab/load/ports.ts';
import { connectSmtp } from '#lab/mx/smtp-client.ts';
import { sharedSecret } from '#lab/scenes/nodes.ts';
import { testConfig } from '#lab/scenes/world.ts';
import { threadsHere } from '#lab/threads-here.ts';
import { until } from '#lab/until.ts';
import { start } from '#server/start.ts';

test('a certificate is renewed in time, and open connections go on', async (t) => {
  const smtp = await freePort('127.0.0.1');
  const world = await startAcmeWorld(t, { settings: { POSTERN_SUBMISSION_PORT: String(smtp) } });
  const first = await world.untilCertified();
  const agent = new Agent({ keepAlive: true, maxSockets: 1 });
  t.teardown(() => agent.destroy());
  const ask = async () => {
    const options = { host: '127.0.0.1', port: world.httpsPort, servername: 'postern.invalid', agent };
    const headers = { host: 'postern.invalid' };
    const sent = request({ ...options, headers, path: '/health/live', ca: world.authority.root }).end();
    const response = await new Promise<import('node:http').IncomingMessage>((resolve, reject) =>
      sent.on('response', resolve).on('error', reject),
    );
    await text(response);
    return { status: response.statusCode, socket: sent.socket };
  };
  const { socket } = await ask();
  const talk = await connectSmtp(smtp);
  await talk.says('EHLO x\r\n', '250');
  await world.clock.jump('50d');
  await world.clock.advance('11s');
  t.is(world.authority.orders.length, 1, 'not before its time');
  await world.clock.jump('9d');
  await world.untilCertified('postern.invalid', first);
  t.is(world.authority.orders.length, 2);
  await until(async () => {
    const shown = await certificateShown(world.httpsPort, 'postern.invalid');
    return Date.parse(shown.valid_from) > Date.now() + 40 * 86_400_000;
  });
  const again = await ask();
  t.is(again.status, 200);
  t.is(again.socket, socket, 'the same connection');
  await talk.says('NOOP\r\n', '250');
});

test('the authority’s suggestion comes before the usual time, and the renewal names what it replaces', async (t) => {
  const world = await startAcmeWorld(t, {
    prepare: (authority) => {
      const now = Date.now();
      authority.window = { start: now + 10 * 86_400_000, end: now + 10 * 86_400_000 + 60_000 };
    },
  });
  const first = await world.untilCertified();
  await world.clock.jump('9d');
  await world.clock.advance('11s');
  await until(() => world.authority.requests.some((one) => one.startsWith('GET /renewal/')));
  t.is(world.authority.orders.length, 1);
  // Revoked: the window is moved into the past.
  world.authority.window = { start: 0, end: 1 };
  await world.clock.jump('1d');
  await world.untilCertified('postern.invalid', first);
  t.regex(world.authority.orders[1]!.replaces!, /^[\w-]{27}\.[\w-]{22}$/);
  const [, id] = /^GET \/renewal\/(.*)$/.exec(
    world.authority.requests.find((one) => one.startsWith('GET /renewal/'))!,
  )!;
  t.is(world.authority.orders[1]!.replaces, id!);
});

test('while renewals fail, the certificate stays in use, and the next attempt names no predecessor', async (t) => {
  const world = await startAcmeWorld(t);
  const first = await world.untilCertified();
  world.authority.script = (path) =>
    path === '/order' ? { status: 409, body: problem('alreadyReplaced', 'replaced') } : undefined;
  await world.clock.jump('60d');
  t.like(await world.untilFailed('postern.invalid'), { type: 'alreadyReplaced', text: 'replaced' });
  t.is((await certificateShown(world.httpsPort, 'postern.invalid')).issuer.CN, 'Authority of the tests');
  world.authority.script = () => undefined;
  await world.clock.jump('20m');
  await world.untilCertified('postern.invalid', first);
  t.is(world.authority.orders.at(-1)!.replaces, null);
});

test('of two nodes one asks, either answers the authority, and both use the certificate', async (t) => {
  const [httpPort, httpsPort] = [await freePort('127.0.0.2'), await freePort('127.0.0.2')];
  // The authority comes to the other node.
  const world = await startAcmeWorld(t, {
    database: 'postgres',
    settings: sharedSecret,
    authority: { httpPort, checkedAt: '127.0.0.2' },
    prepare: (authority) => {
      authority.script = () => ({ status: 503 });
    },
  });
  const dataDir = await temporaryDirectory(t);
  const environment = { dataDir, databaseUrl: world.config.databaseUrl, dns: world.dns, mtaPort: 25 };
  const config = testConfig(environment, {
    ...world.authority.settings,
    ...sharedSecret,
    POSTERN_ACME_HOST: '127.0.0.2',
    POSTERN_ACME_HTTP_PORT: String(httpPort),
    POSTERN_ACME_HTTPS_PORT: String(httpsPort),
  });
  const { log } = memoryLog();
  const other = await start(config, {
    clock: world.clock,
    log,
    acmePollMs: 20,
    random: () => 0.5,
    ...threadsHere,
  });
  t.teardown(() => other.stop());
  await world.untilFailed('postern.invalid', 0);
  world.authority.script = () => undefined;
  await world.clock.jump('2m');
  await world.untilCertified();
  t.is(world.authority.orders.length, 1);
  await world.clock.passUntil(async () => {
    const shown = await Promise.all([
      certificateShown(world.httpsPort, 'postern.invalid'),
      certificateShown(httpsPort, 'postern.invalid', '127.0.0.2'),
    ]);
    return shown[0]!.fingerprint256 === shown[1]!.fingerprint256;
  });
  t.is(
    (await certificateShown(httpsPort, 'postern.invalid', '127.0.0.2')).issuer.CN,
    'Authority of the tests',
  );
});
