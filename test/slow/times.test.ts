/** Times in the reader's zone: from the first paint on, also in parts that update themselves; in UTC without scripts. */
import test from 'ava';
import { createBrowser, password, setUp } from '#lab/browser/browser.ts';
import { startChromium } from '#lab/browser/chromium.ts';
import { startWorld } from '#lab/scenes/world.ts';

const { visit } = startChromium(test);

test('an email’s times are local in their text, with UTC in the tooltip, never otherwise before the eyes, and go on', async (t) => {
  const world = await startWorld(t);
  const browser = createBrowser(world);
  await setUp(browser, world);
  const { body } = await world.send({ to: 'tempfail@there.invalid' });
  const path = `/dashboard/o/${world.orgId}/emails/${body.emailId}`;
  const utc = `${new Date(world.clock.now()).toISOString().slice(0, 10)} `;
  const { html } = await browser.get(path);
  t.regex(
    html,
    new RegExp(`<time datetime="[^"]+" title="${utc}[\\d:]+ UTC"><relative-time [^>]+>${utc}[\\d:]+ UTC</`),
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
      for (const time of document.querySelectorAll('relative-time')) window.shown.add(time.shadowRoot?.textContent ?? 'as sent');
      requestAnimationFrame(look);
    };
    requestAnimationFrame(look);`);
  await page.goto(path);
  const accepted = page.locator('.journey relative-time').first();
  const shadow = () =>
    accepted.evaluate((element: { shadowRoot: { textContent: string } }) => element.shadowRoot.textContent);
  const at = Date.parse((await accepted.getAttribute('datetime'))!);
  const local = new Date(at + 9 * 3_600_000);
  const [, day, month] = local.toUTCString().split(' ');
  const text = `${Number(day)} ${month} ${local.getUTCFullYear()}, ${local.toISOString().slice(11, 19)} GMT+9`;
  t.is(await shadow(), text);
  t.is(
    await page.locator('.journey time').first().getAttribute('title'),
    `${new Date(at).toISOString().slice(0, 19).replace('T', ' ')} UTC`,
  );
  const ago = page.locator('.lead relative-time').first();
  t.regex((await ago.getAttribute('title'))!, /GMT\+9/);
  await world.clock.advance('1m');
  await page.evaluate(
    `document.querySelector('.journey').dataset.old = 'yes'; htmx.trigger(document.querySelector('[data-live]'), 'live')`,
  );
  await page.locator('.journey:not([data-old])').first().waitFor();
  t.is(await shadow(), text);
  const shown = await page.evaluate<string[]>('[...window.shown]');
  t.deepEqual(
    shown.filter((one) => /UTC$|^as sent$/.test(one)),
    [],
  );
  // The element reads the browser's clock, which is the world's only at first.
  await page.evaluate(`
    window.later = document.createElement('relative-time');
    later.setAttribute('format-style', 'long');
    later.setAttribute('datetime', new Date(Date.now() - 1900).toISOString());
    document.body.append(later)`);
  t.is(await page.evaluate<string>('later.shadowRoot.textContent'), 'now');
  await page.evaluate("later.setAttribute('datetime', new Date(Date.now() - 59_000).toISOString())");
  await page.waitForFunction("later.shadowRoot.textContent === '1 minute ago'");
  await check('an email');
});
