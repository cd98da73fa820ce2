/** Who gets in: the first by the link of set-up, others by an invitation, all by what they know; and who does not. */
import http from 'node:http';
import test from 'ava';
import { Secret, TOTP } from 'otpauth';
import { invite, makeUserLink } from '#accounts/people/people.ts';
import { createSeal } from '#accounts/seal.ts';
import {
  type Browser,
  checkHeaders,
  createBrowser,
  type Page,
  password,
  setUp,
  signIn,
} from '#lab/browser/browser.ts';
import { cliOf } from '#lab/cli.ts';
import { startWorld, type World } from '#lab/scenes/world.ts';
import { column } from '#lab/table.ts';
import { loadSecrets } from '#platform/base/secrets.ts';

const olga = 'olga@postern.invalid';

const isIn = async (browser: Browser) => (await browser.ask('GET', '/dashboard/account')).status === 200;

test('the link of set-up makes one operator, once', async (t) => {
  const world = await startWorld(t);
  const link = new URL(world.setUpUrl()!).pathname;
  const [one, two] = [createBrowser(world), createBrowser(world)];
  checkHeaders(t, await two.get(link));
  t.is((await one.get(`${link}x`)).status, 404);
  await one.get(link);
  const refused = await one.submit('', { name: 'Olga', email: 'nonsense', password: 'short' });
  t.is(refused.status, 422);
  t.regex(refused.text, /Enter an email address/);
  t.regex((await one.submit('', { email: olga, password: 'aaaaaaaaaaaaaaaa' })).text, /repeats too few/);
  t.false(one.page().html.includes('aaaaaaaaaaaa'), 'a password is never shown again');

  t.is((await setUp(one, world)).status, 200);
  t.true(await isIn(one));
  t.is((await two.submit('', { name: 'Eve', email: 'eve@postern.invalid', password })).status, 404);
  t.is((await createBrowser(world).get(link)).status, 404);
  const [user, ...others] = await world.db('users').select();
  t.deepEqual([user.email, Boolean(user.operator), others], [olga, true, []]);
  t.regex(user.password, /^scrypt\$2\$1\$1\$/, 'as the tests have it');
  await world.restart();
  t.is(world.setUpUrl(), null, 'where there is an operator there is nothing to set up');
  t.true(await isIn(one), 'a session outlives the server');
});

test('of two who use the link at once, one gets in', async (t) => {
  const world = await startWorld(t, { database: 'postgres' });
  const link = new URL(world.setUpUrl()!).pathname;
  const browsers = [createBrowser(world), createBrowser(world)];
  await Promise.all(browsers.map((browser) => browser.get(link)));
  await Promise.all(
    browsers.map((browser, at) =>
      browser.submit('', { name: 'X', email: `x${at}@postern.invalid`, password }),
    ),
  );
  t.is((await world.db('users').select()).length, 1);
});

test('signing in takes the right address and password, and says no more than that', async (t) => {
  const world = await startWorld(t);
  await setUp(createBrowser(world), world);
  const browser = createBrowser(world);
  t.is(
    (await browser.get('/dashboard/organizations?q=x')).path,
    '/dashboard/sign-in?to=%2Fdashboard%2Forganizations%3Fq%3Dx',
  );
  const wrong = await browser.submit('/sign-in', { email: olga, password: 'not her password' });
  const unknown = await browser.submit('/sign-in', { email: 'nobody@postern.invalid', password });
  const words = (text: string) => /The email address or[^.]*\./.exec(text)?.[0];
  t.truthy(words(wrong.text));
  t.is(words(unknown.text), words(wrong.text));
  t.is(
    (await browser.submit('/sign-in', { email: olga.toUpperCase().replace('OLGA', 'olga'), password })).path,
    '/dashboard/organizations?q=x',
  );
  t.true(await isIn(browser));

  const elsewhere = column('dashboard/foreign-paths');
  const within = ({ headers }: Page, to: string) => {
    const { origin, pathname } = new URL(headers.get('location')!, world.url());
    t.is(origin, new URL(world.url()).origin, to);
    t.regex(pathname, /^\/dashboard(\/|$)/, to);
  };
  const other = createBrowser(world);
  for (const to of elsewhere) {
    other.jar.clear();
    await other.get(`/dashboard/sign-in?${new URLSearchParams({ to })}`);
    const answer = await other.ask('POST', '/dashboard/sign-in', {
      body: new URLSearchParams({ _csrf: other.csrf(), email: olga, password, to }).toString(),
      headers: { 'content-type': 'application/x-www-form-urlencoded' },
    });
    within(answer, to);
    const signedIn = await other.ask('GET', `/dashboard/sign-in?${new URLSearchParams({ to })}`);
    within(signedIn, to);
  }
});

