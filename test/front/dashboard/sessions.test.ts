/** Sessions: new at each sign-in, listed, ended one by one and all, too old in time; and their cookie. */
import test from 'ava';
import { Secret, TOTP } from 'otpauth';
import { makeUserLink } from '#accounts/people/people.ts';
import { changeUser } from '#accounts/rows/users.ts';
import { createSeal } from '#accounts/seal.ts';
import { type Browser, createBrowser, password, setUp, signIn } from '#lab/browser/browser.ts';
import { startWorld } from '#lab/scenes/world.ts';
import { loadSecrets } from '#platform/base/secrets.ts';

const olga = 'olga@postern.invalid';

const isIn = async (browser: Browser) => (await browser.ask('GET', '/dashboard/account')).status === 200;

test('a session is new at each sign-in, is kept as its hash, and ends with signing out', async (t) => {
  const world = await startWorld(t);
  const browser = createBrowser(world);
  await setUp(browser, world);
  const first = browser.jar.get('postern-session')!;
  const [row] = await world.db('sessions').select();
  t.false(JSON.stringify(row).includes(first));
  await world.clock.advance('1m');
  const tab = createBrowser(world);
  await tab.get('/dashboard/sign-in');
  const token = tab.csrf();
  tab.jar.set('postern-session', first);
  t.is((await tab.post('/dashboard/sign-in', { _csrf: token, email: olga, password })).status, 403);
  await browser.get('/dashboard/account');
  await browser.post('/dashboard/sign-in', { _csrf: browser.csrf(), email: olga, password });
  t.not(browser.jar.get('postern-session'), first);
  t.false(await isIn(tab), 'the session before has ended');
  await browser.get('/dashboard/account');
  const kept = browser.jar.get('postern-session')!;
  await browser.submit('/sign-out');
  browser.jar.set('postern-session', kept);
  t.false(await isIn(browser));
});

test('sessions are listed with where and what with, and end one by one, all others, and by a new password', async (t) => {
  const world = await startWorld(t);
  const desk = createBrowser(world, { 'user-agent': 'Mozilla/5.0 (X11; Linux x86_64) Firefox/140.0' });
  await setUp(desk, world);
  const phone = createBrowser(world, {
    'user-agent': 'Mozilla/5.0 (iPhone) Safari/1',
    'x-forwarded-for': '192.0.2.7',
  });
  await signIn(phone, olga);
  t.regex(
    (await desk.get('/dashboard/account')).text,
    /Firefox on Linux This browser .* Safari on iPhone 192\.0\.2\.7/,
  );
  const [theirs] = await world.db('sessions').where({ address: '192.0.2.7' });
  await desk.submit('/sessions/end', { id: theirs.id });
  t.false(await isIn(phone));
  t.true(await isIn(desk));

  await signIn(phone, olga);
  await desk.get('/dashboard/account');
  await desk.submit('/sessions/end-others');
  t.false(await isIn(phone));

  await signIn(phone, olga);
  await desk.get('/dashboard/account');
  t.regex(
    (await desk.submit('/account/password', { current: 'x', password: `new ${password}` })).text,
    /The password is wrong/,
  );
  t.true(await isIn(phone));
  t.regex(
    (await desk.submit('/account/password', { current: password, password: `new ${password}` })).text,
    /has been changed/,
  );
  t.false(await isIn(phone));
  t.true(await isIn(desk));
});

test('a new password ends what the old one has begun: a sign-in half-way, and a link of a reset', async (t) => {
  const world = await startWorld(t);
  const desk = createBrowser(world);
  await setUp(desk, world);
  const [{ id }] = await world.db('users').select('id');
  const secret = new Secret({ size: 20 });
  await changeUser(world.db, id, { totpSecret: createSeal(loadSecrets(world.config)).close(secret.base32) });
  const thief = createBrowser(world);
  await signIn(thief, olga);
  const { path } = await makeUserLink(world.db, { id }, 'reset', world.clock.now());
  t.is((await thief.ask('GET', path)).status, 200);
  await signIn(thief, olga);
  await desk.get('/dashboard/account');
  await desk.submit('/account/password', { current: password, password: `new ${password}` });
  t.is((await createBrowser(world).ask('GET', path)).status, 404);
  const code = new TOTP({ secret }).generate({ timestamp: world.clock.now() });
  t.regex((await thief.submit('/code', { code })).text, /sign-in has expired/);
});

