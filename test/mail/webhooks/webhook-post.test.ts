/**
 * What an endpoint's URL may reach, and what its owner may cost us. The name servers are real ones that lie; what must
 * not be reached really listens, and notes who comes. One by one, for some of it is about time.
 */
import { once } from 'node:events';
import net from 'node:net';
import test, { type ExecutionContext } from 'ava';
import { type Dns, startDns, type Zone } from '#lab/dns/dns.ts';
import { authorizedPem, trustAuthority } from '#lab/mx/policy-host.ts';
import { startReceiver } from '#lab/scenes/webhook-receiver.ts';
import { column, table } from '#lab/table.ts';
import { until } from '#lab/until.ts';
import { createResolver } from '#mail/deliver/route/resolver.ts';
import { addressesOf } from '#mail/deliver/route/web-host-addresses.ts';
import { parseWebhookUrl } from '#mail/webhooks/endpoint-url.ts';
import { createDownload } from '#mail/webhooks/guarded-get.ts';
import { createPoster, type PosterOptions } from '#mail/webhooks/guarded-post.ts';

trustAuthority();

const never = new AbortController().signal;

async function start(t: ExecutionContext, zone: Zone = {}, options: Partial<PosterOptions> = {}) {
  const dns: Dns = await startDns(zone);
  t.teardown(dns.close);
  const resolve = createResolver([dns.address]);
  const poster = createPoster({ resolve, allowPrivate: false, timeoutMs: 300_000, ...options });
  t.teardown(poster.close);
  const post = (url: string, stopped = never) =>
    poster.post({ url, headers: { 'webhook-id': 'id' }, body: '{}' }, stopped);
  return { dns, post };
}

/** Each is refused before anything is connected to, with the reason in words. */
const disguises: [what: string, records: Zone[string]][] = table('webhooks/private-names');

for (const [what, records] of disguises) {
  test.serial(`a name at ${what} is refused`, async (t) => {
    const { post, dns } = await start(t, { 'evil.invalid': records, 'inside.invalid': { A: ['127.0.0.1'] } });
    const receiver = await startReceiver(t);
    await t.throwsAsync(post(`http://evil.invalid:${receiver.port}/`), {
      message: /evil\.invalid is at .*private/,
    });
    t.is(receiver.sockets.count, 0);
    t.true(dns.queries.some(({ name }) => name === 'evil.invalid'));
  });
}

const spellings = column('webhooks/private-addresses');

for (const host of spellings) {
  test.serial(`http://${host} is refused, when it is added and when it is posted to`, async (t) => {
    const { post, dns } = await start(t);
    const receiver = await startReceiver(t);
    const url = `http://${host}:${receiver.port}/`;
    t.regex((parseWebhookUrl(url, false) as { problem: string }).problem, /private or special address/);
    await t.throwsAsync(post(url), { message: /private address/ });
    t.is(receiver.sockets.count, 0);
    t.deepEqual(dns.queries, [], 'DNS is not asked');
  });
}

test.serial('of several addresses the private ones are left out', async (t) => {
  const dns = await startDns({ 'both.invalid': { A: ['127.0.0.1', '9.9.9.9'], AAAA: ['::1'] } });
  t.teardown(dns.close);
  const found = await addressesOf('both.invalid', {
    resolve: createResolver([dns.address]),
    allowPrivate: false,
  });
  t.deepEqual(found, [{ address: '9.9.9.9', family: 4 }]);
});

test.serial(
  'a name is resolved and checked at each new connection, once, so that its address cannot be exchanged between (DNS rebinding)',
  async (t) => {
    // In this test 127.0.0.2 is a public address, and only 127.0.0.1 is not.
    const { post, dns } = await start(t, { 'moving.invalid': { A: ['127.0.0.2'] } }, { allowPrivate: true });
    const outside = await startReceiver(t, { host: '127.0.0.2' });
    const url = `http://moving.invalid:${outside.port}/`;
    t.is((await post(url)).status, 204);
    t.is(dns.queries.filter(({ type }) => type === 'A').length, 1, 'checked and connected by one answer');
    const inside = await startReceiver(t, { host: '127.0.0.1', port: outside.port });
    dns.set({ 'moving.invalid': { A: ['127.0.0.1'] } });
    t.is((await post(url)).status, 204);
    t.is(inside.sockets.count, 0, 'the kept connection stays with the address that was checked');
    t.is(outside.sockets.count, 1);
    const strict = await start(t, { 'moving.invalid': { A: ['127.0.0.1'] } });
    await t.throwsAsync(strict.post(url), { message: /private/ });
    t.is(inside.sockets.count, 0);
  },
);