test('guessing is throttled: for a network, for an account of a network, and not for those who have been in before', async (t) => {
  const world = await startWorld(t);
  const home = createBrowser(world, { 'x-forwarded-for': '2001:db8:0:1::1' });
  await setUp(home, world);
  await home.get('/dashboard/account');
  await home.submit('/sign-out');
  const from = (address: string) => createBrowser(world, { 'x-forwarded-for': address });
  const eve = from('2001:db8:0:1::2');
  for (let n = 0; n < 10; n++) t.is((await signIn(eve, olga, `guess number ${n}`)).status, 422);
  t.is((await signIn(eve, olga)).status, 429, 'the right password too');
  t.is((await signIn(from('2001:db8:0:1:ff::3'), olga)).status, 429, 'from the whole network of 64 bits');
  t.is((await signIn(home, olga)).status, 200, 'but for a browser that has signed in before');
  t.is((await signIn(from('2001:db8:0:2::1'), olga)).status, 200, 'and from anywhere else');
  for (let n = 0; n < 20; n++) t.is((await signIn(eve, `user${n}@postern.invalid`, 'x')).status, 422);
  t.is((await signIn(eve, 'other@postern.invalid', 'x')).status, 429, 'any account');

  // From many networks: the account becomes slow for strangers, and for them alone.
  const guessFrom = async (n: number) => (await signIn(from(`192.0.2.${n}`), olga, 'x')).status;
  for (let n = 0; n < 10; n++) t.is(await guessFrom(n), 422);
  t.is(await guessFrom(10), 429);
  await world.clock.advance('1s');
  t.is(await guessFrom(10), 422);
  await world.clock.advance('1s');
  t.is(await guessFrom(11), 429, 'the pause doubles');
  await world.clock.advance('1s');
  t.is((await signIn(from('198.51.100.1'), olga)).status, 200, 'the owner gets in after the pause');
  await home.get('/dashboard/account');
  await home.submit('/sign-out');
  for (let n = 0; n < 10; n++) t.is((await signIn(home, olga, 'x')).status, 422);
  t.is((await signIn(home, olga)).status, 429, 'a known browser has ten guesses, too');
  await world.clock.advance('15m');
  t.is((await signIn(home, olga)).status, 200);
  t.is((await signIn(eve, olga)).status, 200);
});

test('a browser is known to one account, by what we have signed, until the password changes', async (t) => {
  const world = await startWorld(t);
  const home = createBrowser(world, { 'x-forwarded-for': '192.0.2.1' });
  await setUp(home, world);
  const cookie = home.jar.get('postern-browser')!;
  const { link } = await invited(world, 'ann@postern.invalid');
  const ann = createBrowser(world, { 'x-forwarded-for': '192.0.2.2' });
  await ann.get(link!.path);
  await ann.submit('', { password });
  const eve = createBrowser(world, { 'x-forwarded-for': '192.0.2.3' });
  for (let n = 0; n < 10; n++)
    for (const email of [olga, 'ann@postern.invalid']) await signIn(eve, email, 'x');
  const tryWith = async (value: string, email = olga) => {
    const browser = createBrowser(world, { 'x-forwarded-for': '192.0.2.3' });
    browser.jar.set('postern-browser', value);
    return (await signIn(browser, email)).status;
  };
  const [id, until, signature] = cookie.split('.') as [string, string, string];
  t.is(await tryWith(cookie, 'ann@postern.invalid'), 429, "another's");
  t.is(await tryWith(`${id}.${Number(until) + 1}.${signature}`), 429);
  t.is(await tryWith(`x${id}.${until}.${signature}`), 429);
  t.is(await tryWith('..'), 429);
  t.is(await tryWith(cookie), 200);
  await home.get('/dashboard/account');
  await home.submit('/account/password', { current: password, password: `new ${password}` });
  t.is(await tryWith(cookie), 429, 'the password is another');
  t.not(home.jar.get('postern-browser'), cookie, 'who changed it is known again');
});

