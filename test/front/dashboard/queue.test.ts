/** The queue's pages: what waits where, and orders to it, the same as by the command line. */
import test, { type ExecutionContext } from 'ava';
import { createBrowser, setUp } from '#lab/browser/browser.ts';
import { startWorld } from '#lab/scenes/world.ts';
import { until } from '#lab/until.ts';
import { listOrders } from '#mail/queue/rows/destination-rules.ts';

/** Three mails that there.invalid has put off, and one to elsewhere. */
async function startQueue(t: ExecutionContext) {
  const world = await startWorld(t, { zone: { 'else.invalid': { MX: ['10 mx1.invalid'] } } });
  for (const to of ['tempfail+1@there.invalid', 'tempfail+2@there.invalid', 'tempfail@else.invalid']) {
    const { body } = await world.send({ to, subject: to });
    await world.when(body.emailId, ({ status }) => status === 'deferred');
  }
  const browser = createBrowser(world);
  await setUp(browser, world);
  const states = () => world.db('deliveries').orderBy('id').pluck('status');
  return { world, browser, states };
}

test('what waits is shown by destination, found by a part of a name, and followed to its emails', async (t) => {
  const { browser } = await startQueue(t);
  const queue = await browser.get('/dashboard/queue');
  t.regex(queue.text, /Waiting 3 .* Blocked 0/);
  t.regex(queue.text, /there\.invalid OK 451 4\.3\.0 try again later 2 2 ·/);
  t.notRegex((await browser.get('/dashboard/queue?q=elsewhere')).text, /451 4/);
  const found = await browser.get('/dashboard/queue?q=ELSE');
  t.regex(found.text, /else\.invalid OK/);
  t.notRegex(found.text, /there\.invalid/);

  const poll = await browser.ask('GET', '/dashboard/queue', { headers: { 'hx-request': 'true' } });
  t.regex(poll.html, /^<div class="queue-live" id="queue-live"/);

  const path = '/dashboard/queue/to/there.invalid';
  t.true(queue.html.includes(`href="${path}"`));
  const destination = await browser.get(path);
  for (const to of ['tempfail+1@there.invalid', 'tempfail+2@there.invalid'])
    t.true(destination.text.includes(to));
  t.false(destination.text.includes('else.invalid'));
  t.regex(destination.html, /href="\/dashboard\/o\/[^/]+\/emails\/[^"]+"/);
  t.regex((await browser.get(`${path}?status=held`)).text, /No mail to this destination is held/);
  t.is((await browser.get('/dashboard/queue/to/nobody.invalid')).status, 404);
});

test('new source addresses are shown with their day and allowance', async (t) => {
  const { world, browser } = await startQueue(t);
  const shown = { address: '192.0.2.11', receivers: 'Gmail', day: 3, step: 3, used: 112, deferred: 0 };
  await world.db('warm_ups').insert({ ...shown, began_at: world.clock.now() });
  const { text } = await browser.get('/dashboard/queue');
  t.regex(text, /192\.0\.2\.11 Gmail 3 112 230 340 18/);
});

test('an order says how much it will touch, wants a reason, and does it', async (t) => {
  const { browser, states } = await startQueue(t);
  const path = '/dashboard/queue/action?action=hold&domain=there.invalid';
  t.regex((await browser.get(path)).text, /2 deliveries will be held/);
  t.regex((await browser.submit('/queue/actions', { reason: '' })).text, /Enter a reason/);
  t.deepEqual(await states(), ['deferred', 'deferred', 'deferred']);
  await browser.get(path);
  const done = await browser.submit('/queue/actions', { reason: 'a look at it' });
  t.is(done.path, '/dashboard/queue');
  t.regex(done.text, /2 held\./);
  t.deepEqual(await states(), ['held', 'held', 'deferred']);

  t.regex(
    (await browser.get('/dashboard/queue/action?action=retry&domain=there.invalid')).text,
    /No delivery would be made due now.*2 held/,
  );
  await browser.get('/dashboard/queue/action?action=cancel&to=Tempfail%2B1@there.invalid');
  t.regex(browser.page().text, /1 delivery will be canceled/);
  t.regex((await browser.submit('/queue/actions', { reason: 'not needed' })).text, /1 canceled/);
  await browser.get('/dashboard/queue/action?action=release&status=held');
  await browser.submit('/queue/actions', { reason: 'enough' });
  await until(async () => (await states())[1] === 'deferred');
  t.is((await states())[0], 'canceled');
});

test('filters that are none are refused, and say what would be right', async (t) => {
  const { browser, states } = await startQueue(t);
  const ask = async (query: string) =>
    (await browser.get(`/dashboard/queue/action?action=cancel&${query}`)).text;
  t.regex(await ask('domain=not a domain'), /Enter a domain name, such as example\.com/);
  t.regex(await ask('to=nobody'), /Enter an email address/);
  t.regex(await ask('org=x'), /No organization has this name/);
  t.notRegex(await ask('org=Tenant'), /No organization has this/);
  t.regex(browser.page().html, /name="org"[^>]* value="[0-9a-f-]{36}"/, 'found by its name');
  t.regex(await ask('org=01a1ffff-0000-7000-8000-000000000000'), /No organization has this name or id/);
  t.regex(await ask('status=delivered'), /Choose a state/);
  t.regex(await ask('destination=%3Cb%3E'), /Enter a recipient domain/);
  const { html } = await browser.get('/dashboard/queue/action');
  t.notRegex(html, /method="post" action="\/dashboard\/queue\/actions"/, 'nothing to give yet');
  const _csrf = browser.csrf();
  t.is(
    (await browser.post('/dashboard/queue/actions', { _csrf, action: 'cancel', reason: 'all' })).status,
    422,
  );
  t.deepEqual(await states(), ['deferred', 'deferred', 'deferred']);
});

test('a destination is suspended for a while, and resumed', async (t) => {
  const { world, browser } = await startQueue(t);
  await browser.get('/dashboard/queue');
  t.regex(
    (await browser.submit('/suspend', { destination: 'mx1.invalid', for: 'long', reason: 'x' })).text,
    /such as 30m, 2h or 3d/,
  );
  const page = await browser.submit('/suspend', {
    destination: 'MX1.invalid',
    for: '2h',
    reason: 'they <b>asked</b>',
  });
  t.regex(page.text, /Suspended suspended until 20[-0-9]+ [:0-9]+ UTC : they <b>asked<\/b>/);
  const now = world.clock.now();
  const [suspension] = await listOrders(world.db, now);
  t.like(suspension, { destination: 'mx1.invalid', until: now + 2 * 3_600_000 });
  const resumed = await browser.submit('/resume', { reason: 'they are well' });
  t.regex(resumed.text, /mx1\.invalid was resumed/);
  t.deepEqual(await listOrders(world.db, now), []);
});
