/**
 * The limits on what one client can make the HTTP server do and hold: bodies with too many members, bodies that do not
 * arrive, connections that stay open. Every request goes to a real server over a socket.
 */
import { once } from 'node:events';
import { request as httpRequest } from 'node:http';
import { type AddressInfo, connect, type Socket, createServer as tcpServer } from 'node:net';
import { gunzipSync } from 'node:zlib';
import test from 'ava';
import { setLimits } from '#accounts/rows/organizations.ts';
import { limitNetworks } from '#front/http/connections-per-network.ts';
import { listen } from '#front/http/http-server.ts';
import { contextOfFile } from '#lab/context-of-file.ts';
import { costsAtMost, stallsAtMost } from '#lab/cost.ts';
import { createTenant, insertTenant, startWorld, type World } from '#lab/scenes/world.ts';
import { until } from '#lab/until.ts';

const megabyte = 1_000_000;
const sendPath = '/api/public/email/send';

let world: World;
const context = contextOfFile();

test.before(async () => {
  world = await startWorld(context, { settings: { POSTERN_HTTP_CONCURRENCY: '16' } });
});

interface Posted {
  status: number;
  text: string;
  headers: Record<string, unknown>;
}

/** A large body is written in pieces, and the response can come before its end. */
function post(path: string, body: Buffer, method = 'POST', type = 'application/json'): Promise<Posted> {
  return new Promise((resolve, reject) => {
    const headers = {
      authorization: `Bearer ${world.key}`,
      'content-type': type,
      'content-length': body.length,
    };
    const call = httpRequest(world.url() + path, { method, headers, agent: false }, async (response) => {
      let text = '';
      for await (const chunk of response.setEncoding('utf8')) text += chunk;
      resolve({ status: response.statusCode!, text, headers: response.headers });
    });
    call.on('error', reject);
    call.end(body);
  });
}

const send = { from: 'app@sender.invalid', to: 'ann@there.invalid', subject: 'Hello', text: 'Hello' };

interface Endpoint {
  method?: string;
  path: string;
  good: object;
  members: string[];
}

const endpoints = (webhook: string): Endpoint[] => [
  {
    path: sendPath,
    good: send,
    members: [
      ...['to', 'from', 'subject', 'html', 'text', 'replyTo', 'attachments', 'headers', 'tags', 'tracking'],
      ...['idempotencyKey', 'unknown'],
    ],
  },
  { path: '/api/public/domains', good: {}, members: ['name'] },
  { method: 'PATCH', path: '/api/public/domains/sender.invalid', good: {}, members: ['tracking', 'tls'] },
  { path: '/api/public/keys', good: { label: 'x' }, members: ['label', 'scopes'] },
  { path: '/api/public/suppressions', good: {}, members: ['address', 'reason'] },
  { path: '/api/public/webhooks', good: {}, members: ['url', 'events'] },
  { method: 'PATCH', path: `/api/public/webhooks/${webhook}`, good: {}, members: ['events', 'enabled'] },
  { path: `/api/public/webhooks/${webhook}/replay`, good: {}, members: ['eventId', 'failed', 'since'] },
];

/** A member whose value has this many bytes. */
const floods: Record<string, (bytes: number) => string> = {
  'objects in an array': (bytes) => `[${'{},'.repeat(bytes / 3)}{}]`,
  'members of an object': (bytes) =>
    `{${Array.from({ length: bytes / 12 }, (_, n) => `"k${n}":1,`).join('')}"k":1}`,
  'numbers in an array': (bytes) => `[${'1,'.repeat(bytes / 2)}1]`,
  'nested arrays': (bytes) => '['.repeat(bytes / 2) + ']'.repeat(bytes / 2),
};

function bodyOf({ good }: Endpoint, member: string, value: string): Buffer {
  const { [member]: _, ...rest } = good as Record<string, unknown>;
  return Buffer.from(
    `${JSON.stringify(rest).slice(0, -1)}${Object.keys(rest).length > 0 ? ',' : ''}"${member}":${value}}`,
  );
}

