/** Sending a test and watching it arrive, in a real browser; and hostile content, which stays where it is shown. */
import test from 'ava';
import type { Page } from 'playwright-core';
import { password } from '#lab/browser/browser.ts';
import { type Size, startChromium, type Theme, waysOfRun } from '#lab/browser/chromium.ts';
import { startWorld, type World } from '#lab/scenes/world.ts';

const { visit } = startChromium(test);

const ways = waysOfRun<[Size, Theme]>(['desktop', 'light'], ['phone', 'dark']);

async function setUp(page: Page, world: World): Promise<void> {
  await page.goto(new URL(world.setUpUrl()!).pathname);
  await page.getByLabel('Your name').fill('Olga Operator');
  await page.getByLabel('Email address').fill('olga@postern.invalid');
  await page.getByLabel('Password').fill(password);
  await page.getByRole('button', { name: 'Set up' }).click();
  await page.getByText('Welcome, Olga Operator').waitFor();
}

const baseOf = async (world: World) => `/dashboard/o/${(await world.db('organizations').first('id')).id}`;

for (const [size, theme] of ways) {
  test(`${size}, ${theme}: a test is sent, watched, read, found, and sent again`, async (t) => {
    const world = await startWorld(t);
    const { page, check } = await visit(t, world, size, theme);
    const shot = (name: string) =>
      process.env.SHOTS
        ? page.screenshot({ path: `${process.env.SHOTS}/${size}-${theme}-${name}.png`, fullPage: true })
        : undefined;
    let deliver = () => {};
    const mayDeliver = new Promise<void>((resolve) => {
      deliver = resolve;
    });
    world.mx[0]!.script = {
      async dot() {
        await mayDeliver;
        return undefined;
      },
    };
    await setUp(page, world);
    const base = await baseOf(world);

    await page.goto(`${base}/emails`);
    await page.getByText('No emails yet').waitFor();
    await check('no email yet');
    await page.getByRole('link', { name: 'Send a test' }).first().click();
    await page.getByLabel('To', { exact: true }).fill('ann@there.invalid');
    await check('the form');
    await shot('send-test');
    await page.getByRole('button', { name: 'Send' }).click();

    await page.getByText('The test email was accepted. Its status updates below.').waitFor();
    await page.getByText('It is being sent now, attempt 1.').waitFor();
    await check('being sent');
    await shot('sending');
    const emailUrl = new URL(page.url()).pathname;
    deliver();
    await page.getByText('That host is now responsible for the message.').waitFor();
    await page.locator('#email-status').getByText('Delivered').waitFor();
    await page.locator('.timeline').getByText('Delivered').waitFor();
    t.is(await page.locator('[data-live]').count(), 0, 'what is final is asked for no more');
    await page.getByText('Attempt 1', { exact: true }).click();
    await page.getByText('MAIL FROM').waitFor();
    await page.frameLocator('iframe').getByText('If you can read it, it was delivered.').waitFor();
    await check('delivered');
    await shot('email');
    await page.getByRole('link', { name: 'Source', exact: true }).click();
    await page.getByText('DKIM-Signature').waitFor();
    await check('the source');
    await page.getByRole('link', { name: 'Header', exact: true }).click();
    await page.getByText('Content-Type', { exact: true }).waitFor();
    await check('the header');
    await shot('header');
    await page.getByRole('link', { name: 'Links', exact: true }).click();
    await page.getByText('The HTML has no links.').waitFor();
    await check('the links');
    await page.getByRole('link', { name: 'Preview', exact: true }).click();
    await page.getByRole('link', { name: 'Phone width' }).click();
    await page.getByRole('link', { name: 'Desktop width' }).waitFor();
    t.true((await page.locator('iframe').boundingBox())!.width <= 390);
    await check('the preview as on a phone');
    await shot('narrow');

    await page.goto(`${base}/inbox`);
    await page.getByText('No test mail yet').waitFor();
    await check('no test mail yet');
    const body = { label: 'CI', scopes: ['email:send'], test: true };
    const made = await world.call('POST', '/api/public/keys', { body: JSON.stringify(body) });
    const authorization = `Bearer ${made.body.key}`;
    const mail = { from: 'app@sender.invalid', to: 'greylist@postern.test', subject: 'A trial', text: 'x' };
    const sent = JSON.stringify(mail);
    await world.call('POST', '/api/public/email/send', { headers: { authorization }, body: sent });
    await page.getByRole('link', { name: 'greylist@postern.test' }).waitFor();
    await check('the inbox');
    await shot('inbox');
    await page.getByRole('link', { name: 'greylist@postern.test' }).click();
    await page.getByText('Greylisted').first().waitFor();
    await check('a test mail');
    await shot('test-mail');

    await page.goto(`${base}/emails?to=ANN@there`);
    await page.getByRole('link', { name: 'ann@there.invalid', exact: true }).waitFor();
    // What comes while one looks is there by itself, and the focus stays where it was.
    await page.getByRole('link', { name: 'ann@there.invalid', exact: true }).focus();
    await world.send({ to: 'joann@there.invalid', subject: 'A <b>receipt</b>', tags: { order: '4711' } });
    await page.getByRole('link', { name: 'joann@there.invalid' }).waitFor();
    t.is(await page.evaluate('document.activeElement.pathname'), emailUrl);
    await check('the list');
    await shot('list');

    if (size === 'desktop') {
      const listUrl = page.url();
      await world.db('sessions').delete();
      await page.getByText('Your session has ended. Sign in to continue.').waitFor();
      await check('a session has ended');
      await page.getByLabel('Email address').fill('olga@postern.invalid');
      await page.getByLabel('Password').fill(password);
      await page.getByRole('button', { name: 'Sign in' }).click();
      await page.getByRole('link', { name: 'joann@there.invalid' }).waitFor();
      t.is(page.url(), listUrl, 'back where they were');
    }

    await page.goto(emailUrl);
    await page.getByRole('button', { name: 'Send again' }).click();
    await check('a question');
    await page.getByRole('dialog').getByRole('button', { name: 'Send the email again' }).click();
    await page.getByText('The email was sent again. This is the new email.').waitFor();
    t.not(new URL(page.url()).pathname, emailUrl);
    await page.locator('#email-status').getByText('Delivered').waitFor();
    t.is((await world.mx[0]!.received(3)).length, 3);
  });
}

