/** Names as long as DNS allows, on windows between a phone and a desktop: nothing leaves its card. */
import test from 'ava';
import { createBrowser, password, setUp } from '#lab/browser/browser.ts';
import { startChromium } from '#lab/browser/chromium.ts';
import { outside } from '#lab/browser/outside.ts';
import { startWorld } from '#lab/scenes/world.ts';

const { visit } = startChromium(test);

/** RFC 1035 section 2.3.4. */
const label = 'abcdefghi'.repeat(7);

test('between a phone and a desktop nothing leaves its card, with labels of 63 characters', async (t) => {
  const world = await startWorld(t);
  await setUp(createBrowser(world), world);
  const { id } = await world.db('organizations').first('id');
  const base = `/dashboard/o/${id}`;
  const { body } = await world.send({
    to: `${label}@${label}.invalid`,
    subject: label,
    tags: { [label]: label },
  });
  t.truthy(body.emailId);
  const { page, isWider } = await visit(t, world, 'desktop');
  await page.goto('/dashboard/sign-in');
  await page.getByLabel('Email address').fill('olga@postern.invalid');
  await page.getByLabel('Password').fill(password);
  await page.keyboard.press('Enter');
  await page.waitForURL(`**/o/${id}`);
  const browser = createBrowser(world);
  await browser.get('/dashboard/sign-in');
  await browser.submit('/sign-in', { email: 'olga@postern.invalid', password });
  const submit = async (path: string, fields: Record<string, string | string[]>) => {
    await browser.get(base + path);
    t.true((await browser.submit(path, fields)).status < 400, path);
  };
  await submit('/domains', { name: `${label}.${label}.invalid` });
  await submit('/keys', { label, scopes: ['email:send'], domains: '' });
  await submit('/webhooks', { url: `https://${label}.invalid/${label}`, which: 'all' });
  await submit('/team', { email: `${label}@${label}.invalid`, name: label, role: 'viewer' });
  const { id: webhookId } = await world.db('webhooks').first('id');
  const pages = [
    ...['', '/emails', `/emails/${body.emailId}`, '/domains', `/domains/${label}.${label}.invalid`],
    ...['/keys', '/suppressions', '/webhooks', `/webhooks/${webhookId}`, '/team', '/usage'],
  ].map((path) => base + path);
  for (const width of [768, 900, 1100]) {
    await page.setViewportSize({ width, height: 900 });
    for (const path of [...pages, '/dashboard/organizations', '/dashboard/queue']) {
      await page.goto(path);
      t.deepEqual(await page.evaluate(outside), [], `${path} at ${width}`);
      t.false(await isWider(), `${path} at ${width}: wider than the screen`);
    }
  }
});
