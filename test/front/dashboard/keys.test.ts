/** Settings → API keys: made, shown once, rotated, revoked, in one's own organization alone. */
import test from 'ava';
import { createBrowser, setUp } from '#lab/browser/browser.ts';
import { startWorld } from '#lab/scenes/world.ts';
import { until } from '#lab/until.ts';
import { newId } from '#platform/base/id.ts';

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

test('the first sample of a new key is accepted, with and without a verified domain', async (t) => {
  const world = await startWorld(t);
  const browser = createBrowser(world);
  const keys = `${(await setUp(browser, world)).path}/keys`;
  const runSample = async (html: string) => {
    const [, key] = /Bearer (em_[\w-]+)/.exec(html)!;
    const [, body] = /-d &#39;(.*?)&#39;/.exec(html) ?? [];
    const headers = { authorization: `Bearer ${key}` };
    return world.call('POST', '/api/public/email/send', { headers, body: body!.replaceAll('&quot;', '"') });
  };
  const make = async (fields = {}) => {
    await browser.get(keys);
    return browser.submit('/keys', { label: 'app', ...fields });
  };
  await world
    .db('domains')
    .insert({ ...(await world.db('domains').first()), id: newId(), name: 'a.invalid', status: 'pending' });
  await world.db('domains').update({ status: 'pending' });
  const test = await make();
  t.regex(test.html, /hello@postern\.test/);
  t.like(await runSample(test.html), { status: 200 });
  t.regex((await browser.get(keys)).text, /app em_test_\S+ Send emails Strict Test/);
  const early = await make({ mode: 'live' });
  t.regex(early.text, /can send as soon as a domain is verified/);
  t.notRegex(early.text, /Waiting for the first email/);

  await world.db('domains').where({ name: 'sender.invalid' }).update({ status: 'verified' });
  const live = await make();
  t.regex(live.html, /hello@sender\.invalid/, 'a pending domain that is first in the list cannot send');
  t.like(await runSample(live.html), { status: 200 });
  t.notRegex((await make({ scopes: 'email:read' })).text, /Send a first email|as soon as a domain/);
});

test('the page of a new key waits ten minutes for its first email', async (t) => {
  const world = await startWorld(t);
  const browser = createBrowser(world);
  await browser.get(`${(await setUp(browser, world)).path}/keys`);
  const [, path] = /hx-get="([^"]+\/first-email)"/.exec(
    (await browser.submit('/keys', { label: 'app' })).html,
  )!;
  t.regex((await browser.get(path!)).html, /data-live=.*Waiting for the first email/s);
  await world.clock.jump('10m');
  const over = await browser.get(path!);
  t.regex(over.text, /No email with this key has arrived yet/);
  t.notRegex(over.html, /data-live/);
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