test('of ninety codes that are sent at once, at most ten are judged; of ninety passwords, too', async (t) => {
  const world = await startWorld(t);
  const browser = createBrowser(world, { 'x-forwarded-for': '192.0.2.1' });
  await setUp(browser, world);
  const ninety = async (eve: Browser, path: string, fields: Record<string, string>) => {
    const body = new URLSearchParams({ _csrf: eve.csrf(), ...fields }).toString();
    const headers = { 'content-type': 'application/x-www-form-urlencoded' };
    const answers = await Promise.all(
      Array.from({ length: 90 }, () => eve.ask('POST', path, { body, headers })),
    );
    return answers.map(({ text }) => /code is wrong|password is wrong/.test(text)).filter((one) => one)
      .length;
  };
  const secret = new Secret({ size: 20 });
  const sealed = createSeal(loadSecrets(world.config)).close(secret.base32);
  await world.db('users').update({ totp_secret: sealed });
  const eve = createBrowser(world, { 'x-forwarded-for': '192.0.2.2' });
  await signIn(eve, olga);
  const half_way = eve
    .page()
    .forms.find(({ action }) => action.endsWith('/code'))!
    .fields.get('half_way')!;
  // One network has eight places; the guesses of an account are ten.
  const guesses: [path: string, fields: Record<string, string>][] = [
    ['/dashboard/sign-in/code', { half_way, code: '000000' }],
    ['/dashboard/sign-in', { email: 'ann@postern.invalid', password: 'x' }],
  ];
  for (const [path, fields] of guesses) {
    const judged = await ninety(eve, path, fields);
    t.true(judged > 0 && judged <= 10, `${path}: ${judged}`);
  }
});

test('silent connections keep nobody out: a form has ten seconds, and takes no place until it is there', async (t) => {
  const world = await startWorld(t);
  const browser = createBrowser(world);
  await setUp(browser, world);
  const session = `postern-session=${browser.jar.get('postern-session')}`;
  const statuses: (number | undefined)[] = [];
  let open = 0;
  /** Begins a form, and says no more. */
  const silent = (path: string, cookie: string) =>
    new Promise<void>((resolve, reject) => {
      const headers = { 'content-type': 'application/x-www-form-urlencoded', 'content-length': 100, cookie };
      const request = http.request(new URL(path, world.url()), { method: 'POST', headers, agent: false });
      t.teardown(() => request.destroy());
      request.once('error', reject);
      request.once('response', (response) => statuses.push(response.resume().statusCode));
      request.once('socket', (socket) => socket.once('close', () => open--));
      request.write('_csrf', () => resolve());
      open++;
    });
  const ways: [number, string, string][] = [
    [110, '/dashboard/sign-in', ''],
    [90, '/dashboard/account/name', session],
  ];
  await Promise.all(
    ways.flatMap(([length, path, cookie]) => Array.from({ length }, () => silent(path, cookie))),
  );
  t.is((await signIn(createBrowser(world), olga)).status, 200);
  await browser.get('/dashboard/account');
  t.is((await browser.submit('/account/name', { name: 'Olga' })).status, 200);
  t.deepEqual(statuses, []);
  await world.clock.passUntil(() => open === 0, { step: '10s' });
  t.deepEqual(statuses, Array(200).fill(408));
  t.true(await isIn(browser));
});

