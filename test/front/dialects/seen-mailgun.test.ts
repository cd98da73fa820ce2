/** What Mailgun's clients ask of events and suppressions (mailgun.js, Ghost, Ruby's client: mailgun-ruby, TryGhost/Ghost). */
import test from 'ava';
import Mailgun from 'mailgun.js';
import { suppressAddress } from '#accounts/suppression-list.ts';
import { startWorld, type World } from '#lab/scenes/world.ts';
import { until } from '#lab/until.ts';

const domain = 'sender.invalid';

function sdk(world: World, path = '') {
  // biome-ignore lint/suspicious/noExplicitAny: the package's type of its default export is that of its CommonJS form
  return new (Mailgun as any)(FormData).client({
    username: 'api',
    key: world.key,
    url: `${world.url()}${path}`,
  }) as ReturnType<InstanceType<typeof Mailgun.default>['client']>;
}

interface Page {
  items: { event: string; recipient: string; message: { headers: { 'message-id': string } } }[];
  paging: { first: string; next: string; previous: string; last: string };
}

async function read(world: World, url: string): Promise<Page> {
  const authorization = `Basic ${Buffer.from(`api:${world.key}`).toString('base64')}`;
  const response = await fetch(url, { headers: { authorization } });
  if (response.status !== 200) throw new Error(`${response.status} ${await response.text()}`);
  return (await response.json()) as Page;
}

const eventsUrl = (world: World, query: Record<string, string>) =>
  `${world.url()}/v3/${domain}/events?${new URLSearchParams(query)}`;

/** Pages until one is empty, as Ruby's client and Ghost read them. */
async function readAll(world: World, query: Record<string, string>) {
  const found = [];
  let page = await read(world, eventsUrl(world, query));
  for (; page.items.length > 0; page = await read(world, page.paging.next)) found.push(...page.items);
  return found;
}

/** Sixty mails, of which those in the middle are told apart. */
async function sentSixty(world: World) {
  const { messages } = sdk(world);
  const ids: string[] = [];
  for (let n = 0; n < 60; n += 1) {
    const to = n === 30 ? 'bob@gone.invalid' : `a${n}@there.invalid`;
    const mail = { from: 'app@sender.invalid', to, subject: `Mail ${n}`, text: 'Hi' };
    ids.push((await messages.create(domain, { ...mail, 'o:tag': n === 31 ? ['rare'] : ['often'] })).id!);
  }
  const count = () => world.db('events').whereIn('type', ['email.delivered', 'email.bounced']).pluck('id');
  await until(async () => (await count()).length === 60);
  return ids.map((id) => id.slice(1, -1));
}

