/** An organization's pages in a real browser: a domain verified, an address suppressed, a webhook tested and replayed. */
import test, { type ExecutionContext } from 'ava';
import type { Page } from 'playwright-core';
import { createBrowser, password, setUp } from '#lab/browser/browser.ts';
import { type Size, startChromium, waysOfRun } from '#lab/browser/chromium.ts';
import { startWebhookWorld } from '#lab/scenes/webhook-world.ts';
import { until } from '#lab/until.ts';

const { visit } = startChromium(test);

/** After a refused form the focus is on its first wrong field, in a dialog too. */
const isOnWrongField =
  "document.querySelector('.field.wrong :is(input, select, textarea)') === document.activeElement";

/** The open dialog is in the middle of the window and keeps the focus, which its button has again when it is closed. */
async function checkDialog(t: ExecutionContext, page: Page, button: string) {
  const offCentre = await page.evaluate<number[]>(`(() => {
    const { left, right, top, bottom } = document.querySelector('dialog[open]').getBoundingClientRect();
    return [left + right - document.documentElement.clientWidth, top + bottom - innerHeight];
  })()`);
  t.true(
    offCentre.every((pixels) => Math.abs(pixels) <= 2),
    `${offCentre}`,
  );
  for (let at = 0; at < 6; at++) {
    await page.keyboard.press('Tab');
    const isIn =
      "document.activeElement === document.body || document.activeElement.closest('dialog[open]') !== null";
    t.true(await page.evaluate<boolean>(isIn), 'Tab leads out of the dialog');
  }
  await page.keyboard.press('Escape');
  t.true(await page.evaluate<boolean>("document.activeElement.hasAttribute('commandfor')"));
  await page.getByRole('button', { name: button }).click();
}

