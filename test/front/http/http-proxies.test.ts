/**
 * Behind proxies as they are: hops with ports (Azure Application Gateway), brackets and quotes (RFC 7239 section 6), several
 * trusted hops in networks (Kubernetes, Cloudflare), idle connections that a balancer reuses after a minute (AWS). Cases as
 * reported to getlago/lago, mastodon/mastodon and nodejs/node#27363.
 */
import { once } from 'node:events';
import { Agent, request } from 'node:http';
import { connect } from 'node:net';
import { text } from 'node:stream/consumers';
import test from 'ava';
import { listen } from '#front/http/http-server.ts';
import { startWorld } from '#lab/scenes/world.ts';
import { table } from '#lab/table.ts';
import { clientAddressOf, trustedProxies } from '#platform/base/net/client-address.ts';
import { loadConfig } from '#platform/settings/config.ts';

const isTrusted = trustedProxies(['192.0.2.20', '10.0.0.0/8', '2001:db8:ffff::/48', '::ffff:172.16.0.0/108']);

const chains: [peer: string, forwardedFor: string, client: string][] = table('api/forwarded-for');

test('the client is the last hop that is no trusted proxy', (t) => {
  for (const [peer, forwardedFor, client] of chains)
    t.is(clientAddressOf(peer, forwardedFor, isTrusted), client, `${peer}: ${forwardedFor.slice(0, 60)}`);
});

const faultOf = (name: string, value: string) => {
  try {
    loadConfig({ [name]: value });
    return null;
  } catch (error) {
    return (error as Error).message;
  }
};

test('addresses and networks of proxies are read, and what is none is named at start', (t) => {
  const { httpProxies, smtpProxies } = loadConfig({
    POSTERN_HTTP_PROXIES: '192.0.2.20, 10.0.0.0/8 2001:DB8::/32 ::ffff:172.16.0.0/108',
    POSTERN_SMTP_PROXIES: '10.0.0.0/8',
  });
  t.deepEqual(httpProxies, ['192.0.2.20', '10.0.0.0/8', '2001:db8::/32', '172.16.0.0/12']);
  t.deepEqual(smtpProxies, ['10.0.0.0/8']);
  for (const bad of [
    '10.0.0.0/33',
    '2001:db8::/129',
    '10.0.0/8',
    '10.0.0.0/',
    '10.0.0.0/8/8',
    '10.0.0.0/-1',
    'balancer',
    '*',
    '010.0.0.1',
    'fe80::1%eth0',
    '::ffff:10.0.0.0/90',
  ])
    t.regex(
      faultOf('POSTERN_HTTP_PROXIES', bad)!,
      /POSTERN_HTTP_PROXIES: "[^"]+" is not an IP address or a network; give/,
      bad,
    );
  for (const all of ['0.0.0.0/0', '::/0', '::ffff:0:0/96'])
    t.regex(faultOf('POSTERN_HTTP_PROXIES', all)!, /contains every client/, all);
});

test('a base URL with a path is refused, because Postern works only at the root of a host', (t) => {
  t.regex(
    faultOf('POSTERN_BASE_URL', 'https://example.org/postern')!,
    /POSTERN_BASE_URL: .* give http\(s\):\/\/HOST without a path/,
  );
  t.is(faultOf('POSTERN_BASE_URL', 'https://example.org/'), null);
});

test('a client cannot have more tries with wrong keys by naming other addresses', async (t) => {
  const world = await startWorld(t, { settings: { POSTERN_HTTP_PROXIES: '192.0.2.0/24' } });
  const ask = async (forwardedFor: string[]) => {
    const headers = { authorization: `Bearer em_${'x'.repeat(40)}`, 'x-forwarded-for': forwardedFor };
    const sent = request(`${world.url()}/api/public/credits`, { headers }).end();
    const [response] = await once(sent, 'response');
    await text(response);
    return response.statusCode;
  };
  // Ten tries a minute; the proxy writes the client in another form each time.
  const forms = [
    '203.0.113.9',
    '203.0.113.9:1',
    '203.0.113.9:2',
    '"203.0.113.9"',
    '::ffff:203.0.113.9',
    '[::ffff:203.0.113.9]:3',
  ];
  const statuses: number[] = [];
  for (let n = 0; n < 12; n += 1)
    statuses.push(
      await ask([`198.51.100.${n}`, `unknown, 10.0.0.${n}`, `${forms[n % forms.length]}, 192.0.2.${n}`]),
    );
  t.deepEqual(statuses, [...Array(10).fill(401), 429, 429]);
  t.is(await ask(['203.0.113.10']), 401, 'another client');
  // One whose address the proxy does not tell is counted as the proxy.
  const hidden: number[] = [];
  for (let n = 0; n < 12; n += 1)
    hidden.push(await ask([`198.51.100.${n}`, ['unknown', '_x', 'nonsense'][n % 3]!]));
  t.deepEqual(hidden, [...Array(10).fill(401), 429, 429]);
});

test('a connection without a request stays open for the time that is set, and that time is told', async (t) => {
  t.is(loadConfig({}).httpKeepAlive, 75_000);
  t.is(loadConfig({ POSTERN_HTTP_KEEP_ALIVE: '620s' }).httpKeepAlive, 620_000);
  t.regex(faultOf('POSTERN_HTTP_KEEP_ALIVE', '75')!, /not a duration/);
  // Longer than a test may hang.
  const world = await startWorld(t, { settings: { POSTERN_HTTP_KEEP_ALIVE: '1h' } });
  const agent = new Agent({ keepAlive: true, maxSockets: 1 });
  t.teardown(() => agent.destroy());
  const ask = async () => {
    const sent = request(`${world.url()}/api/public/openapi.json`, { agent }).end();
    const [response] = await once(sent, 'response');
    await text(response);
    return response.headers;
  };
  t.is((await ask())['keep-alive'], 'timeout=3600');
  // A stop does not wait for it.
  await world.stop();
});

test('idle connections do not keep others out at the limit', async (t) => {
  const server = await listen(
    async (_, response) => void response.end('x'),
    { httpHost: '127.0.0.1', httpPort: 0, httpProxies: [], httpKeepAlive: 75_000 },
    { connections: 3, perNetwork: 3 },
  );
  t.teardown(server.close);
  const ask = async () => {
    const socket = connect(server.port, '127.0.0.1');
    t.teardown(() => socket.destroy());
    socket.on('error', () => {});
    socket.write('GET / HTTP/1.1\r\nHost: x\r\n\r\n');
    // A refusal may come as a reset.
    return new Promise<boolean>((resolve) => {
      socket.once('data', () => resolve(true));
      socket.once('close', () => resolve(false));
    });
  };
  t.deepEqual([await ask(), await ask(), await ask()], [true, true, true]);
  t.false(await ask(), 'refused, and the idle ones are closed');
  t.true(await ask());
});