/** In `npm test`, 20 MB go to one member alone: a body with that many members is refused before its members have names. */
const isLarge = ({ path, members }: Endpoint, member: string) =>
  process.env.TEST_SLOW ? path === sendPath || member === members[0] : path === sendPath && member === 'tags';

for (const [what, flood] of Object.entries(floods)) {
  test.serial(
    `20 MB of ${what} at any member of any endpoint: a short refusal, and others go on`,
    async (t) => {
      const { body } = await world.call('POST', '/api/public/webhooks', {
        body: JSON.stringify({ url: 'https://hooks.example.com/' }),
      });
      // The large ones are refused by their members where the endpoint takes 20 MB, by their size elsewhere; the small ones
      // are looked at.
      const floodsOf = [20 * megabyte, 10_000].map((bytes) => flood(bytes));
      for (const endpoint of endpoints(body.webhook.id))
        for (const member of endpoint.members)
          for (const value of isLarge(endpoint, member) ? floodsOf : floodsOf.slice(1)) {
            const bytes = bodyOf(endpoint, member, value);
            const name = `${endpoint.path} ${member} ${bytes.length}`;
            const ask = async () => {
              const answer = await post(endpoint.path, bytes, endpoint.method);
              // What nobody knows is ignored, however much it is, up to the bound.
              const isIgnored = ['unknown', 'tracking'].includes(member) && bytes.length < megabyte;
              t.true(isIgnored || answer.status === 400, `${name}: ${answer.status}`);
              t.true(answer.text.length < 100_000, `${name}: ${answer.text.length} bytes`);
            };
            await stallsAtMost(t, 200, ask, name);
          }
      await world.call('DELETE', `/api/public/webhooks/${body.webhook.id}`);
    },
  );

  test.serial(`a list of suppressions that is ${what}: a short refusal`, async (t) => {
    const list = Buffer.from(flood(9 * megabyte));
    const { status, text } = await post('/api/public/suppressions.csv', list, 'POST', 'text/csv');
    t.is(status, 400);
    t.true(text.length < 10_000);
  });
}

/** One request, as it goes over the wire. */
async function postInChunks(body: string, chunkSize: number, headers: string[] = []): Promise<string> {
  const socket = connect(Number(new URL(world.url()).port), '127.0.0.1').setEncoding('utf8');
  const own = [`Authorization: Bearer ${world.key}`, 'Content-Type: application/json', 'Connection: close'];
  const head = [
    `POST ${sendPath}?dryRun=true HTTP/1.1`,
    'Host: x',
    ...own,
    'Transfer-Encoding: chunked',
    ...headers,
  ];
  const chunks = body.match(new RegExp(`.{1,${chunkSize}}`, 'gs'))!;
  const written = chunks.map((chunk) => `${chunk.length.toString(16)}\r\n${chunk}\r\n`).join('');
  socket.on('error', () => {}).write(`${head.join('\r\n')}\r\n\r\n${written}0\r\n\r\n`);
  let answer = '';
  for await (const text of socket.iterator({ destroyOnReturn: true })) answer += text;
  return answer;
}

test.serial('a body in small chunks is taken, and one in very many of a byte is refused', async (t) => {
  const json = (length: number) =>
    JSON.stringify({ ...send, subject: `${length}`, text: 'x'.repeat(length) });
  for (const [length, chunkSize] of [
    [5_000, 1],
    [200_000, 20],
    [2_000_000, 5_000],
  ])
    t.regex(await postInChunks(json(length!), chunkSize!), /^HTTP\/1\.1 200 /);
  for (const headers of [[], ['Content-Encoding: gzip']])
    t.regex(
      await postInChunks(' '.repeat(3 * megabyte), 1, headers),
      /^HTTP\/1\.1 400 .*chunks of a few bytes/s,
    );
});