test('a second factor: turned on by a code, asked for, taken once; recovery codes; off by the password', async (t) => {
  const world = await startWorld(t);
  const browser = createBrowser(world);
  await setUp(browser, world);
  const offered = await browser.get('/dashboard/account/second-factor');
  checkHeaders(t, offered);
  const secret = Secret.fromBase32(/data-copy="([A-Z2-7]{32})"/.exec(offered.html)![1]!);
  const codeAt = (timestamp: number) => new TOTP({ secret }).generate({ timestamp });
  const now = () => world.clock.now();
  t.regex(
    (await browser.submit('/second-factor', { code: '000000', current: password })).text,
    /The code is wrong/,
  );
  t.regex(
    (await browser.submit('/second-factor', { code: codeAt(now()), current: 'x' })).text,
    /The password is wrong/,
  );
  const shown = await browser.submit('/second-factor', { code: codeAt(now()), current: password });
  const codes = [...shown.html.matchAll(/<li>([a-z2-9-]{19})<\/li>/g)].map(([, code]) => code!);
  t.is(new Set(codes).size, 10);
  const [user] = await world.db('users').select();
  t.regex(user.totp_secret, /^v1\./, 'sealed');

  const phone = createBrowser(world);
  t.regex((await signIn(phone, olga)).text, /Enter your code/);
  t.false(await isIn(phone), 'the password alone does not do');
  await signIn(phone, olga);
  t.is(
    (await phone.submit('/code', { code: codeAt(now()) })).status,
    422,
    'the code that turned it on was used',
  );
  await world.clock.advance('30s');
  t.is((await phone.submit('/code', { code: codeAt(now() - 90_000) })).status, 422, 'too old');
  const halfWay = phone.page().forms.find((form) => form.action.endsWith('/code'))!.fields;
  t.is((await phone.submit('/code', { code: codeAt(now()) })).status, 200);
  t.true(await isIn(phone));

  const thief = createBrowser(world);
  await thief.get('/dashboard/sign-in');
  const stolen = { ...Object.fromEntries(halfWay), _csrf: thief.csrf(), code: codes[0]! };
  t.regex(
    (await thief.post('/dashboard/sign-in/code', stolen)).text,
    /sign-in has expired/,
    'it is bound to its browser',
  );

  const other = createBrowser(world);
  await signIn(other, olga);
  t.is((await other.submit('/code', { code: codes[0]!.toUpperCase().replaceAll('-', ' ') })).status, 200);
  const again = createBrowser(world);
  await signIn(again, olga);
  t.is((await again.submit('/code', { code: codes[0]! })).status, 422, 'a recovery code is taken once');
  await world.clock.advance('5m');
  t.regex((await again.submit('/code', { code: codes[1]! })).text, /sign-in has expired/);
  await signIn(again, olga);
  for (let n = 0; n < 9; n++) await again.submit('/code', { code: '123' });
  t.is((await again.submit('/code', { code: codes[1]! })).status, 429, 'codes are not guessed either');

  await other.get('/dashboard/account');
  t.regex(other.page().text, /9 recovery codes left/);
  t.regex((await other.submit('/second-factor/off', { current: 'x' })).text, /still on/);
  t.regex((await other.submit('/second-factor/off', { current: password })).text, /authentication is off/);
  t.is((await signIn(createBrowser(world), olga)).status, 200);
});

async function invited(world: World, email: string) {
  const [{ id: orgId }] = await world.db('organizations').select('id');
  const member = { orgId, role: 'viewer' as const };
  return invite(world.db, { email, name: 'Ann', isOperator: false, member }, world.clock.now());
}

