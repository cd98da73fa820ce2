/** Pages with real rows: nothing shifts while they load, and nothing is cut on a tablet or a small laptop. */
import { gzipSync } from 'node:zlib';
import test from 'ava';
import type { Page, Route } from 'playwright-core';
import { createBrowser, password, setUp } from '#lab/browser/browser.ts';
import { startChromium } from '#lab/browser/chromium.ts';
import { outside } from '#lab/browser/outside.ts';
import { startWorld, type World } from '#lab/scenes/world.ts';
import { until } from '#lab/until.ts';
import { suspend } from '#mail/queue/rows/suspensions.ts';

const { visit } = startChromium(test);

const maxShift = 0.01;
const maxColdBytes = 70_000;

/** Compressed, by the URL with the hash of the content. */
const filesSeen = new Map<string, number>();

/** What a browser that has nothing yet fetches for a page: the page and its files, compressed. */
async function coldBytes(page: Page, path: string): Promise<number> {
  const html = await (await page.request.get(path)).text();
  let sum = gzipSync(html).length;
  for (const file of new Set(html.match(/\/dashboard\/assets\/[^"]+/g))) {
    const bytes = filesSeen.get(file) ?? gzipSync(await (await page.request.get(file)).body()).length;
    filesSeen.set(file, bytes);
    sum += bytes;
  }
  return sum;
}

const countShifts = `
  window.shift = 0;
  new PerformanceObserver((list) => {
    for (const entry of list.getEntries()) if (!entry.hadRecentInput) window.shift += entry.value;
  }).observe({ type: 'layout-shift', buffered: true });`;

/** Names that are broken in the middle although the page has room: no line holds fewer than four characters of one. */
const broken = `[...document.querySelectorAll('tbody th, tbody td')].flatMap((cell) => {
  const walker = document.createTreeWalker(cell, NodeFilter.SHOW_TEXT);
  const found = [];
  for (let node = walker.nextNode(); node; node = walker.nextNode())
    if (!node.parentElement.closest('code, details:not([open]) > :not(summary)')) for (const { 0: word, index } of node.data.matchAll(/[\\w.-]{4,20}/g)) {
      const range = document.createRange();
      range.setStart(node, index);
      range.setEnd(node, index + word.length);
      const tops = new Set([...range.getClientRects()].filter(({ width }) => width > 0).map(({ top }) => Math.round(top)));
      if (tops.size > 1) found.push(word);
    }
  return found;
})`;

async function fill(world: World) {
  const operator = createBrowser(world);
  await setUp(operator, world);
  const base = `/dashboard/o/${world.orgId}`;
  const inAnHour = world.clock.now() + 3_600_000;
  const suspended = { destination: 'example.com', reason: 'they asked us to', createdAt: 0 };
  await suspend(world.db, { ...suspended, until: inAnHour });
  await world.clock.advance('5s');
  const send = (to: string, more: object = {}) =>
    world.send({ to, subject: 'Your order was shipped', ...more });
  for (const name of ['ann', 'bob']) await send(`${name}@example.com`);
  const { body: deferred } = await send('tempfail@there.invalid', {
    tags: { order: '4711', campaign: 'spring' },
  });
  await world.when(deferred.emailId, ({ status }) => status === 'deferred');
  const { body } = await send('eve@there.invalid');
  await world.when(body.emailId, ({ status }) => status === 'delivered');
  const submit = async (path: string, fields: Record<string, string | string[]>) => {
    await operator.get(base + path);
    const { status, text } = await operator.submit(path, fields);
    if (status >= 400) throw new Error(`${path}: ${text}`);
  };
  await submit('/domains', { name: 'mail.example.com' });
  await submit('/keys', { label: 'shop, production', scopes: ['email:send', 'email:read'], domains: '' });
  await submit('/suppressions', { address: 'ann@example.org' });
  await submit('/webhooks', { url: 'https://app.example.com/webhooks', which: 'all' });
  await submit('/streams', { name: 'newsletter', title: 'Monthly newsletter', kind: 'subscribed' });
  await submit('/team', { email: 'dora.developer@example.com', name: 'Dora Developer', role: 'viewer' });
  const { id: webhookId } = await world.db('webhooks').first('id');
  return [
    ...[
      '',
      '/emails',
      `/emails/${body.emailId}`,
      '/domains',
      '/domains/mail.example.com',
      '/keys',
      '/suppressions',
    ],
    ...[
      '/webhooks',
      `/webhooks/${webhookId}`,
      '/team',
      '/usage',
      '/send-test',
      '/statistics',
      '/streams',
      '/routes',
    ],
  ]
    .map((path) => base + path)
    .concat(
      '/dashboard/organizations',
      '/dashboard/queue',
      '/dashboard/queue/to/example.com',
      '/dashboard/account',
    );
}

test('with real rows nothing shifts while a page loads, and nothing is cut or broken at 1,024 and 768 px', async (t) => {
  const world = await startWorld(t, {
    zone: { 'example.com': { MX: ['10 mx1.invalid'] } },
  });
  const pages = await fill(world);
  const { page, isWider } = await visit(t, world, 'desktop');
  await page.addInitScript(countShifts);
  await page.goto('/dashboard/sign-in');
  await page.getByLabel('Email address').fill('olga@postern.invalid');
  await page.getByLabel('Password').fill(password);
  await page.keyboard.press('Enter');
  await page.waitForURL(`**/o/${world.orgId}`);
  const faults: Record<string, unknown> = {};
  const look = async (path: string, width: number, shot: string | null) => {
    await page.setViewportSize({ width, height: 800 });
    if (shot) await page.screenshot({ path: `${process.env.SHOTS}/${shot}-${width}.png`, fullPage: true });
    const found = await page.evaluate<string[]>(`[...${outside}, ...${broken}]`);
    if (found.length > 0 || (await isWider())) faults[`${path} at ${width}`] = found;
  };
  // The records of a domain are looked at while DNS is being asked, then with what it answered.
  const checks: Route[] = [];
  await page.route('**/records', (route) => {
    checks.push(route);
  });
  const widths = process.env.SHOTS ? [1440, 1024, 900, 768, 390] : [1024, 768];
  for (const [index, path] of pages.entries()) {
    await page.setViewportSize({ width: 1024, height: 800 });
    await page.goto(path);
    const shift = await page.evaluate<number>('shift');
    if (shift >= maxShift) faults[`${path} shifts`] = shift;
    const bytes = await coldBytes(page, path);
    if (bytes > maxColdBytes) faults[`${path} weighs`] = bytes;
    for (const width of widths) await look(path, width, process.env.SHOTS ? `p${index}` : null);
    if ((await page.locator('[hx-trigger=load]').count()) === 0) continue;
    const check = await until(() => checks.pop(), { what: 'the request of the records' });
    await check.continue();
    await page.locator('[hx-trigger=load]').waitFor({ state: 'detached' });
    for (const width of widths) await look(`${path}, answered`, width, null);
  }
  t.is(checks.length, 0);
  t.deepEqual(faults, {});
});