test.serial('bodies that are refused are not parsed any further, however they go on', async (t) => {
  const port = Number(new URL(world.url()).port);
  const head = `POST ${sendPath} HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n`;
  const endless = Buffer.from('1\r\na\r\n'.repeat(500_000));
  const eight = (more: string) =>
    Promise.all(
      Array.from({ length: 8 }, async () => {
        const socket = connect(port, '127.0.0.1').setEncoding('utf8');
        let answer = '';
        socket
          .on('error', () => {})
          .on('data', (text) => {
            answer += text;
          });
        socket.write(`${head}${more}\r\n`);
        socket.write(endless);
        await once(socket, 'close');
        t.regex(answer, more === '' ? /^HTTP\/1\.1 4(01|29) / : /^HTTP\/1\.1 400 .*chunks of a few bytes/s);
      }),
    );
  for (const more of ['', `Authorization: Bearer ${world.key}\r\n`]) {
    const ask = () => eight(more);
    await costsAtMost(t, 600, () => stallsAtMost(t, 300, ask), 'eight requests');
  }
});

test.serial('a million unknown members are refused before they are parsed', async (t) => {
  const members = Array.from({ length: 1_000_000 }, (_, n) => `"k ${n}":1`).join();
  const { status, text } = await post(sendPath, Buffer.from(`{"idempotencyKey":"k",${members}}`));
  t.is(status, 400);
  t.regex(JSON.parse(text).message, /more than 10,000 members and elements/);
});

test('a name of several megabytes is not repeated in the response', async (t) => {
  const name = 'n'.repeat(5 * megabyte);
  const fields = { headers: { [name]: 'x' }, tags: { [name]: 'x' } };
  const { status, text } = await post(sendPath, Buffer.from(JSON.stringify({ ...send, ...fields })));
  t.is(status, 400);
  t.true(text.length < 10_000, `${text.length} bytes`);
});

test('too many members are one issue, and at most a hundred other issues are listed', async (t) => {
  const many = (length: number, one: unknown) => Array.from({ length }, () => one);
  const object = (length: number) => Object.fromEntries(many(length, 0).map((_, n) => [`k${n}`, 1]));
  for (const [member, value] of Object.entries({
    to: many(5000, 1),
    attachments: many(4000, {}),
    tags: object(5000),
    headers: object(5000),
  })) {
    const { body } = await world.send({ [member]: value });
    t.is(body.error, 'VALIDATION_ERROR');
    const own = body.issues.filter(({ path }: { path: string[] }) => path[0] === member);
    t.is(own.length, 1, member);
    t.deepEqual(own[0].path, [member]);
  }
  const { body } = await world.send({ to: 'ann@there.invalid', attachments: many(1000, {}) });
  t.is(body.issues.length, 100);
  const { body: scopes } = await world.call('POST', '/api/public/keys', {
    body: JSON.stringify({ label: 'x', scopes: many(5000, 1) }),
  });
  t.is(scopes.issues.length, 1);
});

/** A send that announces 20 MB and sends little; resolves when the connection closes. */
async function slowSend(key: string, announced = 20 * megabyte): Promise<Socket & { answer: string }> {
  const socket = Object.assign(connect(Number(new URL(world.url()).port), '127.0.0.1'), { answer: '' });
  socket.on('error', () => {});
  socket.setEncoding('utf8').on('data', (text) => {
    socket.answer += text;
  });
  await once(socket, 'connect');
  const head = [`POST ${sendPath} HTTP/1.1`, 'Host: x', `Authorization: Bearer ${key}`];
  socket.write(
    `${[...head, 'Content-Type: application/json', `Content-Length: ${announced}`].join('\r\n')}\r\n\r\n{`,
  );
  return socket;
}

test('slow bodies of two organizations leave room for a third, and are disconnected after ten seconds', async (t) => {
  const keys = await Promise.all([1, 2].map(() => createTenant(world.db, world.config, world.dns)));
  const slow: Awaited<ReturnType<typeof slowSend>>[] = [];
  for (const key of keys) for (let n = 0; n < 16; n++) slow.push(await slowSend(key));
  const { status } = await world.send({ to: 'quick@there.invalid', text: 'x'.repeat(megabyte) });
  t.is(status, 200);
  await until(() => slow.filter(({ answer }) => /too slowly/.test(answer)).length > 0);
  const [cut] = slow.filter(({ answer }) => /too slowly/.test(answer));
  t.regex(cut!.answer, /^HTTP\/1\.1 400 .*\r\nConnection: close/is);
  for (const socket of slow) socket.destroy();
});