test('Mailgun: a filter finds its event beneath sixty other mails, with any limit and in both directions; pages lead on and back', async (t) => {
  const world = await startWorld(t, { zone: { 'gone.invalid': { MX: ['0 .'] } } });
  const ids = await sentSixty(world);
  const filters: [filter: Record<string, string>, recipient: string, events: number][] = [
    [{ event: 'failed' }, 'bob@gone.invalid', 1],
    [{ severity: 'permanent' }, 'bob@gone.invalid', 1],
    [{ tags: 'rare' }, 'a31@there.invalid', 2],
    [{ tags: 'rare', event: 'delivered' }, 'a31@there.invalid', 1],
    [{ recipient: 'A0@there.invalid' }, 'a0@there.invalid', 2],
    [{ recipient: 'a59@there.invalid', event: 'accepted' }, 'a59@there.invalid', 1],
    [{ 'message-id': ids[1]! }, 'a1@there.invalid', 2],
    [{ 'message-id': ids[58]!, event: 'delivered OR failed' }, 'a58@there.invalid', 1],
    [{ subject: 'mail 7', from: 'app@sender.invalid', event: 'delivered' }, 'a7@there.invalid', 1],
    [{ to: 'a8@there.invalid', event: 'delivered' }, 'a8@there.invalid', 1],
  ];
  for (const [filter, recipient, count] of filters)
    for (const ascending of ['yes', 'no'])
      for (const limit of ['1', '300']) {
        const said = JSON.stringify({ ...filter, ascending, limit });
        const all = await readAll(world, { ...filter, ascending, limit });
        t.deepEqual(
          all.map((item) => item.recipient),
          Array(count).fill(recipient),
          said,
        );
      }
  t.deepEqual(await readAll(world, { tags: 'nowhere', limit: '1' }), []);
  const begin = String(world.clock.now() / 1000 - 3600);
  const within = { begin, end: String(world.clock.now() / 1000 + 3600), limit: '7' };
  t.is((await readAll(world, within)).length, 120);
  t.is((await readAll(world, { begin: within.end, end: begin, limit: '7' })).length, 120);
  const { items } = await sdk(world).events.get(domain, { event: 'failed', limit: 1 } as never);
  t.is(items[0]!.recipient, 'bob@gone.invalid');

  // The pages of events lead forward and back, to the first and to the last.
  const names = ({ items }: Page) => items.map(({ recipient }) => recipient);
  for (const ascending of ['yes', 'no']) {
    const query = { event: 'delivered', limit: '20', ascending };
    const one = await read(world, eventsUrl(world, query));
    const two = await read(world, one.paging.next);
    const three = await read(world, two.paging.next);
    t.deepEqual(
      [one, two, three].map((page) => page.items.length),
      [20, 20, 19],
    );
    t.deepEqual(names(await read(world, two.paging.previous)), names(one));
    t.deepEqual(names(await read(world, three.paging.previous)), names(two));
    t.deepEqual(names(await read(world, three.paging.first)), names(one));
    const last = await read(world, one.paging.last);
    t.deepEqual(names(last).slice(1), names(three));
    const back = await read(world, last.paging.previous);
    t.deepEqual(names(await read(world, back.paging.next)), names(last));
    t.deepEqual((await read(world, three.paging.next)).items, []);
    t.deepEqual((await read(world, one.paging.previous)).items, []);
  }
});

test('Mailgun: the URLs of pages begin with the public URL of the service', async (t) => {
  const settings = { POSTERN_BASE_URL: 'https://mail.example.org' };
  const world = await startWorld(t, { settings });
  for (const [path, list] of [
    ['', 'events'],
    ['/compat/mailgun', 'events'],
    ['', 'bounces'],
  ]) {
    const { paging } = await read(world, `${world.url()}${path}/v3/${domain}/${list}?limit=1`);
    for (const url of Object.values(paging))
      t.true(url.startsWith(`https://mail.example.org${path}/v3/${domain}/${list}`), url);
  }
});

test('Mailgun: the pages of a list of suppressions lead forward and back, to the first and to the last', async (t) => {
  const world = await startWorld(t);
  const change = { db: world.db, orgId: world.orgId, now: world.clock.now() };
  for (const name of ['a', 'b', 'c', 'd', 'e']) {
    await suppressAddress(change, `${name}@there.invalid`, 'complaint');
    await suppressAddress(change, `${name}@else.invalid`, 'unsubscribed');
  }
  type List = { items: { address: string }[]; paging: Page['paging'] };
  const list = (url: string) => read(world, url) as unknown as Promise<List>;
  const names = ({ items }: List) => items.map(({ address }) => address[0]).join('');
  const one = await list(`${world.url()}/v3/${domain}/complaints?limit=2`);
  const two = await list(one.paging.next);
  const three = await list(two.paging.next);
  const end = await list(three.paging.next);
  t.deepEqual([one, two, three, end].map(names), ['ab', 'cd', 'e', '']);
  t.is(names(await list(three.paging.previous)), 'cd');
  t.is(names(await list(two.paging.previous)), 'ab');
  t.is(names(await list(one.paging.previous)), '');
  t.is(names(await list(two.paging.first)), 'ab');
  t.is(names(await list(one.paging.last)), 'de');
  const { items } = await sdk(world).suppressions.list(domain, 'complaints', { limit: 3 });
  t.is(items.length, 3);
});
