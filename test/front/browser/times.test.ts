/** Times in the reader's zone: from the first paint on, also in parts that update themselves; in UTC without scripts. */
import test from 'ava';
import { createBrowser, password, setUp } from '#lab/browser/browser.ts';
import { startChromium } from '#lab/browser/chromium.ts';
import { startWorld } from '#lab/scenes/world.ts';

const { visit } = startChromium(test);

test('an email’s times are local in their text, with UTC in the tooltip, and never change before the eyes', async (t) => {
  const world = await startWorld(t);
  const browser = createBrowser(world);
  await setUp(browser, world);
  const { body } = await world.send({ to: 'tempfail@there.invalid' });
  const path = `/dashboard/o/${world.orgId}/emails/${body.emailId}`;
  const utc = `${new Date(world.clock.now()).toISOString().slice(0, 10)} `;
  t.regex(
    (await browser.get(path)).html,
    new RegExp(`<time datetime="[^"]+" data-local>${utc}\\d\\d:\\d\\d:\\d\\d UTC</time>`),
  );

  const { page, context, check } = await visit(t, world, 'desktop');
  const session = await context.newCDPSession(page);
  await session.send('Emulation.setTimezoneOverride', { timezoneId: 'Asia/Tokyo' });
  await page.goto('/dashboard/sign-in');
  await page.getByLabel('Email address').fill('olga@postern.invalid');
  await page.getByLabel('Password').fill(password);
  await page.getByRole('button', { name: 'Sign in' }).click();
  await page.getByRole('heading', { name: 'Overview' }).waitFor();
  /** Keeps each text that a frame shows. */
  await page.addInitScript(`
    window.shown = new Set();
    const look = () => {
      for (const time of document.querySelectorAll('time[data-local]')) window.shown.add(time.textContent);
      requestAnimationFrame(look);
    };
    requestAnimationFrame(look);`);
  await page.goto(path);
  const accepted = page.locator('.journey time[data-local]').first();
  const at = Date.parse((await accepted.getAttribute('datetime'))!);
  const local = `${new Date(at + 9 * 3_600_000).toISOString().slice(0, 19).replace('T', ' ')} GMT+9`;
  t.is(await accepted.textContent(), local);
  t.is(
    await accepted.getAttribute('title'),
    `${new Date(at).toISOString().slice(0, 19).replace('T', ' ')} UTC`,
  );
  const ago = page.locator('time:not([data-local])').first();
  t.regex((await ago.getAttribute('title'))!, /^[\d-]+ [\d:]+ GMT\+9 \([\d-]+ [\d:]+ UTC\)$/);
  await world.clock.advance('1m');
  await page.evaluate(
    `document.querySelector('.journey').dataset.old = 'yes'; htmx.trigger(document.querySelector('[data-live]'), 'live')`,
  );
  await page.locator('.journey:not([data-old])').first().waitFor();
  t.is(await accepted.textContent(), local);
  t.deepEqual(
    (await page.evaluate<string[]>('[...window.shown]')).filter((text) => text.endsWith('UTC')),
    [],
  );
  await check('an email');
});
