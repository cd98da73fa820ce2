/** An export takes as long as its reader likes: it ends with the right to it. */
import { once } from 'node:events';
import { connect } from 'node:net';
import test, { type ExecutionContext } from 'ava';
import { createBrowser, setUp } from '#lab/browser/browser.ts';
import { startWorld, type World } from '#lab/scenes/world.ts';
import { until } from '#lab/until.ts';

/** More than the buffers of a connection hold. */
const addresses = 30_000;
const longDomain = Array(4).fill('d'.repeat(55)).join('.');

async function withLongList(t: ExecutionContext): Promise<World> {
  const world = await startWorld(t);
  const lines = Array.from({ length: addresses }, (_, index) => `a${index}@${longDomain}`);
  const added = await world.call('POST', '/api/public/suppressions.csv', {
    headers: { 'content-type': 'text/csv' },
    body: lines.join('\n'),
  });
  t.is(added.body.added, addresses);
  return world;
}

/** A reader that takes nothing until it is asked to read the rest, all of which it then returns. */
async function begin(t: ExecutionContext, world: World, path: string, header: string) {
  const { hostname, port } = new URL(world.url());
  const socket = connect({ host: hostname, port: Number(port) });
  t.teardown(() => socket.destroy());
  socket.write(`GET ${path} HTTP/1.1\r\nHost: ${hostname}\r\nConnection: close\r\n${header}\r\n\r\n`);
  await once(socket, 'readable');
  return async () => {
    const chunks: Buffer[] = [];
    socket.on('data', (chunk) => chunks.push(chunk)).on('error', () => {});
    await once(socket, 'close');
    return Buffer.concat(chunks).toString('latin1');
  };
}

const lastChunk = '\r\n0\r\n\r\n';

function isCutOff(t: ExecutionContext, answer: string): void {
  t.regex(answer, /^HTTP\/1\.1 200 /);
  t.false(answer.endsWith(lastChunk), 'it does not look like the whole');
  t.true(answer.split('@').length < addresses);
}

test('an export by a key ends when the key is revoked', async (t) => {
  const world = await withLongList(t);
  const body = '{"label":"leaked","scopes":["full_access"]}';
  const { id, key } = (await world.call('POST', '/api/public/keys', { body })).body;
  const authorization = `Bearer ${key}`;
  const path = '/api/public/suppressions.csv';
  const whole = await (await begin(t, world, path, `Authorization: ${authorization}`))();
  t.true(whole.endsWith(lastChunk));
  t.is(whole.split('@').length - 1, addresses);
  const rest = await begin(t, world, path, `Authorization: ${authorization}`);
  await world.call('DELETE', `/api/public/keys/${id}`);
  const headers = { authorization };
  const isOver = async () => (await world.call('GET', '/api/public/emails', { headers })).status === 401;
  await until(isOver, { what: 'the key to end' });
  isCutOff(t, await rest());
});

test('an export in the dashboard ends when its reader is signed out', async (t) => {
  const world = await withLongList(t);
  const browser = createBrowser(world);
  await setUp(browser, world);
  const cookie = `Cookie: ${[...browser.jar].map((pair) => pair.join('=')).join('; ')}`;
  const path = `/dashboard/o/${world.orgId}/suppressions/export`;
  const whole = await (await begin(t, world, path, cookie))();
  t.is(whole.split('@').length - 1, addresses);
  const rest = await begin(t, world, path, cookie);
  await world.db('sessions').delete();
  isCutOff(t, await rest());
});