test("another's session is not there to be ended", async (t) => {
  const world = await startWorld(t);
  const desk = createBrowser(world);
  await setUp(desk, world);
  const [{ id }] = await world.db('sessions').select('id');
  await world
    .db('users')
    .insert({ id: crypto.randomUUID(), email: 'x', email_key: 'x', name: 'x', created_at: 0 });
  await world
    .db('sessions')
    .where({ id })
    .update({ user_id: world.db('users').where({ email: 'x' }).select('id') });
  const other = createBrowser(world);
  await signIn(other, olga);
  await other.get('/dashboard/account');
  const _csrf = other.csrf();
  t.is((await other.post('/dashboard/account/sessions/end', { _csrf, id })).status, 404);
  t.is((await other.post('/dashboard/account/sessions/end', { _csrf, id: 'nonsense' })).status, 404);
  t.is((await world.db('sessions').where({ id })).length, 1);
});

test('a session ends a week after it was used last, and after thirty days whatever happens; disabled users are out', async (t) => {
  const world = await startWorld(t);
  const browser = createBrowser(world);
  await setUp(browser, world);
  for (let day = 0; day < 30; day += 6) {
    t.true(await isIn(browser), `day ${day}`);
    await world.clock.jump('6d');
  }
  t.false(await isIn(browser), 'thirty days');
  await signIn(browser, olga);
  await world.clock.jump('7d');
  t.false(await isIn(browser), 'a week idle');
  await signIn(browser, olga);
  t.true(await isIn(browser));
  await world.db('users').update({ disabled_at: 1 });
  t.false(await isIn(browser));
  t.is((await signIn(browser, olga)).status, 422);
});

test('a page that is left open keeps its session alive, and writes once an hour', async (t) => {
  const world = await startWorld(t);
  const browser = createBrowser(world);
  await setUp(browser, world);
  const seenAt = async () => Number((await world.db('sessions').first('seen_at'))!.seen_at);
  const poll = () => browser.ask('GET', '/dashboard/queue', { headers: { 'hx-request': 'true' } });
  const first = await seenAt();
  await world.clock.jump('59m');
  t.is((await poll()).status, 200);
  t.is(await seenAt(), first);
  await world.clock.jump('1m');
  await poll();
  t.is(await seenAt(), world.clock.now());
  await world.clock.jump('1m');
  t.true(await isIn(browser));
  t.is(await seenAt(), world.clock.now(), 'a person asks for a page');
});

test('cookies are for the server alone, and by https for this host alone', async (t) => {
  const world = await startWorld(t);
  const link = new URL(world.setUpUrl()!).pathname;
  const plain = (await createBrowser(world).ask('GET', link)).headers.getSetCookie();
  t.regex(plain[0]!, /^postern-visitor=[\w-]{43}; path=\/; samesite=lax; httponly$/);
  const secure = await startWorld(t, { settings: { POSTERN_BASE_URL: 'https://mail.example.com' } });
  t.true(secure.setUpUrl()!.startsWith('https://mail.example.com/dashboard/set-up/'));
  const browser = createBrowser(secure);
  await setUp(browser, secure);
  t.true(browser.jar.has('__Host-postern-session'));
  const [line] = (await createBrowser(secure).ask('GET', '/dashboard/sign-in')).headers.getSetCookie();
  t.regex(line!, /^__Host-postern-visitor=[\w-]{43}; path=\/; samesite=lax; secure; httponly$/);
});
