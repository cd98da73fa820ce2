/** The page of a link that unsubscribes, in a real browser: without scripts, with one button in the stream's color. */
import test from 'ava';
import { makeStream } from '#accounts/manage-streams.ts';
import { startChromium, waysOfRun } from '#lab/browser/chromium.ts';
import { startWorld, type World } from '#lab/scenes/world.ts';
import { until } from '#lab/until.ts';

const { visit } = startChromium(test);

/** Of a mail of the stream to a new address. */
async function linkIn(world: World, stream: string): Promise<{ path: string; to: string }> {
  const to = `reader-${stream}@there.invalid`;
  await world.send({ to, stream, subject: stream });
  const { raw } = await until(() => world.mx[0]!.messages.find((one) => one.to.includes(to)));
  const head = raw.toString('latin1').replace(/\r\n[ \t]+/g, ' ');
  return { path: new URL(/<(https?:[^>]+)>/.exec(head)![1]!).pathname, to };
}

async function worldWith(t: Parameters<typeof startWorld>[0], ...colors: string[]) {
  const world = await startWorld(t);
  for (const [index, color] of colors.entries())
    await makeStream(
      world.db,
      { orgId: world.orgId, name: `news${index}`, title: 'Acme & <b>News', kind: 'subscribed', color },
      0,
    );
  return world;
}

const suppressed = async ({ db, orgId }: World) =>
  (await db('suppressions').where({ org_id: orgId })).map(({ address }) => address);

test('the button is in the stream’s color, and can be read on it, by day and by night', async (t) => {
  const colors = ['#1a73e8', '#ffff00', '#000000', '#ffffff', '#777777'];
  const world = await worldWith(t, ...colors);
  for (const [size, theme] of waysOfRun([['phone', 'light']] as const, [['desktop', 'dark']] as const).flat())
    for (const [index, color] of colors.entries()) {
      const { path } = await linkIn(world, `news${index}`);
      const { page, check } = await visit(t, world, size, theme);
      const asked: string[] = [];
      page.on('request', (request) => asked.push(new URL(request.url()).pathname));
      await page.goto(path);
      t.is(await page.getByRole('heading').textContent(), 'Unsubscribe from Acme & <b>News?');
      const shown = await page.evaluate('getComputedStyle(document.querySelector("button")).backgroundColor');
      const channels = [1, 3, 5].map((at) => Number.parseInt(color.slice(at, at + 2), 16));
      t.is(shown, `rgb(${channels.join(', ')})`);
      await check(`${color}, ${theme}`);
      t.deepEqual(
        asked.filter((one) => one !== '/favicon.ico'),
        [path],
        'it loads nothing',
      );
    }
});

test('without scripts, one press of the only button unsubscribes; looking at the page does not', async (t) => {
  const world = await worldWith(t, '#1a73e8');
  const { path, to } = await linkIn(world, 'news0');
  const { context, page: first } = await visit(t, world, 'phone');
  await first.goto(path);
  await first.reload();
  const plain = await context.browser()!.newContext({ baseURL: world.url(), javaScriptEnabled: false });
  t.teardown(() => plain.close());
  const page = await plain.newPage();
  await page.goto(path);
  for (const method of ['HEAD', 'GET']) t.is((await fetch(world.url() + path, { method })).status, 200);
  t.deepEqual(await suppressed(world), []);
  const button = page.getByRole('button');
  t.is(await button.count(), 1);
  await page.keyboard.press('Tab');
  await page.keyboard.press('Enter');
  await page.getByText('You are unsubscribed from Acme & <b>News').waitFor();
  t.is(await button.count(), 0);
  t.deepEqual(await suppressed(world), [to]);
  await first.reload();
  t.is(await first.getByRole('button').count(), 0);
});