const beacon = 'http://127.0.0.1:9/';

/** What a mail may try that would get out of its frame, or run in it. */
const hostile = `<script>document.title = 'owned'; parent.document.title = 'owned'</script>
<meta http-equiv="refresh" content="0;url=${beacon}refresh">
<base href="${beacon}base/">
<link rel="stylesheet" href="${beacon}sheet.css">
<style>@import url(${beacon}import.css); p { background: url(${beacon}css.png); font-family: x } @font-face { font-family: x; src: url(${beacon}font) }</style>
<img src="x" onerror="parent.document.title = 'owned'"><img src="${beacon}pixel.png">
<svg onload="top.location = '${beacon}'"></svg><iframe src="${beacon}frame"></iframe><object data="${beacon}object"></object>
<form action="${beacon}form"><input name="password"><button>Sign in</button></form>
<p>Hello from the inside</p>
<a href="${beacon}top" target="_top">To the top</a> <a href="${beacon}self" target="_self">In here</a>
<a href="javascript:parent.document.title='owned'">Script</a>`;

test('hostile: what a mail holds and what hosts answer cannot run, load, or leave its frame', async (t) => {
  const world = await startWorld(t);
  const { page } = await visit(t, world, 'desktop');
  const asked: string[] = [];
  // What the policy blocks is never asked for: this sees requests that pass it.
  await page.context().route(`${beacon}**`, (route) => {
    asked.push(route.request().url());
    return route.abort();
  });
  world.mx[0]!.script = {
    rcpt: () => '550 5.1.1 <script>document.title = 1</script><img src=x onerror=alert(1)>',
  };
  const dialogs: string[] = [];
  page.on('dialog', (dialog) => {
    dialogs.push(dialog.message());
    void dialog.dismiss();
  });
  const bad = '"><script>document.title = 1</script><img src=x onerror=alert(2)>';
  const { body } = await world.send({
    to: 'ann@there.invalid',
    from: "O'Hara <b>& Co</b> <app@sender.invalid>".replace(/<\/?b>/g, ''),
    html: hostile,
    subject: bad,
    tags: { '<img src=x onerror=alert(3)>': '<script>alert(4)</script>' },
  });
  await world.when(body.emailId, ({ status }) => status === 'bounced');
  await setUp(page, world);
  const base = await baseOf(world);
  const url = `${base}/emails/${body.emailId}`;
  await page.goto(`${base}/emails`);
  await page.getByText(bad).waitFor();
  t.is(await page.title(), 'Emails · Tenant · Postern');
  t.is(await page.locator('main script, main img').count(), 0);
  for (const view of ['html', 'text', 'source', 'header']) {
    await page.goto(`${url}?show=${view}`);
    await page.getByRole('heading', { name: bad }).waitFor();
    t.is(await page.title(), `${bad} · Tenant · Postern`);
    t.is(await page.locator(`main script, main img, main form[action^="${beacon}"]`).count(), 0, view);
  }
  await page.goto(url);
  const frame = page.frameLocator('iframe.preview');
  await frame.getByText('Hello from the inside').waitFor();
  for (const link of ['To the top', 'In here', 'Script']) {
    const element = frame.getByRole('link', { name: link });
    if (await element.isVisible()) await element.click();
  }
  const button = frame.getByRole('button', { name: 'Sign in' });
  if (await button.isVisible()) await button.click();
  t.is(new URL(page.url()).pathname, url);
  t.is(await page.title(), `${bad} · Tenant · Postern`);
  t.is(page.context().pages().length, 1, 'no other window');
  t.deepEqual(asked, []);
  t.deepEqual(dialogs, []);

  // Pictures come where somebody asks for them, and nothing else does.
  await page.goto(`${url}?show=html&images=1`);
  await frame.getByText('Hello from the inside').waitFor();
  await page.waitForLoadState('load');
  t.deepEqual([...new Set(asked.splice(0))].sort(), [`${beacon}css.png`, `${beacon}pixel.png`]);

  // Alone in a window it can do no more.
  await page.goto(`${url}/preview`);
  await page.getByText('Hello from the inside').waitFor();
  t.not(await page.title(), 'owned');
  t.deepEqual(asked, []);
});
