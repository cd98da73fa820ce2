/** Settings → API keys: made, shown once, rotated, revoked, in one's own organization alone. */
import test from 'ava';
import { createBrowser, setUp } from '#lab/browser/browser.ts';
import { startWorld } from '#lab/scenes/world.ts';
import { until } from '#lab/until.ts';

test('a key is made, shown once, works, is rotated and revoked', async (t) => {
  const world = await startWorld(t);
  const browser = createBrowser(world);
  t.regex((await setUp(browser, world)).path, /^\/dashboard\/o\/[^/]+$/);
  const keys = `${browser.page().path}/keys`;
  await browser.get(keys);
  const keyIn = (html: string) => /em_[\w-]{40,}/.exec(html)?.[0];
  const status = async (key: string) =>
    (await world.call('GET', '/api/public/emails', { headers: { authorization: `Bearer ${key}` } })).status;

  const made = await browser.submit('/keys', {
    label: 'shop <b>',
    scopes: ['email:read'],
    domains: 'Sender.invalid',
    strict: 'on',
  });
  const first = keyIn(made.html)!;
  t.is(await status(first), 200);
  const list = await browser.get(keys);
  t.regex(list.text, /shop <b> .*Read emails and events Strict sender\.invalid/);
  t.is(keyIn(list.html), undefined, 'a key is shown once');

  const { id: firstId } = await world.db('api_keys').where({ label: 'shop <b>' }).first();
  const rotated = await browser.submit(`${firstId}/rotate`, { now: 'on' });
  const second = keyIn(rotated.html)!;
  t.not(second, first);
  t.is(await status(second), 200);
  await until(async () => (await status(first)) === 401, { what: 'the old key to end' });

  const label = { label: 'shop <b>' };
  const usedAt = async () =>
    (await world.db('api_keys').where(label).whereNull('revoked_at').first()).used_at;
  t.is(await usedAt(), null, 'no call waits for this to be written');
  const now = world.clock.now();
  await world.clock.advance('1m');
  await until(async () => (await usedAt()) === now, { what: 'the time of the last use' });
  await world.clock.jump('3h');
  t.regex(
    (await browser.get(keys)).text,
    /shop <b> em_\S+ Read emails and events Strict sender\.invalid 3 hours ago/,
  );

  const { id } = await world.db('api_keys').where(label).whereNull('revoked_at').first();
  const thirdPage = await browser.submit(`${id}/rotate`);
  const third = keyIn(thirdPage.html)!;
  t.regex(thirdPage.text, /The old key works until /);
  t.deepEqual([await status(second), await status(third)], [200, 200]);

  await browser.get(keys);
  const last = world.db('api_keys').where(label).whereNull('ends_at').whereNull('revoked_at');
  const { id: thirdId } = await last.clone().first();
  await last.update({ ends_at: world.clock.now() + 3_600_000 });
  const replaced = (await browser.submit(`${thirdId}/rotate`)).text;
  t.regex(replaced, /The key has been replaced and works until .* unless you revoke it\./);
  t.regex(replaced, /shop <b> Replaced works until /);
  t.regex((await browser.submit(`${thirdId}/revoke`)).text, /shop <b> was revoked/);
  t.notRegex((await browser.get(keys)).text, /was revoked\. Requests/, 'said once');
  await until(async () => (await status(third)) === 401, { what: 'the key to end' });
});

test('a form that is not right says what is wrong, keeps what was given, and makes nothing', async (t) => {
  const world = await startWorld(t);
  const browser = createBrowser(world);
  await browser.get(`${(await setUp(browser, world)).path}/keys`);
  const refused = await browser.submit('/keys', { label: '"><script>x', scopes: [], domains: 'no/domain' });
  t.is(refused.status, 422);
  t.regex(refused.text, /Select at least one permission/);
  t.regex(refused.html, /value="&quot;&gt;&lt;script&gt;x"/);
  t.regex(
    (await browser.submit('/keys', { label: 'x', scopes: 'email:send', domains: 'no/domain' })).text,
    /Enter domain names/,
  );
  t.is((await world.db('api_keys').select()).length, 1);
});

test('the theme is kept in a cookie', async (t) => {
  const browser = createBrowser(await startWorld(t), {
    referer: 'http://elsewhere.invalid/dashboard/sign-in',
  });
  t.notRegex((await browser.get('/dashboard/sign-in')).html, /data-theme/);
  const dark = await browser.submit('/theme', { theme: 'dark' });
  t.is(dark.path, '/dashboard/sign-in');
  t.regex(dark.html, /<html lang="en" data-theme="dark">/);
  t.notRegex((await browser.submit('/theme', { theme: '' })).html, /data-theme/);
});