for (const size of waysOfRun<Size>('phone', 'desktop')) {
  test.serial(
    `${size}: add and verify a domain, suppress an address, test and replay a webhook, invite`,
    async (t) => {
      const { world, orgId, endpoint } = await startWebhookWorld(t);
      await setUp(createBrowser(world), world);
      const { receiver } = await endpoint();
      const theme = process.env.SHOTS_DARK ? 'dark' : 'light';
      const { page, check } = await visit(t, world, size, theme);
      const base = `/dashboard/o/${orgId}`;
      const shoot = (name: string) =>
        process.env.SHOTS
          ? page.screenshot({ path: `${process.env.SHOTS}/${size}-${theme}-${name}.png`, fullPage: true })
          : undefined;
      const seen = async (name: string) => {
        await check(name);
        await shoot(name);
      };

      await page.goto('/dashboard/sign-in');
      await page.getByLabel('Email address').fill('olga@postern.invalid');
      await page.getByLabel('Password').fill(password);
      await page.keyboard.press('Enter');
      await page.waitForURL(`**/o/${orgId}`);

      await page.goto(`${base}/domains`);
      await page.getByText('Add a domain').click();
      await page.getByLabel('Domain', { exact: true }).fill('shop.invalid');
      await seen('domains');
      await page.getByRole('button', { name: 'Add domain' }).click();
      await page.getByRole('heading', { name: 'shop.invalid' }).waitFor();
      await page.locator('.records summary').first().click();
      await page.getByText('There is no TXT record').first().waitFor();
      await page.getByRole('button', { name: 'Copy the value of the DKIM record' }).click();
      const value = await page.evaluate<string>('navigator.clipboard.readText()');
      await page.getByRole('button', { name: 'Copy the name of the DKIM record' }).click();
      const name = await page.evaluate<string>('navigator.clipboard.readText()');
      world.dns.set({
        [name]: { TXT: [value.slice(0, 255)] },
        'bounces.shop.invalid': { MX: ['10 x.invalid'] },
      });
      await page.getByRole('button', { name: 'Check again' }).click();
      await page.getByText('it was cut off').waitFor();
      await seen('domain-wrong');
      world.dns.set({ [name]: { TXT: [value] } });
      await page.getByRole('button', { name: 'Check again' }).click();
      await page.getByText('You can send mail from this domain').waitFor();
      await shoot('domain');
      await page.getByLabel('Opens').check();
      await page.getByRole('button', { name: 'Save' }).first().click();
      await page.getByText('The tracking settings of shop.invalid were saved').waitFor();
      await page.getByRole('button', { name: 'Remove shop.invalid' }).click();
      await checkDialog(t, page, 'Remove shop.invalid');
      await page.getByLabel('Type shop.invalid to confirm').fill('shop');
      await seen('domain-remove');
      await page.getByRole('button', { name: 'Remove the domain' }).click();
      await page.getByRole('alert').getByText('was not removed').waitFor();
      t.true(await page.evaluate<boolean>(isOnWrongField), 'a name that was mistyped');

      for (const [path, open, button] of [
        ['domains', 'Add a domain', 'Add domain'],
        ['suppressions', 'Add an address', 'Add to the list'],
        ['streams', null, 'Create stream'],
        ['routes', null, 'Add route'],
        ['team', 'Invite a person', 'Create invitation'],
      ]) {
        await page.goto(`${base}/${path}`);
        if (open) await page.getByText(open).click();
        await page.evaluate('for (const form of document.forms) form.noValidate = true');
        await page.getByRole('button', { name: button!, exact: true }).click();
        await page.waitForFunction(isOnWrongField);
        t.pass(`${path}: a form without its fields`);
      }
      await page.goto(`${base}/suppressions`);
      await shoot('suppressions-none');
      await page.getByText('Add an address').click();
      await page.getByRole('textbox', { name: 'Address' }).fill('ann@there.invalid');
      await page.getByRole('button', { name: 'Add to the list' }).click();
      await page.getByText('ann@there.invalid was added').waitFor();
      await page.getByRole('link', { name: 'Import' }).click();
      const buffer = Buffer.from('address,reason\nbob@there.invalid,spam\n');
      await page.getByLabel('File').setInputFiles({ name: 'list.csv', mimeType: 'text/csv', buffer });
      await page.waitForFunction("document.querySelector('textarea').value.includes('bob@')");
      await seen('suppressions-import');
      await page.getByRole('button', { name: 'Import' }).click();
      await page.getByText('1 address was added to the list').waitFor();
      await world.send({ to: 'unknown@there.invalid' });
      await page.getByRole('searchbox').fill('unknown@');
      await until(async () => {
        await page.getByRole('searchbox').press('Enter');
        return page.getByText('hard bounce').isVisible();
      });
      await page.goto(`${base}/suppressions`);
      await seen('suppressions');
      await page.getByRole('link', { name: 'unknown@there.invalid' }).click();
      await page.getByRole('link', { name: 'Show the email that caused it' }).waitFor();
      await seen('suppression');

      await page.goto(`${base}/webhooks`);
      await page.getByText('Add an endpoint').click();
      await page.getByLabel('URL').fill('ftp://app.invalid');
      await page.getByLabel('Only these').check();
      await page.getByRole('button', { name: 'Add endpoint' }).click();
      await page.getByText('is not a URL such as').waitFor();
      t.true(await page.evaluate<boolean>(isOnWrongField), 'a URL that is none');
      await seen('webhooks');
      await page.getByRole('link', { name: receiver.url }).click();
      await page.getByRole('button', { name: 'Send a test' }).click();
      await page.getByText('The endpoint accepted the test').waitFor();
      receiver.answer = (_, response) => response.writeHead(500).end('out of coffee');
      await page.getByRole('button', { name: 'Send a test' }).click();
      await seen('webhook');
      await page.getByRole('link', { name: 'webhook.test' }).first().click();
      await page.getByText('out of coffee').first().waitFor();
      await seen('webhook-event');
      await page.goBack();
      await page.getByRole('link', { name: 'email.bounced' }).first().click();
      receiver.answer = (_, response) => response.writeHead(204).end();
      const before = receiver.accepted().length;
      await page.getByRole('button', { name: 'Replay' }).click();
      await page.getByText('One event is being replayed').waitFor();
      await world.clock.passUntil(() => receiver.accepted().length > before);
      await page.getByText('No events are waiting').waitFor();
      await page.getByRole('link', { name: 'Settings' }).click();
      await seen('webhook-settings');
      await page.getByRole('button', { name: 'Rotate the secret' }).click();
      await page.getByRole('dialog').getByRole('button', { name: 'Rotate' }).click();
      await page.getByText('It is not shown again').waitFor();
      await shoot('webhook-secret');

      await page.goto(`${base}/team`);
      await page.getByText('Invite a person').click();
      await page.getByLabel('Email address').fill('dora@shop.invalid');
      await page.getByLabel('Name').fill('Dora Developer');
      await seen('team-invite');
      await page.getByRole('button', { name: 'Create invitation' }).click();
      await page.getByRole('button', { name: 'Copy the link' }).click();
      t.regex(
        await page.evaluate<string>('navigator.clipboard.readText()'),
        /\/dashboard\/welcome\/[\w-]{40,}$/,
      );
      await seen('team-invited');
      await page.getByRole('link', { name: 'Done' }).click();
      await page.getByText('dora@shop.invalid').waitFor();
      await seen('team');
    },
  );
}
