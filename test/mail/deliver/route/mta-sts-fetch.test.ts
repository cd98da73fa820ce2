/** The policy host as a stranger: what of it is believed, and what it is not allowed (RFC 8461 section 3.3). */

import { once } from 'node:events';
/** The policy host as a stranger: what of it is believed, and what it is not allowed (RFC 8461 section 3.3). */
import net, { getDefaultAutoSelectFamilyAttemptTimeout } from 'node:net';
import test, { type ExecutionContext } from 'ava';
import { startDns, type Zone } from '#lab/dns/dns.ts';
import { mxPem } from '#lab/mx/mx.ts';
import { type PolicyHost, policy, startPolicyHost, trustAuthority } from '#lab/mx/policy-host.ts';
import { createFetchPolicy, type PolicyHostOptions } from '#mail/deliver/route/fetch-mta-sts.ts';
import { createResolver } from '#mail/deliver/route/resolver.ts';

trustAuthority();

const text = policy('enforce', ['mx1.invalid']);
type Answer = PolicyHost['policies'][string];

async function start(t: ExecutionContext, answer: Answer = text, zone: Zone = {}, pem?: Buffer) {
  const host = await startPolicyHost({ 'there.invalid': answer, 'nobody.invalid': answer }, pem && { pem });
  t.teardown(host.close);
  const dns = await startDns({ 'mta-sts.there.invalid': { A: [host.host] }, ...zone });
  t.teardown(dns.close);
  const options = {
    resolve: createResolver([dns.address]),
    allowPrivate: true,
    port: host.port,
  };
  const fetch = (others: Partial<PolicyHostOptions> = {}, domain = 'there.invalid') =>
    createFetchPolicy({ ...options, ...others })(domain);
  return { host, fetch };
}

const plain = { 'content-type': 'text/plain' };

test('a policy is returned as its host sent it', async (t) => {
  const { fetch } = await start(t);
  t.is(await fetch(), text);
});

test('a policy host that is an alias', async (t) => {
  const { fetch } = await start(t, text, {
    'mta-sts.there.invalid': { CNAME: ['hosted.invalid'] },
    'hosted.invalid': { A: ['127.0.0.1'] },
  });
  t.is(await fetch(), text);
});

test('where one address of the policy host does not answer, the next is tried', async (t) => {
  const { fetch } = await start(t, text, { 'mta-sts.there.invalid': { A: ['127.0.0.1'], AAAA: ['::1'] } });
  t.is(await fetch(), text);
  t.true(getDefaultAutoSelectFamilyAttemptTimeout() >= 2_000, 'also where the first is far away');
});

const strangers: [what: string, answer: Answer, message: string | RegExp][] = [
  [
    'a redirect is not followed',
    (_request, response) => response.writeHead(301, { location: 'https://mta-sts.other.invalid/' }).end(),
    'the policy host answers HTTP 301',
  ],
  ['nor is anything but 200 a policy', (_, response) => response.writeHead(203, plain).end(text), /HTTP 203/],
  [
    'nor what is not text/plain',
    (_, response) => response.writeHead(200, { 'content-type': 'text/html' }).end(text),
    'the policy\'s type is "text/html"',
  ],
  ['nor what has no type', (_, response) => response.writeHead(200).end(text), 'the policy\'s type is ""'],
  [
    'more than 64 KB are not read',
    (_, response) => response.writeHead(200, plain).end('x'.repeat(65_537)),
    'the policy is larger than 65536 bytes',
  ],
  [
    'an endless policy is broken off',
    (_, response) => {
      response.writeHead(200, plain);
      const pour = () => {
        while (!response.destroyed && response.write('x'.repeat(10_000)));
      };
      response.on('drain', pour);
      pour();
    },
    'the policy is larger than 65536 bytes',
  ],
  [
    'a policy that breaks off is none',
    (_, response) => {
      response.writeHead(200, { ...plain, 'content-length': text.length });
      response.write(text.slice(0, 20), () => response.destroy());
    },
    /aborted/,
  ],
];

for (const [what, answer, message] of strangers) {
  test(what, async (t) => {
    const { fetch } = await start(t, answer);
    await t.throwsAsync(fetch(), { message });
  });
}

