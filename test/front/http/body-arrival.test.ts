/** A body takes its time: what its sender may do is decided again when it has arrived. */
import http from 'node:http';
import test, { type ExecutionContext } from 'ava';
import { createBrowser, setUp } from '#lab/browser/browser.ts';
import { startWorld, type World } from '#lab/scenes/world.ts';
import { until } from '#lab/until.ts';

interface Slow {
  /** Sends the rest; the status of the answer. */
  end(): Promise<number>;
}

/** A POST whose body has begun, and whose headers the server has seen. */
async function begin(
  t: ExecutionContext,
  world: World,
  path: string,
  body: string,
  headers: http.OutgoingHttpHeaders,
): Promise<Slow> {
  const request = http.request(new URL(path, world.url()), {
    method: 'POST',
    agent: false,
    headers: { ...headers, 'content-length': Buffer.byteLength(body), expect: '100-continue' },
  });
  t.teardown(() => request.destroy());
  const answered = new Promise<number>((resolve, reject) => {
    request.once('response', (response) => resolve(response.resume().statusCode!));
    request.once('error', reject);
  });
  const seen = new Promise<void>((resolve) => request.once('continue', () => resolve()));
  request.flushHeaders();
  await seen;
  request.write(body.slice(0, 2));
  return {
    end() {
      request.end(body.slice(2));
      return answered;
    },
  };
}

test('a key that is revoked while a body arrives does nothing with it', async (t) => {
  const world = await startWorld(t);
  const { db, clock } = world;
  const mail = { from: 'app@sender.invalid', to: 'ann@there.invalid', subject: 'Hello', text: 'Hello' };
  const calls: [path: string, body: object][] = [
    ['/api/public/keys', { label: 'mine', scopes: ['full_access'] }],
    ['/api/public/webhooks', { url: 'https://hooks.invalid/' }],
    ['/api/public/email/send', mail],
    ['/api/public/email/batch', [mail]],
    ['/compat/resend/emails', mail],
  ];
  const statuses: number[] = [];
  // One after the other, because a body has ten seconds, by the machine's clock.
  for (const [path, body] of calls) {
    const made = await world.call('POST', '/api/public/keys', {
      body: '{"label":"leaked","scopes":["full_access"]}',
    });
    const { id, key } = made.body;
    const headers = { authorization: `Bearer ${key}`, 'content-type': 'application/json' };
    const slow = await begin(t, world, path, JSON.stringify(body), headers);
    const isUsed = async () => (await db('api_keys').where({ id }).first('used_at')).used_at !== null;
    await clock.advance('1m');
    await until(isUsed, { what: 'the call to be let in' });
    await world.call('DELETE', `/api/public/keys/${id}`);
    const isOver = async () => (await world.call('GET', '/api/public/emails', { headers })).status === 401;
    await until(isOver, { what: 'the key to end' });
    statuses.push(await slow.end());
  }
  t.deepEqual(statuses, [401, 401, 401, 401, 403]);
  t.deepEqual([...new Set(await db('api_keys').pluck('label'))].sort(), ['leaked', 'test']);
  t.deepEqual(await db('emails').pluck('id'), []);
  t.deepEqual(await db('webhooks').pluck('id'), []);
});

test('a person whose session is ended while a form arrives does nothing with it', async (t) => {
  const world = await startWorld(t);
  const browser = createBrowser(world);
  await setUp(browser, world);
  await browser.get('/dashboard/account');
  const body = new URLSearchParams({ _csrf: browser.csrf(), name: 'Mallory' }).toString();
  const cookie = [...browser.jar].map((pair) => pair.join('=')).join('; ');
  const headers = { cookie, 'content-type': 'application/x-www-form-urlencoded' };
  const slow = await begin(t, world, '/dashboard/account/name', body, headers);
  await world.clock.advance('1s');
  await world.db('sessions').delete();
  t.is(await slow.end(), 303);
  t.deepEqual(await world.db('users').pluck('name'), ['Olga Operator']);
});
