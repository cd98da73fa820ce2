/** The overview, credits and limits, with real rows, on both databases; and as a browser shows them. */
import test from 'ava';
import { v7 as uuid } from 'uuid';
import { grant, setQuota } from '#accounts/rows/credit-ledger.ts';
import { setLimits } from '#accounts/rows/organizations.ts';
import { createBrowser, password, setUp } from '#lab/browser/browser.ts';
import { type Size, startChromium, waysOfRun } from '#lab/browser/chromium.ts';
import { startWorld, type World } from '#lab/scenes/world.ts';
import { suspend } from '#mail/queue/rows/suspensions.ts';
import { countNames } from '#mail/record/counts.ts';
import { latencyBounds } from '#mail/record/latency.ts';
import { hourMs } from '#mail/record/rows/statistics.ts';
import { insertRows } from '#platform/database/engine/insert-rows.ts';

const { visit } = startChromium(test);

async function tenant({ db }: World): Promise<{ id: string; base: string }> {
  const { id } = await db('organizations').where({ name: 'Tenant' }).first();
  return { id, base: `/dashboard/o/${id}` };
}

/** A month of figures, every hour of which has so much. */
async function past(
  { db, clock }: World,
  orgId: string,
  hourly: Partial<Record<string, number>>,
): Promise<void> {
  const now = clock.now();
  const rows = Array.from({ length: 720 }, (_, index) => {
    const busy = 1 + Math.sin(index / 4) * 0.6;
    const counts = countNames.map((name) => [name, Math.round((hourly[name] ?? 0) * busy)] as const);
    const delivered = counts.find(([name]) => name === 'delivered')![1];
    const took = [...latencyBounds, 0].map((_bound, at) => [
      `took_${at}`,
      [1, 2, 4].includes(at) ? Math.floor(delivered / at / 2) : 0,
    ]);
    return {
      org_id: orgId,
      hour: now - (now % hourMs) - index * hourMs,
      ...Object.fromEntries([...counts, ...took]),
    };
  });
  await db.transaction(async (trx) => {
    // The lock of those who sum up.
    await trx('event_readers').where({ name: 'statistics' }).forUpdate();
    await trx('statistics').where({ org_id: orgId }).delete();
    await insertRows(trx, 'statistics', rows);
  });
}

