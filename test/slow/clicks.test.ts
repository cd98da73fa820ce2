/** What the journeys of a person cost in clicks and fields: fewer is better, and none may become more by accident. */
import test from 'ava';
import type { Page } from 'playwright-core';
import { password } from '#lab/browser/browser.ts';
import { startChromium } from '#lab/browser/chromium.ts';
import { freePort } from '#lab/load/ports.ts';
import { receivedMail } from '#lab/received.ts';
import { samplePause } from '#lab/scenes/sample-pause.ts';
import { startWebhookWorld } from '#lab/scenes/webhook-world.ts';
import { insertReceived } from '#mail/received/rows/received-mails.ts';

const { visit } = startChromium(test);

/** A person who looks for what the page calls it. */
function personAt(page: Page) {
  let [clicks, fields] = [0, 0];
  return {
    page,
    async click(role: 'link' | 'button' | 'text', name: string, within = 'body') {
      clicks += 1;
      const all = page.locator(within);
      const found = role === 'text' ? all.getByText(name, { exact: true }) : all.getByRole(role, { name });
      await found.filter({ visible: true }).first().click();
    },
    async fill(label: string, text: string) {
      fields += 1;
      await page.getByLabel(label, { exact: true }).filter({ visible: true }).first().fill(text);
    },
    sees: (text: string | RegExp) => page.getByText(text).filter({ visible: true }).first().waitFor(),
    cost: () => `${clicks} clicks, ${fields} fields`,
  };
}

type Person = ReturnType<typeof personAt>;

test.serial('clicks and fields of the journeys', async (t) => {
  const inboundPort = String(await freePort('127.0.0.1'));
  const { world, orgId, endpoint } = await startWebhookWorld(t, {
    settings: { POSTERN_INBOUND_PORT: inboundPort },
  });
  const { receiver } = await endpoint();
  const { page } = await visit(t, world, 'desktop');
  page.setDefaultTimeout(25_000);
  const base = `/dashboard/o/${orgId}`;
  const costs: Record<string, string> = {};
  const journey = async (name: string, begin: string | null, go: (person: Person) => Promise<void>) => {
    if (begin !== null) await page.goto(begin);
    const person = personAt(page);
    await go(person);
    costs[name] = person.cost();
  };
  await page.goto(new URL(world.setUpUrl()!).pathname);

  await journey('first mail, from the set-up link', null, async ({ fill, click, sees }) => {
    await fill('Your name', 'Olga Operator');
    await fill('Email address', 'olga@postern.invalid');
    await fill('Password', password);
    await click('button', 'Set up');
    await click('link', 'Send a test email');
    await fill('To', 'olga@there.invalid');
    await click('button', 'Send');
    await sees('The test email was accepted');
  });
  await world.send({ to: 'unknown@there.invalid' });
  await world.clock.passUntil(() => receiver.accepted().length >= 3);

  await journey('domain: added, its record copied', base, async ({ fill, click, sees }) => {
    await click('link', 'Domains');
    await click('text', 'Add a domain');
    await fill('Domain', 'shop.invalid');
    await click('button', 'Add domain');
    await click('button', 'Copy the name in the zone of the DKIM record');
    await click('button', 'Copy the value of the DKIM record');
    await sees('Copied');
  });

  await journey('bounce: why it came back', base, async ({ click, sees }) => {
    await click('link', 'Bounced');
    await click('link', 'unknown@there.invalid');
    await sees(/550 5\.1\.1/);
  });

  await journey('payload of an event', base, async ({ click, sees }) => {
    await click('link', 'Webhooks');
    await click('link', receiver.url);
    await click('link', 'email.bounced');
    await sees('webhook-signature');
  });

  await journey('key: made and copied', base, async ({ fill, click, sees }) => {
    await click('link', 'API keys');
    await click('text', 'New key');
    await fill('Label', 'shop, production');
    await click('button', 'Create key');
    await click('button', 'Copy the key');
    await sees('Copied');
  });

  await journey('notice: whether and to whom', base, async ({ click, sees }) => {
    await click('link', 'Team');
    await sees('Notices by mail');
  });

  await journey('received: a first mail', base, async ({ fill, click, sees }) => {
    await click('link', 'Routes');
    await fill('Addresses', 'orders@sender.invalid');
    await click('button', 'Add route');
    await click('button', 'Copy the value of the Received mail record');
    const mail = receivedMail({ orgId, at: world.clock.now(), subject: 'A first order' });
    await world.db.transaction((trx) => insertReceived(trx, [mail]));
    await click('link', 'Received mail');
    await click('link', 'ann@there.invalid');
    await sees('A first order');
  });

  await samplePause(world.db, orgId, 'news', world.clock.now());
  await journey('held mail: released', base, async ({ click, sees }) => {
    await click('link', 'Auto-pause: stream news');
    await click('button', 'Release');
    await click('button', 'Release', 'dialog[open]');
    await sees('The mail is sent again');
  });

  await journey('emails of one status', `${base}/emails`, async ({ click, sees }) => {
    await click('button', 'Status');
    await click('link', 'Bounced');
    await sees('unknown@there.invalid');
  });
  t.log(costs);
  t.deepEqual(costs, {
    'first mail, from the set-up link': '3 clicks, 4 fields',
    'domain: added, its record copied': '5 clicks, 1 fields',
    'bounce: why it came back': '2 clicks, 0 fields',
    'payload of an event': '3 clicks, 0 fields',
    'key: made and copied': '4 clicks, 1 fields',
    'notice: whether and to whom': '1 clicks, 0 fields',
    'received: a first mail': '5 clicks, 1 fields',
    'held mail: released': '3 clicks, 0 fields',
    'emails of one status': '2 clicks, 0 fields',
  });
});