test.serial('a name that has moved to the inside by the next try is refused', async (t) => {
  const { post, dns } = await start(t, { 'moving.invalid': 'SERVFAIL' }, { timeoutMs: 5_000 });
  const inside = await startReceiver(t);
  const url = `http://moving.invalid:${inside.port}/`;
  await t.throwsAsync(post(url));
  dns.set({ 'moving.invalid': { A: ['127.0.0.1'] } });
  await t.throwsAsync(post(url), { message: 'moving.invalid is at 127.0.0.1, a private address' });
  t.is(inside.sockets.count, 0);
});

test.serial('a redirect to the inside is not followed', async (t) => {
  const { post } = await start(t, { 'app.invalid': { A: ['127.0.0.1'] } }, { allowPrivate: true });
  const inside = await startReceiver(t);
  const receiver = await startReceiver(t);
  for (const status of [301, 302, 303, 307, 308]) {
    receiver.answer = (_, response) => response.writeHead(status, { location: inside.url }).end();
    t.is((await post(`http://app.invalid:${receiver.port}/`)).status, status);
  }
  t.is(inside.sockets.count, 0);
});

test.serial('what a URL may be', (t) => {
  const urlOf = (url: string, allowPrivate: boolean) =>
    (parseWebhookUrl(url, allowPrivate) as { url?: string }).url;
  const faultOf = (url: string) => (parseWebhookUrl(url, false) as { problem?: string }).problem ?? null;
  t.is(urlOf(' HTTPS://App.Example.com:443/a?b=1#c ', false), 'https://app.example.com/a?b=1');
  t.is(urlOf('http://app.example.com:8080/', false), 'http://app.example.com:8080/');
  for (const url of [
    '',
    'app.example.com',
    'ftp://app.example.com',
    'file:///etc/passwd',
    'javascript:1',
    'http://',
  ]) {
    t.regex(faultOf(url)!, /is not a URL such as/, url);
  }
  t.regex(faultOf('https://me:word@app.example.com/')!, /user name or password/);
  t.regex(faultOf('http://app.example.com:25/')!, /port 25 is for another protocol/);
  t.regex(faultOf(`https://app.example.com/${'a'.repeat(2048)}`)!, /longer/);
  t.is(urlOf('http://127.0.0.1:25/', true), 'http://127.0.0.1:25/');
});

test.serial('TLS is verified: the name, and who vouches for it', async (t) => {
  const zone = { 'mx1.invalid': { A: ['127.0.0.1'] }, 'other.example': { A: ['127.0.0.1'] } };
  const { post } = await start(t, zone, { allowPrivate: true });
  const receiver = await startReceiver(t, { pem: authorizedPem });
  t.is((await post(`https://mx1.invalid:${receiver.port}/`)).status, 204);
  await t.throwsAsync(post(`https://other.example:${receiver.port}/`), {
    message: /^other\.example: Hostname\/IP does not match/,
  });
  t.is(receiver.requests.length, 1);
});