test('a policy host that takes too long is given up, in the body too', async (t) => {
  const silent = await start(t, () => {});
  await t.throwsAsync(silent.fetch({ timeoutMs: 300 }), {
    message: 'mta-sts.there.invalid took longer than 0.3 s',
  });
  const slow = await start(t, (_, response) => void response.writeHead(200, plain).write('version'));
  await t.throwsAsync(slow.fetch({ timeoutMs: 300 }), { message: /took longer than 0.3 s/ });
});

test('a part of a policy is no policy, also where only the end of the connection would end it', async (t) => {
  const half = text.slice(0, 40);
  const { fetch, host } = await start(t, (_, response) => {
    response.writeHead(200, plain).write(half, () => response.destroy());
  });
  await t.throwsAsync(fetch(), { message: 'aborted' });

  // Only the host itself could end TLS as it should; what is between can reset the connection.
  let isAnswered = false;
  host.policies['there.invalid'] = (_, { socket }) => {
    isAnswered = true;
    socket!.write(`HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\n\r\n${half}`);
  };
  const between = net
    .createServer((client) => {
      const upstream = net.connect(host.port, host.host);
      client.on('error', () => upstream.destroy()).pipe(upstream);
      upstream.on('data', (data) => client.write(data, () => isAnswered && client.resetAndDestroy()));
      upstream.on('error', () => {});
    })
    .listen(0, host.host);
  await once(between, 'listening');
  t.teardown(() => between.close());
  await t.throwsAsync(fetch({ port: (between.address() as net.AddressInfo).port }), {
    message: /ECONNRESET/,
  });
});

test('a certificate of an unknown authority is refused', async (t) => {
  const { host, fetch } = await start(t, text, {}, mxPem);
  await t.throwsAsync(fetch(), { message: 'mta-sts.there.invalid: self-signed certificate' });
  t.deepEqual(host.asked, []);
});

test('a certificate for another name is refused', async (t) => {
  const { host, fetch } = await start(t, text, { 'mta-sts.nobody.invalid': { A: ['127.0.0.1'] } });
  const message = 'mta-sts.nobody.invalid: its certificate is for another name';
  await t.throwsAsync(fetch({}, 'nobody.invalid'), { message });
  t.deepEqual(host.asked, []);
});

test('addresses of private networks are not connected to, unless allowed', async (t) => {
  const { host, fetch } = await start(t);
  await t.throwsAsync(fetch({ allowPrivate: false }), {
    message: 'mta-sts.there.invalid is at 127.0.0.1, a private address',
  });
  for (const address of [
    '10.1.2.3',
    '169.254.169.254',
    '192.168.1.1',
    '::1',
    'fd00::1',
    '::ffff:127.0.0.1',
  ]) {
    const type = net.isIPv6(address) ? 'AAAA' : 'A';
    const other = await start(t, text, { 'mta-sts.there.invalid': { [type]: [address] } });
    await t.throwsAsync(other.fetch({ allowPrivate: false }), { message: /, a private address$/ }, address);
  }
  t.deepEqual(host.asked, []);
});

test('a policy host where nothing listens', async (t) => {
  const { host, fetch } = await start(t, text, {
    'mta-sts.two.invalid': { A: ['127.0.0.1', '127.0.0.2'] },
    'mta-sts.one.invalid': { A: ['127.0.0.1'] },
  });
  await host.close();
  await t.throwsAsync(fetch({}, 'two.invalid'), { message: /^mta-sts.two.invalid: .*ECONNREFUSED/ });
  await t.throwsAsync(fetch({}, 'one.invalid'), { message: /^mta-sts.one.invalid: connect ECONNREFUSED/ });
});

test('a policy host without an address, and one that cannot be looked up', async (t) => {
  const { fetch } = await start(t, text, { 'mta-sts.broken.invalid': 'SERVFAIL' });
  await t.throwsAsync(fetch({}, 'gone.invalid'), { message: 'mta-sts.gone.invalid has no address' });
  await t.throwsAsync(fetch({}, 'broken.invalid'), {
    message: 'mta-sts.broken.invalid could not be looked up (ESERVFAIL)',
  });
});