test('what was sent is there within seconds, beside what needs attention', async (t) => {
  const world = await startWorld(t, {
    zone: { 'dead.invalid': { MX: ['10 mx1.invalid'] } },
  });
  const browser = createBrowser(world);
  await setUp(browser, world);
  const { id, base } = await tenant(world);
  t.regex((await browser.get(base)).text, /Send a test email.*Create an API key Done/);
  // No check of its records, which would find them and take the failures back.
  await world.db('domains').update({ check_at: null });

  const { body } = await world.send({ to: 'ann@there.invalid' });
  await world.when(body.emailId, ({ status }) => status === 'delivered');
  await world.clock.passUntil(
    async () => /Sent 1 .*Delivered 1 100% of sent/.test((await browser.get(base)).text),
    { step: '10s' },
  );
  t.regex(browser.page().text, /Nothing needs attention/);

  await suspend(world.db, {
    destination: 'dead.invalid',
    reason: 'they asked',
    createdAt: 0,
    until: world.clock.now() + hourMs,
  });
  await world.clock.advance('5s');
  await world.send({ to: 'bob@dead.invalid' });
  await world.db('domains').insert({
    id: uuid(),
    org_id: id,
    name: 'new.invalid',
    status: 'pending',
    created_at: 0,
    dkim_selector: 's',
    dkim_public_key: '',
    dkim_private_key: '',
  });
  // No event is posted to them.
  const far = Number.MAX_SAFE_INTEGER;
  const webhook = {
    org_id: id,
    types: '[]',
    secret: '',
    after_position: far,
    created_at: 0,
    updated_at: 0,
  };
  const failing = { status: 'active', failing_since: world.clock.now() };
  const failingId = uuid();
  await world.db('webhooks').insert([
    { ...webhook, id: uuid(), url: 'https://a.invalid', status: 'disabled', reason: 'gone' },
    { ...webhook, id: failingId, url: 'https://b.invalid', ...failing },
    {
      ...webhook,
      id: uuid(),
      url: 'https://c.invalid',
      ...failing,
      failing_since: failing.failing_since - hourMs,
    },
  ]);
  // From now, because maintenance deletes what is old.
  const now = world.clock.now();
  const attempt = { id: uuid(), webhook_id: failingId, number: 1, started_at: now, duration: 1, url: '' };
  const tried = {
    webhook_id: failingId,
    event_id: uuid(),
    type: 'webhook.test',
    position: 0,
    status: 'failed',
  };
  const messageId = uuid();
  await world.db('webhook_messages').insert({ ...tried, id: messageId, created_at: now, updated_at: now });
  await world.db('webhook_attempts').insert({ ...attempt, message_id: messageId, error: 'HTTP 503' });
  await world.db('domains').where({ status: 'verified' }).update({ failures: 2, failing_since: 0 });
  await world.db.transaction((trx) => setQuota(trx, id, 2, world.clock.now()));
  await past(world, id, { sent: 10, delivered: 10, bounced: 1, complained: 1 });
  const { text } = await browser.get(base);
  t.regex(
    text,
    /Credits: Tenant None left · Sends are refused until credits are added\. The quota renews in \d+ (minutes|hours|days)/,
  );
  t.regex(text, /Bounces: Tenant 1\d(\.\d)?%: \d+ of \d+ sent in 7 days/);
  t.regex(text, /Complaints: Tenant 1\d(\.\d)?%/);
  t.regex(
    text,
    /Suspended: dead\.invalid for \d+ days · By the operator: they asked; the next attempt is in 5\d m/,
  );
  t.regex(text, /Domain: new\.invalid Its mail is refused here · Publish its DNS records/);
  t.regex(text, /Domain: sender\.invalid for \d+ days · Its mail is sent without a valid signature/);
  t.regex(text, /Webhook: https:\/\/a\.invalid Disabled · gone/);
  t.regex(text, /Webhook: https:\/\/b\.invalid for \d+ s · Failing · HTTP 503/);
  t.regex(text, /Webhook: https:\/\/c\.invalid for 1 hour · Failing · Events are posted again/);
  t.notRegex(text, /postern (webhook|domain|email|inbound)/, 'owners have no command line');
  t.regex((await browser.get(`${base}?window=30d`)).text, /Sent 7,\d\d\d/);
});

test('operators grant credits, set the quota and the limits; the ledger is read by day', async (t) => {
  const world = await startWorld(t);
  const browser = createBrowser(world);
  await setUp(browser, world);
  const { id, base } = await tenant(world);
  await browser.get(`${base}/usage`);
  t.regex((await browser.submit('/grant', { amount: '1,500' })).text, /now has 1,500 credits.*Wallet 1,500/);
  t.regex((await browser.submit('/grant', { amount: '-1501' })).text, /has fewer credits than that/);
  t.is(browser.page().status, 422);
  t.regex((await browser.submit('/grant', { amount: '0' })).text, /a whole number/i);
  t.regex(
    (await browser.submit('/quota', { quota: '' })).text,
    /Enter a whole number from 0 to 999,999,999,999/,
  );
  t.regex(
    (await browser.submit('/quota', { quota: '1000' })).text,
    /1,000 of 1,000 left.*2,500 recipients: quota and wallet/,
  );
  const { body } = await world.send({ to: ['ann@there.invalid', 'bob@there.invalid'] });
  await world.when(body.emailId, ({ status }) => status === 'delivered');
  const today = new Date().toISOString().slice(0, 10);
  t.regex(
    (await browser.get(`${base}/usage`)).text,
    new RegExp(`${today} 1 .*−2 sent .*\\+1,500 granted to the wallet 2,498`),
  );
  // Forty days, each with an entry: ids contain the time.
  const days = Array.from({ length: 40 }, (_, at) => {
    const time = Date.now() - (at + 1) * 86_400_000;
    return { id: uuid({ msecs: time }), org_id: id, at: time, change: 1, reason: 'wallet', balance: at };
  });
  await world.db('credit_entries').insert(days);
  const first = await browser.get(`${base}/usage`);
  t.is(first.html.match(/granted to the wallet/g)!.length, 31);
  const next = /href="([^"]+before=[^"]+)"/.exec(first.html)![1]!;
  const second = await browser.get(`${base}/usage${next}`);
  t.is(second.html.match(/granted to the wallet/g)!.length, 10);
  t.regex(second.text, /First page/);
  t.is((await browser.get(`${base}/usage?before=x`)).status, 404);

  await browser.get(`${base}/usage`);
  t.regex(
    (await browser.submit('/pool', { pool: 'b_lk' })).text,
    /Enter up to 40 letters, digits and hyphens/,
  );
  t.regex(
    (await browser.submit('/pool', { pool: 'Bulk' })).text,
    /from the pool bulk within a second\. No running server has this pool.*the running servers: default\./,
  );
  t.is((await world.db('organizations').first()).pool, 'bulk');
  await browser.submit('/pool', { pool: 'default' });
  await browser.submit('/limits', { perSecond: '5', perDay: 'Unlimited', emailsPerDay: '20 000' });
  t.regex(browser.page().text, /API requests per second 5 .*per day Unlimited .*Recipients per day 20,000/);
  const row = await world.db('organizations').where({ id }).first();
  t.deepEqual([row.requests_per_second, row.requests_per_day, row.emails_per_day], [5, null, 20_000]);
  t.is((await browser.submit('/limits', { perSecond: '-1' })).status, 422);
  t.regex((await browser.submit('/limits', { perSecond: '0' })).text, /from 1 to 2,147,483,647/);
});