// Alone, or the other tests' bodies take the time in which these have to arrive.
test.serial(
  'a body that does not fit the memory budget is refused with 429 and counts in no window',
  async (t) => {
    const { db } = world;
    const { key, orgId } = await insertTenant(db, world.config, world.dns);
    const limits = { requestsPerSecond: 100, requestsPerDay: 100, emailsPerDay: null };
    await db.transaction((trx) => setLimits(trx, orgId, limits));
    // Together more than an organization may hold.
    const two = [await slowSend(key), await slowSend(key)];
    for (const socket of two) socket.write(' '.repeat(15.5 * megabyte));
    const refused = await world.clock.passUntil(
      () => two.find(({ answer }) => answer.includes('\r\n\r\n{')),
      { step: 100 },
    );
    t.regex(refused.answer, /^HTTP\/1\.1 429 .*"error":"RATE_LIMIT_EXCEEDED"/s);
    t.is((await db('daily_usage').where({ org_id: orgId }).first()).requests, 1, 'the other one');
    for (const socket of two) socket.destroy();
  },
);

test('every response has nosniff, and a large one is compressed if the client accepts that', async (t) => {
  const base = world.url();
  const get = async (path: string, accepted: string) => {
    const headers = { authorization: `Bearer ${world.key}`, 'accept-encoding': accepted };
    const call = httpRequest(base + path, { headers, agent: false }).end();
    const [response] = await once(call, 'response');
    const chunks: Buffer[] = [];
    for await (const chunk of response) chunks.push(chunk);
    return { bytes: Buffer.concat(chunks), headers: response.headers };
  };
  const script = /src="(\/docs\/[^"]+)"/.exec((await get('/docs', 'identity')).bytes.toString())![1]!;
  for (const path of [
    '/api/public/emails',
    '/dashboard/sign-in',
    '/t/o/x',
    '/health/live',
    '/metrics',
    '/docs',
    '/llms.txt',
    script,
    '/none',
  ]) {
    t.is((await get(path, 'identity')).headers['x-content-type-options'], 'nosniff', path);
  }
  for (const path of ['/api/public/openapi.json', script, '/api/public/suppressions.csv']) {
    const [plain, small] = [await get(path, 'identity'), await get(path, 'gzip, br')];
    t.is(plain.headers['content-encoding'], undefined);
    t.is(small.headers['content-encoding'], 'gzip', path);
    t.regex(small.headers.vary, /accept-encoding/i);
    t.is(small.headers['content-type'], plain.headers['content-type']);
    t.true(gunzipSync(small.bytes).equals(plain.bytes), path);
  }
  t.is((await get('/api/public/events', 'gzip')).headers['content-encoding'], undefined, 'it is small');
});

test('a connection is closed soon after a response that ends it, whatever the client does', async (t) => {
  const server = await listen(
    async (request, response) =>
      void response.writeHead(request.url === '/bad' ? 400 : 200, { Connection: 'close' }).end('x'),
    { httpHost: '127.0.0.1', httpPort: 0, httpProxies: [], httpKeepAlive: 5_000 },
  );
  t.teardown(server.close);
  const announced = 'POST /bad HTTP/1.1\r\nHost: x\r\nContent-Length: 1000\r\n\r\n';
  for (const [text, status] of [
    ['not HTTP\r\n\r\n', 400],
    ['GET / HTTP/1.1\r\n\r\n', 400],
    [announced, 400],
  ] as const) {
    // It never ends its own side.
    const socket = connect({ port: server.port, host: '127.0.0.1', allowHalfOpen: true });
    let answer = '';
    socket.on('data', (data) => {
      answer += data;
    });
    socket.write(text);
    await once(socket, 'end');
    t.true(answer.startsWith(`HTTP/1.1 ${status}`), answer);
    // Whoever writes to a connection that is gone is told so.
    const gone = once(socket, 'error');
    const timer = setInterval(() => socket.write('x'), 100);
    await gone;
    clearInterval(timer);
  }
});