/** A server that speaks what it likes. */
async function rawServer(t: ExecutionContext, speak: (socket: net.Socket) => void) {
  const open = new Set<net.Socket>();
  const server = net.createServer((socket) => {
    open.add(socket);
    socket.on('close', () => open.delete(socket)).on('error', () => {});
    speak(socket);
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  t.teardown(() => {
    for (const socket of open) socket.destroy();
    server.close();
  });
  const { port } = server.address() as net.AddressInfo;
  return { url: `http://127.0.0.1:${port}/`, open };
}

const dribble = (head: string, drop: string) => (socket: net.Socket) => {
  socket.write(head);
  const timer = setInterval(() => socket.write(drop), 20);
  socket.on('close', () => clearInterval(timer));
};

test.serial('an answer that comes too slowly is given up, in its headers too', async (t) => {
  const { post } = await start(t, {}, { allowPrivate: true, timeoutMs: 400 });
  const { url, open } = await rawServer(t, dribble('HTTP/1.1 200 OK\r\n', 'X: y\r\n'));
  await t.throwsAsync(post(url), { message: '127.0.0.1 did not answer within 0.4 s' });
  await until(() => open.size === 0, { what: 'the connection to be closed' });
});

test.serial('an endpoint that switches protocols has not answered', async (t) => {
  const { post } = await start(t, {}, { allowPrivate: true });
  const { url } = await rawServer(t, (socket) =>
    socket.write('HTTP/1.1 101 Switching Protocols\r\nconnection: upgrade\r\nupgrade: x\r\n\r\n'),
  );
  await t.throwsAsync(post(url), { message: '127.0.0.1 ended the connection without an answer' });
});

test.serial('the status decides: a body that never ends is cut, and is no failure', async (t) => {
  const { post } = await start(t, {}, { allowPrivate: true });
  const { url, open } = await rawServer(t, dribble('HTTP/1.1 200 OK\r\n\r\n', 'drop '));
  const { status, text } = await post(url);
  t.is(status, 200);
  t.regex(text, /^drop /);
  await until(() => open.size === 0, { what: 'the connection to be closed' });
});

test.serial('of a body without end a kilobyte is kept', async (t) => {
  const { post } = await start(t, {}, { allowPrivate: true });
  const receiver = await startReceiver(t);
  receiver.answer = (_, response) => {
    const more = () => {
      while (!response.destroyed && response.write('é'.repeat(8000)));
    };
    response.on('drain', more);
    more();
  };
  const { text } = await post(receiver.url);
  t.is(text, 'é'.repeat(512));
});

test.serial('characters that no database takes, or that are cut in two, do no harm', async (t) => {
  const { post } = await start(t, {}, { allowPrivate: true });
  const receiver = await startReceiver(t);
  receiver.answer = (_, response) => response.end(`\0${'a'.repeat(1022)}é`);
  t.is((await post(receiver.url)).text, `\uFFFD${'a'.repeat(1022)}`);
});

for (const [what, said] of [
  ['garbage', 'hello\r\n'],
  ['headers without end', `HTTP/1.1 200 OK\r\nX: ${'y'.repeat(200_000)}`],
  ['nothing', ''],
] as const) {
  test.serial(`${what} instead of an answer is a failure with a sentence`, async (t) => {
    const { post } = await start(t, {}, { allowPrivate: true });
    const { url } = await rawServer(t, (socket) => socket.end(said));
    const error = await t.throwsAsync(post(url));
    t.regex(error.message, /^127\.0\.0\.1[: ]/);
    t.notRegex(error.message, /\n/);
  });
}

test.serial('an endpoint where nothing listens is a failure with a sentence', async (t) => {
  const zone: Zone = { 'none.invalid': { A: ['127.0.0.9'] }, 'broken.invalid': 'SERVFAIL' };
  const { post } = await start(t, zone, { allowPrivate: true });
  await t.throwsAsync(post('http://none.invalid:1/'), { message: 'none.invalid refuses the connection' });
  await t.throwsAsync(post('http://nowhere.invalid/'), { message: 'nowhere.invalid has no address' });
  await t.throwsAsync(post('http://broken.invalid/'), { message: /broken\.invalid could not be looked up/ });
});

test.serial('connections are kept; one that was closed meanwhile is no failure', async (t) => {
  const { post } = await start(t, {}, { allowPrivate: true });
  let served = 0;
  const { url, open } = await rawServer(t, (socket) => {
    socket.on('data', () => {
      served += 1;
      // The second request on a connection finds it closed.
      if (served === 2) socket.resetAndDestroy();
      else socket.write('HTTP/1.1 204 No Content\r\n\r\n');
    });
  });
  t.is((await post(url)).status, 204);
  t.is(open.size, 1);
  t.is((await post(url)).status, 204);
  t.is((await post(url)).status, 204);
  t.is(served, 4);
});

test.serial('a stop ends a post at once', async (t) => {
  const { post } = await start(t, {}, { allowPrivate: true });
  const receiver = await startReceiver(t);
  receiver.answer = () => {};
  const stopping = new AbortController();
  const posted = post(receiver.url, stopping.signal);
  await receiver.received(1);
  stopping.abort(new Error('stopped'));
  await t.throwsAsync(posted, { message: 'stopped' });
});

/** Writes the beginning and then the same again and again. */
async function flooder(t: ExecutionContext, begin: string, again: string): Promise<string> {
  const piece = Buffer.from(again.repeat(1_000));
  const server = net.createServer((socket) => {
    const write = () => {
      while (!socket.destroyed && socket.write(piece));
      socket.once('drain', write);
    };
    socket
      .on('error', () => {})
      .once('data', () => {
        socket.write(begin);
        write();
      });
  });
  t.teardown(() => server.close());
  await once(server.listen(0, '127.0.0.1'), 'listening');
  return `http://127.0.0.1:${(server.address() as net.AddressInfo).port}/`;
}

test.serial(
  'interim responses without end, and a file in chunks of a byte, are given up at once',
  async (t) => {
    const { post, dns } = await start(t, {}, { allowPrivate: true });
    const download = createDownload({ resolve: createResolver([dns.address]), allowPrivate: true });
    let taken = 0;
    const get = (url: string) =>
      download(
        url,
        async (bytes) => {
          taken += bytes;
        },
        never,
      );
    const interim = await flooder(t, '', 'HTTP/1.1 103 x\r\n\r\n');
    await t.throwsAsync(post(interim), { message: /more than 10 interim responses/ });
    await t.throwsAsync(get(interim), { message: /more than 10 interim responses/ });
    const chunks = await flooder(t, 'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n', '1\r\na\r\n');
    await t.throwsAsync(get(chunks), { message: /in chunks of a few bytes/ });
    t.true(taken < 1_000_000);
  },
);
