/** What strangers send from one address never closes the sign-in page, or the pages of signed-in people, to other addresses. */
import { connect } from 'node:net';
import test, { type ExecutionContext } from 'ava';
import { defaultCost } from '#accounts/people/passwords.ts';
import { createBrowser, setUp } from '#lab/browser/browser.ts';
import { startWorld, type World } from '#lab/scenes/world.ts';

const count = 110;
const crlf = '\r\n';

async function startSignedIn(t: ExecutionContext) {
  const world = await startWorld(t, { overrides: { passwordCost: defaultCost } });
  const olga = createBrowser(world, { 'x-forwarded-for': '192.0.2.1' });
  await setUp(olga, world);
  return { world, olga };
}

/** Opens connections that send `text` and no more. */
async function openSilent(t: ExecutionContext, world: World, text: string): Promise<void> {
  const { hostname, port } = new URL(world.url());
  const opening = Array.from({ length: count }, () => {
    const socket = connect(Number(port), hostname);
    t.teardown(() => socket.destroy());
    return new Promise<void>((resolve, reject) => {
      socket
        .on('error', reject)
        .on('connect', () => (text === '' ? resolve() : socket.write(text, () => resolve())));
    });
  });
  await Promise.all(opening);
}

const silent = {
  nothing: '',
  'a part of the headers': `GET /dashboard HTTP/1.1${crlf}Host: a${crlf}X-Forwarded-For: 203.0.113.1${crlf}`,
  'a part of a form': [
    'POST /dashboard/sign-in HTTP/1.1',
    'Host: a',
    'X-Forwarded-For: 203.0.113.1',
    'Content-Type: application/x-www-form-urlencoded',
    'Content-Length: 100',
    '',
    'email=',
  ].join(crlf),
  'a chunk of a form': [
    'POST /dashboard/set-up/x HTTP/1.1',
    'Host: a',
    'X-Forwarded-For: 203.0.113.1',
    'Content-Type: application/x-www-form-urlencoded',
    'Transfer-Encoding: chunked',
    '',
    '5',
    'email',
  ].join(crlf),
};

test('connections that send a part of a request keep nobody out', async (t) => {
  const { world, olga } = await startSignedIn(t);
  for (const text of Object.values(silent)) await openSilent(t, world, text);
  const ann = createBrowser(world, { 'x-forwarded-for': '192.0.2.2' });
  t.is((await ann.get('/dashboard/sign-in')).status, 200);
  t.is((await ann.submit('/sign-in', { email: 'ann@postern.invalid', password: 'x' })).status, 422);
  t.is((await olga.get('/dashboard/account')).status, 200);
  t.is((await olga.submit('/account/name', { name: 'Olga' })).status, 200);
});

test('a burst of guesses from one network leaves places for others', async (t) => {
  const { world, olga } = await startSignedIn(t);
  const ann = createBrowser(world, { 'x-forwarded-for': '192.0.2.2' });
  await ann.get('/dashboard/sign-in');
  const headers = { 'content-type': 'application/x-www-form-urlencoded' };
  const guesses = await Promise.all(
    Array.from({ length: count }, async (_, at) => {
      const eve = createBrowser(world, { 'x-forwarded-for': `2001:db8:0:1::${at.toString(16)}` });
      await eve.get('/dashboard/sign-in');
      const fields = { _csrf: eve.csrf(), email: `user-${at}@postern.invalid`, password: 'x' };
      return { eve, body: new URLSearchParams(fields).toString() };
    }),
  );
  const burst = guesses.map(({ eve, body }) => eve.ask('POST', '/dashboard/sign-in', { body, headers }));
  const signIn = await ann.submit('/sign-in', { email: 'ann@postern.invalid', password: 'x' });
  t.is(signIn.status, 422, 'her password was judged');
  t.is((await ann.get('/dashboard/sign-in')).status, 200);
  t.is((await olga.get('/dashboard/account')).status, 200);
  const statuses = (await Promise.all(burst)).map(({ status }) => status);
  t.true(statuses.filter((status) => status === 422).length <= 30, 'a network has thirty guesses');
  t.deepEqual([...new Set(statuses)].sort(), [422, 429]);
});
