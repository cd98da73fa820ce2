/**
 * Bodies that clients compress (axios and Go clients behind a compressing transport, SendGrid's `gzip` option): decoded within
 * the limits of the decoded body, or refused by the name of the coding.
 */
import { once } from 'node:events';
import { connect } from 'node:net';
import { brotliCompressSync, deflateRawSync, deflateSync, gzipSync } from 'node:zlib';
import test from 'ava';
import { startWorld, type World } from '#lab/scenes/world.ts';
import { until } from '#lab/until.ts';

const mail = (fields: object = {}) => ({
  from: 'app@sender.invalid',
  to: 'ann@there.invalid',
  subject: `Hello ${Math.random()}`,
  text: 'Hi',
  ...fields,
});

async function post(world: World, path: string, body: Buffer, headers: Record<string, string>) {
  const response = await fetch(`${world.url()}${path}`, {
    method: 'POST',
    headers: { authorization: `Bearer ${world.key}`, 'content-type': 'application/json', ...headers },
    body: new Uint8Array(body),
  });
  return { status: response.status, text: await response.text() };
}

const send = (world: World, body: Buffer, encoding: string) =>
  post(world, '/api/public/email/send', body, { 'content-encoding': encoding });

test('a compressed body is taken by our API, the dialects and the import', async (t) => {
  const world = await startWorld(t);
  const json = () => Buffer.from(JSON.stringify(mail()));
  for (const [encoding, body] of [
    ['gzip', gzipSync(json())],
    ['x-gzip', gzipSync(json())],
    ['GZIP', gzipSync(json())],
    ['deflate', deflateSync(json())],
    ['identity', json()],
    ['gzip', Buffer.concat([gzipSync('  '), gzipSync(json())])],
  ] as const) {
    const { status, text } = await send(world, body, encoding);
    t.is(status, 200, `${encoding}: ${text}`);
  }
  const large = mail({ html: `<p>${'x'.repeat(1_000_000)}</p>` });
  t.is((await send(world, gzipSync(JSON.stringify(large)), 'gzip')).status, 200);
  const gzip = { 'content-encoding': 'gzip' };
  t.is((await post(world, '/emails', gzipSync(JSON.stringify(mail())), gzip)).status, 200);
  const form = gzipSync(new URLSearchParams(mail() as never).toString());
  const mailgun = {
    ...gzip,
    'content-type': 'application/x-www-form-urlencoded',
    authorization: `Basic ${Buffer.from(`api:${world.key}`).toString('base64')}`,
  };
  t.is((await post(world, '/v3/sender.invalid/messages', form, mailgun)).status, 200);
  const csv = await post(world, '/api/public/suppressions.csv', gzipSync('a@b.invalid\n'), {
    ...gzip,
    'content-type': 'text/csv',
  });
  t.like(JSON.parse(csv.text), { added: 1 });
});

test('a coding that is not decoded is refused by its name', async (t) => {
  const world = await startWorld(t);
  for (const encoding of [
    'br',
    'zstd',
    'compress',
    'gzip, gzip',
    'constructor',
    'aws-chunked',
    'x'.repeat(500),
  ]) {
    const { status, text } = await send(world, brotliCompressSync('{}'), encoding);
    t.is(status, 400, encoding);
    t.like(JSON.parse(text), { error: 'BAD_REQUEST' });
    t.true(
      text.includes(
        `Content-Encoding \\"${encoding.slice(0, 50)}\\" is not supported. Send the body with gzip`,
      ),
      text,
    );
  }
});

test('what is not compressed, or cut off, or too large once decoded, is refused', async (t) => {
  const world = await startWorld(t);
  const whole = gzipSync(JSON.stringify(mail()));
  for (const [encoding, body] of [
    ['gzip', Buffer.from('{"to":"ann@there.invalid"}')],
    ['gzip', whole.subarray(0, -10)],
    ['gzip', deflateSync('{}')],
    ['deflate', whole],
    ['deflate', deflateRawSync('{}')],
  ] as const) {
    const { status, text } = await send(world, body, encoding);
    t.is(status, 400);
    t.regex(text, /not what its Content-Encoding says, or it has been cut off/);
  }
  const bombs = {
    spaces: Buffer.alloc(48 * 1024 * 1024, ' '),
    text: Buffer.concat([Buffer.from('{"html":"'), Buffer.alloc(32 * 1024 * 1024, 'x')]),
  };
  for (const [what, bomb] of Object.entries(bombs)) {
    const { status, text } = await send(world, gzipSync(bomb), 'gzip');
    t.is(status, 400);
    t.regex(text, /larger than 20 MiB|more than 20,971,520/, what);
  }
  const members = gzipSync(`{"x":[${'1,'.repeat(3_000_000)}1]}`);
  t.is((await send(world, members, 'gzip')).status, 400);
  // Nothing of it is held, and the server goes on.
  t.is((await send(world, gzipSync(JSON.stringify(mail())), 'gzip')).status, 200);
});

test('bytes that decode to nothing are limited, and a client that goes away leaves nothing behind', async (t) => {
  const world = await startWorld(t);
  const { port, hostname } = new URL(world.url());
  const head = (length: number) =>
    `POST /api/public/email/send HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${world.key}\r\nContent-Type: application/json\r\nContent-Encoding: gzip\r\nContent-Length: ${length}\r\n\r\n`;
  // Stored blocks of no bytes.
  const begin = gzipSync('').subarray(0, 10);
  const empty = Buffer.alloc(1024 * 1024 - ((1024 * 1024) % 5));
  for (let at = 0; at < empty.length; at += 5) empty.set([0, 0, 0, 0xff, 0xff], at);
  const socket = connect(Number(port), hostname);
  t.teardown(() => socket.destroy());
  let answer = '';
  socket.on('data', (data) => {
    answer += data;
  });
  socket.on('error', () => {});
  socket.write(head(64 * 1024 * 1024));
  socket.write(begin);
  const isOver = new Promise((resolve) => socket.once('data', resolve).once('close', resolve));
  for (let n = 0; n < 40 && answer === ''; n += 1)
    if (!socket.write(empty))
      await Promise.race([isOver, new Promise((resolve) => socket.once('drain', resolve))]);
  await until(() => answer !== '');
  t.regex(answer, /^HTTP\/1\.1 400 [\s\S]*larger than 20 MiB/);

  const gone = connect(Number(port), hostname);
  gone.write(head(1000));
  gone.write(gzipSync(JSON.stringify(mail())).subarray(0, 50));
  await once(gone, 'connect');
  gone.destroy();
  t.is((await send(world, gzipSync(JSON.stringify(mail())), 'gzip')).status, 200);
});