test('requests of one connection are handled one by one, in order, and very many end it', async (t) => {
  const handled: string[] = [];
  let [running, most] = [0, 0];
  const server = await listen(
    async (request, response) => {
      running += 1;
      most = Math.max(most, running);
      handled.push(request.url!);
      // The first takes the longest.
      await new Promise((done) => setTimeout(done, handled.length === 1 ? 100 : 0));
      running -= 1;
      response.end(`${request.url}\n`);
    },
    { httpHost: '127.0.0.1', httpPort: 0, httpProxies: [], httpKeepAlive: 5_000 },
  );
  t.teardown(server.close);
  const pipelined = (count: number, before = '') =>
    before + Array.from({ length: count }, (_, n) => `GET /${n} HTTP/1.1\r\nHost: x\r\n\r\n`).join('');
  const open = (text: string) => {
    const socket = connect(server.port, '127.0.0.1');
    const it = Object.assign(
      socket.on('error', () => {}),
      { answer: '' },
    );
    it.setEncoding('utf8').on('data', (data) => (it.answer += data));
    it.write(text);
    return it;
  };
  const few = open(pipelined(10, 'POST /begin HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\n\r\nabc'));
  await until(() => few.answer.includes('/9\n'));
  const order = ['/begin', ...Array.from({ length: 10 }, (_, n) => `/${n}`)];
  t.deepEqual(handled, order);
  t.deepEqual(few.answer.match(/^\/\w+$/gm), order);
  few.write(pipelined(3));
  await until(() => few.answer.match(/^\/\w+$/gm)!.length === 14);
  t.is(most, 1);
  few.destroy();

  handled.length = 0;
  const many = open(pipelined(1_500));
  await once(many, 'close');
  t.true(handled.length <= 1, 'none behind the first is begun for a connection that has ended');
});

test('connections are limited in total and for each network', async (t) => {
  const server = tcpServer()
    .on(
      'connection',
      limitNetworks(2, (address) => address === '127.0.0.9'),
    )
    .on('connection', (socket) => socket.write('x'));
  await once(server.listen(0, '127.0.0.1'), 'listening');
  const sockets: Socket[] = [];
  t.teardown(() => {
    for (const socket of sockets) socket.destroy();
    server.close();
  });
  const { port } = server.address() as AddressInfo;
  const isOpen = async (localAddress: string) => {
    const socket = connect({ port, host: '127.0.0.1', localAddress });
    sockets.push(socket);
    socket.on('error', () => {});
    return Promise.race([once(socket, 'data').then(() => true), once(socket, 'close').then(() => false)]);
  };
  const opened = async (...addresses: string[]) => {
    const all = [];
    for (const address of addresses) all.push(await isOpen(address));
    return all;
  };
  t.deepEqual(await opened('127.0.0.2', '127.0.0.2', '127.0.0.2', '127.0.0.3'), [true, true, false, true]);
  t.deepEqual(await opened('127.0.0.9', '127.0.0.9', '127.0.0.9'), [true, true, true], 'a proxy');
  sockets[0]!.destroy();
  await until(async () => isOpen('127.0.0.2'));

  const bounded = await listen(
    async (_, response) => void response.end('x'),
    { httpHost: '127.0.0.1', httpPort: 0, httpProxies: [], httpKeepAlive: 5_000 },
    { connections: 2, perNetwork: 1 },
  );
  t.teardown(bounded.close);
  const asked = await Promise.all(
    [1, 2, 3].map(() => {
      const socket = connect(bounded.port, '127.0.0.1');
      sockets.push(socket);
      socket.on('error', () => {});
      socket.write('GET / HTTP/1.1\r\nHost: x\r\n\r\n');
      return new Promise<boolean>((resolve) => {
        socket.once('data', () => resolve(true));
        socket.once('close', () => resolve(false));
      });
    }),
  );
  t.is(asked.filter(Boolean).length, 2, 'this machine is a proxy; it is limited in all');
});

test('a URL of more than 8,000 characters is refused, in an answer that does not repeat it', async (t) => {
  const world = await startWorld(t);
  const long = '/'.repeat(12_000);
  for (const path of [`/api/public/emails/${long}`, `/v3/sender.invalid/events?a=${long}`]) {
    const response = await fetch(world.url() + path, { headers: { authorization: `Bearer ${world.key}` } });
    t.is(response.status, 400, path.slice(0, 40));
    t.true((await response.text()).length < 1_000);
  }
});
