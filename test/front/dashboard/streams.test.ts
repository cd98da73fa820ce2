/** Streams in the dashboard: created, changed, removed, named by a key, and with a list of their own. */
import test from 'ava';
import { suppressAddress } from '#accounts/suppression-list.ts';
import { createBrowser, setUp } from '#lab/browser/browser.ts';
import { startWorld } from '#lab/scenes/world.ts';

test('a stream is created, changed, used by a key, and removed; its list is its own', async (t) => {
  const world = await startWorld(t);
  const { db } = world;
  const browser = createBrowser(world);
  await setUp(browser, world);
  const [{ id: orgId }] = await db('organizations').select('id');
  const base = `/dashboard/o/${orgId}`;
  await browser.get(`${base}/streams`);
  const wrong = await browser.submit('/streams', { name: 'No Name', title: 'x', kind: 'subscribed' });
  t.regex(wrong.text, /Enter 1 to 30 small letters/);
  const made = await browser.submit('/streams', {
    name: 'news',
    title: 'Our <i>news</i>',
    kind: 'subscribed',
  });
  t.regex(made.text, /The stream news was created/);
  t.false(made.html.includes('Our <i>'));
  const settings = {
    title: 'News',
    kind: 'subscribed',
    emailsPerDay: '20',
    openTracking: 'off',
    clickTracking: '',
  };
  await browser.submit('/streams/news', { ...settings, color: 'red' });
  t.is(browser.page().status, 422);
  await browser.submit('/streams/news', { ...settings, color: '#123456' });
  t.like(await db('streams').first(), {
    title: 'News',
    emails_per_day: 20,
    click_tracking: null,
    color: '#123456',
  });

  await suppressAddress({ db, orgId, now: 1, stream: 'news' }, 'ann@there.invalid');
  t.notRegex((await browser.get(`${base}/suppressions`)).text, /ann@there/);
  t.regex(
    (await browser.get(`${base}/suppressions?stream=news`)).text,
    /Mail of the stream News is not sent .*ann@there\.invalid/,
  );
  t.true(browser.page().html.includes(`${base}/suppressions/export?stream=news`));
  t.regex(
    browser.page().html,
    /<input type="hidden" name="stream" value="news">/,
    'a search stays in the list',
  );
  const csv = await browser.get(`${base}/suppressions/export?stream=news`);
  t.regex(csv.headers.get('content-disposition')!, /"suppressions-news\.csv"/);
  t.regex(csv.html, /^[^\n]*createdAt"\r\n"ann@there\.invalid",[^\n]*\r\n$/);
  t.notRegex((await browser.get(`${base}/suppressions/export`)).html, /ann@there/);
  for (const name of ['none', '', '..%2F%22'])
    t.is((await browser.get(`${base}/suppressions/export?stream=${name}`)).status, 404);
  await browser.get(`${base}/suppressions?stream=news`);
  await browser.submit('/remove');
  t.is((await db('suppressions')).length, 0);

  await browser.get(`${base}/keys`);
  await browser.submit('/keys', { label: 'n', scopes: 'email:send', mode: 'live', stream: 'news' });
  t.is((await db('api_keys').where({ label: 'n' }).first('stream')).stream, 'news');
  await browser.get(`${base}/streams/news`);
  t.regex((await browser.submit('/streams/news/remove')).text, /news is that of the key n/);
  await db('api_keys').where({ label: 'n' }).update({ revoked_at: 1 });
  await browser.get(`${base}/streams/news`);
  t.regex((await browser.submit('/streams/news/remove')).text, /The stream news was removed/);
  t.is((await browser.get(`${base}/streams/news`)).status, 404);
});
