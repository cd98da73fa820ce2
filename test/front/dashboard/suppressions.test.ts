/** Suppressions: found, added, removed, imported, exported, and why each is there. */
import test, { type ExecutionContext } from 'ava';
import { createBrowser, setUp } from '#lab/browser/browser.ts';
import { startWorld, type WorldOptions } from '#lab/scenes/world.ts';

async function arrive(t: ExecutionContext, options: WorldOptions = {}) {
  const world = await startWorld(t, options);
  const browser = createBrowser(world);
  await setUp(browser, world);
  const [{ id }] = await world.db('organizations').select('id');
  return { world, browser, orgId: id as string, base: `/dashboard/o/${id}/suppressions` };
}

test('an address is added, found, held against a send, and taken off', async (t) => {
  const { world, browser, base } = await arrive(t);
  await browser.get(base);
  t.regex((await browser.submit('/suppressions', { address: 'nobody' })).text, /Enter an email address/);
  t.is(browser.page().status, 422);
  const added = await browser.submit('/suppressions', {
    address: 'Ann@There.invalid',
    reason: 'asked <i>us</i>',
  });
  t.regex(added.text, /Ann@There\.invalid was added/);
  t.regex(added.text, /Manual asked <i>us<\/i>/);
  t.false(added.html.includes('<i>us'));
  t.is((await world.send({ to: 'ann@there.invalid' })).status, 422);
  t.regex(
    (await browser.submit('/suppressions', { address: 'ann@THERE.invalid' })).text,
    /already on the list/,
  );

  t.regex((await browser.get(`${base}?q=ann@there`)).text, /Ann@There\.invalid Manual/);
  t.regex((await browser.get(`${base}?q=ANN@there.INVALID`)).text, /Ann@There\.invalid Manual/);
  t.regex((await browser.get(`${base}?q=zoe`)).text, /No address on the list contains “zoe”/);
  await browser.get(base);
  t.regex((await browser.submit('/remove')).text, /was removed/);
  t.is((await world.send({ to: 'ann@there.invalid' })).status, 200);
});

test('the email whose bounce put an address on the list is named', async (t) => {
  const { world, browser, base } = await arrive(t, {});
  const { body } = await world.send({ to: 'unknown@there.invalid' });
  await world.when(body.emailId, ({ status }) => status !== 'queued' && status !== 'sending');
  const list = await browser.get(base);
  t.regex(list.text, /unknown@there\.invalid Bounced Hard bounce: no such mailbox/);
  const path = /href="([^"]+)">unknown@/.exec(list.html)![1]!;
  const why = await browser.get(path);
  t.regex(why.text, /the server says that the mailbox does not exist/);
  t.true(why.html.includes(`/emails/${body.emailId}"`));
});

test('a list comes in, and goes out as it came', async (t) => {
  const { browser, base } = await arrive(t);
  await browser.get(`${base}/import`);
  const bad = await browser.submit('/import', { list: 'email,reason\na.x.invalid,spam\nno address\n' });
  t.is(bad.status, 422);
  t.regex(
    bad.text,
    /Nothing was imported: no email address in line 2 \("a\.x\.invalid"\), line 3 \("no address"\)/,
  );
  t.true(bad.html.includes('a.x.invalid,spam'), 'what was given is there to be mended');
  t.regex((await browser.submit('/import', { list: ' ' })).text, /The list has no addresses/);
  const many = Array.from({ length: 3000 }, (_, at) => `u${String(at).padStart(4, '0')}@x.invalid`);
  t.regex(
    (await browser.submit('/import', { list: many.join('\n') })).text,
    /3,000 addresses were added to the list/,
  );
  await browser.get(`${base}/import`);
  t.regex(
    (await browser.submit('/import', { list: many.slice(0, 2).concat('v@x.invalid', 'nobody').join('\n') }))
      .text,
    /1 address was added to the list\. 2 were already on it\. Left out, .*: line 4 \("nobody"\)/,
  );

  const csv = await browser.get(`${base}/export`);
  t.is(csv.headers.get('content-disposition'), 'attachment; filename="suppressions.csv"');
  t.regex(csv.headers.get('content-type')!, /^text\/csv/);
  t.is(csv.html.trim().split('\r\n').length, 3002);

  const seen: string[] = [];
  for (let path: string | undefined = `${base}?q=x.invalid`; path; ) {
    const { html } = await browser.get(path);
    seen.push(...[...html.matchAll(/>(\w+@x\.invalid)<\/a>/g)].map(([, address]) => address!));
    path = /href="([^"]+)" rel="next"/.exec(html)?.[1]?.replaceAll('&amp;', '&');
  }
  t.deepEqual(seen, [...many, 'v@x.invalid'], 'page by page all are there, once');
});

test('an import larger than may be is refused, and the service goes on', async (t) => {
  const { browser, base } = await arrive(t);
  await browser.get(`${base}/import`);
  const answer = await browser
    .submit('/import', { list: 'x'.repeat(13 * 1024 * 1024) })
    .then(({ status }) => status)
    // It may close while we are still talking.
    .catch(() => 413);
  t.is(answer, 413);
  t.is((await browser.get(base)).status, 200);
});
