/** A first day, in a real browser: set up, make a key, sign out, sign in again; on a desk and on a phone. */
import test from 'ava';
import { password } from '#lab/browser/browser.ts';
import { type Size, startChromium, type Theme, waysOfRun } from '#lab/browser/chromium.ts';
import { startWorld } from '#lab/scenes/world.ts';

const { visit } = startChromium(test);

/** Both sizes and both themes, in half of the time that all four would take. */
const ways = waysOfRun<[Size, Theme]>(['phone', 'light'], ['desktop', 'dark']);

for (const [size, theme] of ways) {
  test.serial(`${size}, ${theme}: set up, make a key, revoke it, sign out, sign in`, async (t) => {
    const world = await startWorld(t);
    const { page, check } = await visit(t, world, size, theme);
    const shot = (name: string) =>
      process.env.SHOTS ? page.screenshot({ path: `${process.env.SHOTS}/${size}-${name}.png` }) : undefined;

    await page.goto(new URL(world.setUpUrl()!).pathname);
    await check('set-up');
    await page.getByLabel('Your name').fill('Olga Operator');
    await page.getByLabel('Email address').fill('olga@postern.invalid');
    await page.getByLabel('Password').fill(password);
    await shot('set-up');
    await page.getByRole('button', { name: 'Set up' }).click();

    await page.getByRole('heading', { name: 'Welcome to Postern' }).waitFor();
    await page.getByText('Welcome, Olga Operator').waitFor();
    await page.getByRole('button', { name: 'Dismiss this message' }).click();
    t.false(await page.getByText('Welcome, Olga Operator').isVisible());
    if (size === 'phone') await page.getByRole('button', { name: 'Menu' }).click();
    await page.getByRole('link', { name: 'API keys' }).click();
    await page.getByText('New key', { exact: true }).click();
    await page.getByLabel('Label').fill('shop, production');
    if (size === 'desktop') {
      await page.getByLabel('Send emails').check();
      await world.db('sessions').delete();
      await page.getByRole('button', { name: 'Create key' }).click();
      await page.getByLabel('Email address').fill('olga@postern.invalid');
      await page.getByLabel('Password').fill(password);
      await page.getByRole('button', { name: 'Sign in' }).click();
      await page.getByRole('heading', { name: 'API keys' }).waitFor();
      t.is(await page.getByLabel('Label').inputValue(), 'shop, production', 'the text is there again');
      t.true(await page.getByLabel('Send emails').isChecked());
    }
    await page.getByLabel('Send emails').uncheck();
    await page.getByRole('button', { name: 'Create key' }).click();
    await page.getByText('Select at least one permission.').waitFor();
    const focus = await page.evaluate<string>("document.querySelector('[name=scopes]:focus')?.value");
    t.is(focus, 'email:send', 'a refused form has the focus on its first wrong field');
    await page.getByLabel('Send emails').check();
    await check('a form for a key');
    await shot('form');
    await page.getByRole('button', { name: 'Create key' }).click();

    await page.getByRole('button', { name: 'Copy the key' }).click();
    await page.getByText('Waiting for the first email with this key').waitFor();
    const copied = await page.evaluate<string>('navigator.clipboard.readText()');
    t.regex(copied, /^em_[\w-]{40,}$/);
    await check('a new key');
    await shot('made');
    await page.reload();
    await page.getByRole('heading', { name: 'API keys' }).waitFor();
    t.is(
      (await world.db('api_keys').where({ label: 'shop, production' })).length,
      1,
      'reloading makes no other',
    );

    await page.getByRole('button', { name: 'Revoke shop, production' }).click();
    await page.getByRole('dialog', { name: 'Revoke shop, production?' }).waitFor();
    await check('a question');
    await shot('question');
    await page.getByRole('dialog').getByRole('button', { name: 'Revoke' }).click();
    await page.getByText('shop, production was revoked').waitFor();
    await check('keys');
    await shot('keys');

    const menu = page.getByRole('button', { name: 'Menu' });
    if (size === 'phone') {
      await menu.click();
      await check('the menu');
      await shot('menu');
    }
    await page.getByRole('link', { name: 'Olga Operator' }).click();
    await page.getByRole('heading', { name: 'Your account' }).waitFor();
    await check('account');
    await shot('account');
    await page.getByRole('link', { name: 'Turn on' }).click();
    await page.getByAltText('QR code').waitFor();
    await check('the second factor');
    await shot('factor');
    if (size === 'phone') await menu.click();
    await page.getByRole('button', { name: 'Sign out' }).click();

    await page.getByText('You are signed out.').waitFor();
    await page.getByLabel('Email address').fill('olga@postern.invalid');
    await page.getByLabel('Password').fill('not my password');
    await page.keyboard.press('Enter');
    await page.getByText('or the password is wrong').waitFor();
    await check('sign-in');
    await shot('sign-in');
    await page.getByLabel('Password').fill(password);
    await page.keyboard.press('Enter');
    await page.getByRole('heading', { name: 'Welcome to Postern' }).waitFor();
  });
}

test.serial(
  'a new server: the first mail is in the inbox after four fields and three clicks, without DNS; read in five',
  async (t) => {
    const world = await startWorld(t);
    await world.db('organizations').delete();
    const { page, check } = await visit(t, world, 'desktop');
    await page.addInitScript(`addEventListener('click', ({ isTrusted }) => {
    if (isTrusted) sessionStorage.clicks = Number(sessionStorage.clicks ?? 0) + 1;
  }, true)`);
    const clicks = () => page.evaluate<string>('sessionStorage.clicks').then(Number);
    await page.goto(new URL(world.setUpUrl()!).pathname);
    await page.getByLabel('Your name').fill('Olga Operator');
    await page.getByLabel('Email address').fill('olga@postern.invalid');
    await page.getByLabel('Password').fill(password);
    await page.getByLabel('Organization').fill('Acme');
    await page.getByRole('button', { name: 'Set up' }).click();
    await page.getByRole('link', { name: 'Send a test email' }).click();
    await page.getByRole('button', { name: 'Send' }).click();
    await page.getByRole('heading', { name: 'A test from Acme' }).first().waitFor();
    await check('the first mail');
    t.is(await clicks(), 3);
    await page.getByRole('link', { name: 'Test inbox' }).last().click();
    await page.locator('#emails').getByRole('link', { name: 'olga@postern.invalid' }).click();
    await page.getByRole('heading', { name: 'A test from Acme' }).first().waitFor();
    t.is(await clicks(), 5);
  },
);