for (const size of waysOfRun<Size>('desktop', 'phone')) {
  test(`${size}: the overview in a browser`, async (t) => {
    const world = await startWorld(t);
    const { id, base } = await tenant(world);
    const { page, check } = await visit(t, world, size, size === 'phone' ? 'dark' : 'light');
    const shot = (name: string) =>
      process.env.SHOTS &&
      page.screenshot({ path: `${process.env.SHOTS}/${size}-${name}.png`, fullPage: true });
    await page.goto(new URL(world.setUpUrl()!).pathname);
    await page.getByLabel('Your name').fill('Olga Operator');
    await page.getByLabel('Email address').fill('olga@postern.invalid');
    await page.getByLabel('Password').fill(password);
    await page.getByRole('button', { name: 'Set up' }).click();
    await page.getByRole('heading', { name: 'Welcome to Postern' }).waitFor();
    await check('first steps');
    await shot('first-steps');

    const { body } = await world.send({ to: 'ann@there.invalid' });
    await world.when(body.emailId, ({ status }) => status === 'delivered');
    const hourly = {
      sent: 1300,
      delivered: 1230,
      bounced: 30,
      complained: 1,
      opened: 510,
      clicked: 140,
      deferred: 60,
    };
    await past(world, id, hourly);
    await setLimits(world.db, id, { requestsPerSecond: 50, requestsPerDay: 100_000, emailsPerDay: 50_000 });
    await world.db.transaction((trx) => setQuota(trx, id, 40, world.clock.now()));
    await world.db.transaction((trx) => grant(trx, id, 1200, world.clock.now()));
    await world.db('domains').where({ org_id: id }).update({ status: 'pending' });
    for (const window of ['24 hours', '7 days', '30 days']) {
      await page.goto(base);
      await page.getByRole('link', { name: `The last ${window}`, exact: true }).click();
      await page.locator('.chart svg').waitFor();
      await check(window);
      await shot(window.replace(' ', ''));
    }
    t.true(await page.getByRole('img', { name: 'Stacked bar chart of' }).isVisible());
    const title = page.locator('.chart g').last().locator('title');
    t.regex((await title.textContent())!, /UTC: delivered [\d,]+, waiting 0, bounced [\d,]+$/);
    await page.getByText('Show as a table').click();
    await check('a table');
    t.is(await page.locator('.as-table tbody tr').count(), 30);
    await shot('table');
    await page.emulateMedia({ media: 'print' });
    t.true(await page.locator('.chart rect.key-delivered').first().isVisible(), 'on paper too');
    await page.emulateMedia({ media: 'screen' });
    for (const name of ['credits', 'limits']) {
      await page.goto(`${base}/${name}`);
      await check(name);
      await shot(name);
    }
  });
}
