/** "Needs attention": each entry leads to its own mails, and one line says that all is well. */
import test from 'ava';
import { createBrowser, setUp } from '#lab/browser/browser.ts';
import { startWorld } from '#lab/scenes/world.ts';
import { suspend } from '#mail/queue/rows/suspensions.ts';

test('each entry leads to a list with its mails, and with no other', async (t) => {
  const world = await startWorld(t, {
    zone: {
      'first.invalid': { MX: ['10 mx1.invalid'] },
      'second.invalid': { MX: ['10 mx1.invalid'] },
      'slow.invalid': { MX: ['10 mx2.invalid'] },
    },
    exchangers: [{}, { script: { rcpt: () => '450 4.2.0 later' } }],
  });
  const browser = createBrowser(world);
  await setUp(browser, world);
  const { id } = await world.db('organizations').first('id');
  const until = world.clock.now() + 3_600_000;
  for (const destination of ['first.invalid', 'second.invalid'])
    await suspend(world.db, { destination, reason: 'they asked', createdAt: 0, until });
  await world.clock.advance('5s');
  const send = async (to: string) => (await world.send({ to })).body.emailId as string;
  const [first, second, slow] = [
    await send('ann@first.invalid'),
    await send('bob@second.invalid'),
    await send('eve@slow.invalid'),
  ];
  await world.when(slow, ({ status }) => status === 'deferred');
  const other = await send('ann@there.invalid');
  await world.when(other, ({ status }) => status === 'delivered');
  await world.db('deliveries').where({ email_id: slow }).update({ created_at: 0 });

  const { html } = await browser.get(`/dashboard/o/${id}`);
  const entries = [...html.matchAll(/href="([^"]+)" class="list-link/g)].map(([, href]) =>
    href!.replaceAll('&amp;', '&'),
  );
  const listed = await Promise.all(
    entries.map(async (href) => (await browser.get(href)).html.match(/(?<=data-email=")[^"]+/g)),
  );
  t.true(entries.length >= 3, entries.join());
  for (const emailId of [first, second, slow])
    t.true(
      listed.some((ids) => ids?.join() === emailId),
      `${emailId} of ${JSON.stringify(listed)}`,
    );
  t.false(listed.flat().includes(other));
  t.notRegex(html, /Nothing needs attention/);

  const tile = /href="([^"]+)">Delivered<\/a>/.exec(html)![1]!.replaceAll('&amp;', '&');
  t.true((await browser.get(tile)).html.includes(`data-email="${other}"`), 'a figure leads to its mails');
  t.false(browser.page().html.includes(first));

  const titles = async (window: string) => {
    const page = await browser.get(`/dashboard/o/${id}?window=${window}`);
    return [...page.html.matchAll(/<title>([^<]* UTC: [^<]*)<\/title>/g)].map(([, title]) => title!);
  };
  await world.clock.passUntil(async () => / waiting 3,/.test((await titles('7d')).at(-1)!), { step: '10s' });
  const hour = world.clock.now() - (world.clock.now() % 3_600_000);
  const past = { sent: 9, delivered: 2, hour: hour - 3 * 86_400_000 };
  await world.db('statistics').insert({ ...(await world.db('statistics').first()), ...past });
  for (const window of ['7d', '30d']) {
    const bars = await titles(window);
    t.regex(bars.at(-1)!, /: delivered 1, waiting 3, bounced 0$/);
    t.true(
      bars.slice(0, -1).every((title) => title.includes(' waiting 0,')),
      'none of days ago waits',
    );
    t.true(bars.some((title) => title.includes('delivered 2,')));
  }
});