test('an invitation and a reset are links that work once, for a while', async (t) => {
  const world = await startWorld(t);
  const { link, userId } = await invited(world, 'ann@postern.invalid');
  const browser = createBrowser(world);
  checkHeaders(t, await browser.get(link!.path));
  t.is((await browser.submit('', { password: 'ann@postern.invalid' })).status, 422);
  const welcome = await browser.submit('', { password });
  t.regex(welcome.text, /Your password is set/);
  t.regex(welcome.path, /^\/dashboard\/o\//, 'nothing is typed twice');
  t.is((await browser.get(link!.path)).status, 404);
  await browser.submit('/sign-out');
  t.is((await signIn(browser, 'ann@postern.invalid')).status, 200);

  const first = await makeUserLink(world.db, { id: userId }, 'reset', world.clock.now());
  const second = await makeUserLink(world.db, { id: userId }, 'reset', world.clock.now());
  const guest = createBrowser(world);
  t.is((await guest.get(first.path)).status, 404, 'a new link ends the one before');
  t.true(await isIn(browser), 'until the link is used all is as it was');
  await guest.get(second.path);
  await guest.submit('', { password: `another ${password}` });
  t.false(await isIn(browser), 'a new password ends the sessions');
  t.is((await signIn(browser, 'ann@postern.invalid')).status, 422);
  t.is((await signIn(browser, 'ann@postern.invalid', `another ${password}`)).status, 200);
  const late = await makeUserLink(world.db, { id: userId }, 'reset', world.clock.now());
  await world.clock.jump('24h');
  t.is((await guest.get(late.path)).status, 404);
});

test('the command line lets people in, lists them, and gives a new link', async (t) => {
  const world = await startWorld(t);
  const { json, refusal } = cliOf(t, world);
  const made = await json(
    'user create --org Tenant --email ann@postern.invalid --role developer --name',
    'Ann',
  );
  t.deepEqual([made.role, made.operator], ['developer', false]);
  const pathOf = (url: string) => new URL(url).pathname;
  const browser = createBrowser(world);
  await browser.get(pathOf(made.url));
  t.regex((await browser.submit('', { password })).path, /\/dashboard\/o\/[^/]+$/);
  const [listed] = await json('user list --org Tenant');
  t.like(listed, { email: 'ann@postern.invalid', status: 'active', operator: false, secondFactor: false });
  t.like(listed.organizations[0], { name: 'Tenant', role: 'developer' });
  const reset = await json('user reset ann@postern.invalid');
  t.is((await browser.get(pathOf(reset.url))).status, 200);
  t.is(
    (await json('user create --email ann@postern.invalid --operator')).url,
    null,
    'who has a password needs no link',
  );
  t.true((await json('user list'))[0].operator);
  t.regex(await refusal(1, 'user create --email bob@postern.invalid'), /--org ORG/);
  t.regex(await refusal(1, 'user reset nobody@postern.invalid'), /postern user list/);
  t.regex(
    await refusal(2, 'user create --org Tenant --email x@y.invalid --role boss'),
    /viewer, developer, owner/,
  );
});

test('who is disabled is out at once and stays out, until the command line lets them in again', async (t) => {
  const world = await startWorld(t);
  const { json, refusal } = cliOf(t, world);
  const browser = createBrowser(world);
  await setUp(browser, world);
  t.is((await browser.get('/dashboard/account')).status, 200);
  const { id } = await world.db('users').first('id');
  const operator = { id, email: 'olga@postern.invalid' };
  t.deepEqual(await json('user disable Olga@postern.invalid'), { ...operator, status: 'disabled' });
  t.regex((await browser.get('/dashboard/account')).path, /^\/dashboard\/sign-in/);
  t.is((await signIn(browser, operator.email)).status, 422);
  t.deepEqual(await json('user enable olga@postern.invalid'), { ...operator, status: 'active' });
  t.regex((await browser.get('/dashboard/account')).path, /^\/dashboard\/sign-in/, 'the session has ended');
  t.is((await signIn(browser, operator.email)).status, 200);
  t.is((await browser.get('/dashboard/account')).status, 200);
  t.regex(await refusal(1, 'user disable nobody@postern.invalid'), /postern user list/);
});

test('the link of `postern open` signs an operator in once, soon after, and sets no password', async (t) => {
  const world = await startWorld(t);
  const { json, refusal } = cliOf(t, world);
  await setUp(createBrowser(world), world);
  const { url, expiresAt } = await json('open');
  t.true(Date.parse(expiresAt) <= Date.now() + 11 * 60_000);
  const link = new URL(url).pathname;
  t.is((await createBrowser(world).ask('GET', link.replace('sign-in', 'welcome'))).status, 404);
  const [first, second] = [createBrowser(world), createBrowser(world)];
  await first.get(link);
  t.true(await isIn(first));
  t.is((await second.ask('GET', link)).status, 404);
  t.false(await isIn(second));
  await json(`user disable ${olga}`);
  t.regex(await refusal(1, `open --email ${olga}`), /can sign in/);
});
