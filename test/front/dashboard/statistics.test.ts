/** The page of statistics: sorted rows that lead to their emails, rated figures, CSV; and the same by the API, for whom it is. */
import test from 'ava';
import { createBrowser, setUp } from '#lab/browser/browser.ts';
import { journeyKinds } from '#lab/database/databases.ts';
import { startWorld, type World } from '#lab/scenes/world.ts';
import { sumNames } from '#mail/record/counts.ts';
import { insertRows } from '#platform/database/engine/insert-rows.ts';

const dayMs = 86_400_000;

interface Row {
  kind: string;
  name: string;
  [sum: string]: string | number;
}

async function keep({ db, clock }: World, orgId: string, rows: Row[], daysAgo = 0): Promise<void> {
  const none = Object.fromEntries(sumNames.map((name) => [name, 0]));
  const day = clock.now() - (clock.now() % dayMs) - daysAgo * dayMs;
  await db.transaction((trx) =>
    insertRows(
      trx,
      'group_statistics',
      rows.map(({ kind, name, ...sums }) => ({ org_id: orgId, day, kind, name, ...none, ...sums })),
    ),
  );
}

const namesOf = (html: string) =>
  [...html.matchAll(/<th scope="row">\s*<div>\s*(?:<a href="([^"]*)">)?([^<]+)/g)].map(([, , name]) =>
    name!.trim(),
  );

for (const database of journeyKinds) {
  test(`${database}: groups are sorted and rated, and lead to their emails`, async (t) => {
    const world = await startWorld(t, { database });
    const browser = createBrowser(world);
    await setUp(browser, world);
    const { id: orgId } = await world.db('organizations').where({ name: 'Tenant' }).first();
    await keep(world, orgId, [
      {
        kind: 'domain',
        name: 'good.example',
        sent: 5000,
        delivered: 4990,
        hard: 10,
        bounced: 10,
        complained: 1,
        took_1: 4990,
      },
      {
        kind: 'domain',
        name: 'high.example',
        sent: 2000,
        delivered: 1900,
        hard: 60,
        bounced: 60,
        complained: 3,
      },
      {
        kind: 'domain',
        name: 'bad.example',
        sent: 3000,
        delivered: 2700,
        hard: 200,
        bounced: 200,
        complained: 30,
      },
      { kind: 'domain', name: 'few.example', sent: 10, delivered: 5, hard: 5, bounced: 5 },
      { kind: 'domain', name: '', sent: 9000, delivered: 9000 },
      { kind: 'tag', name: '=2+5<b>&"\'', sent: 1 },
      { kind: 'reason', name: 'unknown_user', bounced: 3, hard: 3 },
    ]);
    const path = `/dashboard/o/${orgId}/statistics`;
    const page = await browser.get(path);
    t.deepEqual(namesOf(page.html), ['good.example', 'bad.example', 'high.example', 'few.example', 'other']);
    t.regex(page.text, /good\.example 5,000 4,990 99\.8% 10 0\.20% 1 0\.02% ≤? ?\d+ ms/);
    t.is(page.html.match(/toned strong warn/g)!.length, 2, 'bounces of 3 %, complaints of 0.16 %');
    t.is(page.html.match(/toned strong bad/g)!.length, 2, 'bounces of 6.7 %, complaints of 1.1 %');
    t.regex(page.text, /Gmail sends no complaint reports, so complaint rates are too low/);
    t.notRegex(page.text, / was /, 'of the days before there is nothing');
    const complained = await browser.get(`${path}?sort=complained`);
    t.deepEqual(namesOf(complained.html).slice(0, 2), ['bad.example', 'high.example']);
    await keep(
      world,
      orgId,
      [{ kind: 'domain', name: 'bad.example', sent: 1000, delivered: 990, hard: 10 }],
      40,
    );
    await keep(world, orgId, [{ kind: 'domain', name: 'few.example', sent: 10, hard: 1 }], 40);
    const rose = (await browser.get(path)).text;
    t.regex(rose, /bad\.example 3,000 2,700 90% 200 6\.7% ↑ was 1% 30 1\.1%/, 'in the thirty days before');
    t.is(rose.match(/ was /g)!.length, 1, 'not of ten mails');
    t.regex(page.html, /emails\?to=%40good\.example&(amp;)?since=/);

    const csv = await browser.get(`${path}/export?by=tag`);
    t.true(csv.html.includes(`"'=2+5<b>&""'"`), 'a spreadsheet takes it for a text');
    t.false((await browser.get(`${path}?by=tag`)).html.includes('<b>&'));
    t.regex((await browser.get(`${path}?by=reason`)).text, /unknown_user 3 3/);
    t.is((await browser.get(`${path}?by=constructor&days=9e9&sort=__proto__`)).status, 200);
  });
}

test('a row leads to the emails that it counts', async (t) => {
  const world = await startWorld(t);
  const browser = createBrowser(world);
  await setUp(browser, world);
  const sent = await world.send({ to: 'ann@there.invalid', subject: 'arrives', tags: { kind: 'order' } });
  const refused = await world.send({ to: 'unknown@there.invalid', subject: 'comes back' });
  await world.when(sent.body.emailId, ({ status }) => status === 'delivered');
  await world.when(refused.body.emailId, ({ status }) => status === 'bounced');
  const { id: orgId } = await world.db('organizations').where({ name: 'Tenant' }).first();
  const counted = () => world.db('group_statistics').where({ kind: 'reason' }).first();
  await world.clock.passUntil(async () => Boolean(await counted()), { step: '10s' });
  for (const [by, subjects] of [
    ['tag', ['arrives']],
    ['reason', ['comes back']],
    ['fault', ['comes back']],
    ['key', ['arrives', 'comes back']],
    ['sender', ['arrives', 'comes back']],
    ['domain', ['arrives', 'comes back']],
  ] as const) {
    const { html } = await browser.get(`/dashboard/o/${orgId}/statistics?by=${by}`);
    const [, href] = /<th scope="row">\s*<div>\s*<a href="([^"]*)"/.exec(html)!;
    const list = await browser.get(href!.replaceAll('&amp;', '&'));
    for (const subject of ['arrives', 'comes back'])
      t.is(
        list.text.includes(subject),
        (subjects as readonly string[]).includes(subject),
        `${by}: ${subject}`,
      );
  }
});

test('the API answers to keys that manage the organization, with its own figures', async (t) => {
  const world = await startWorld(t);
  const { id: orgId } = await world.db('organizations').where({ name: 'Tenant' }).first();
  await keep(world, orgId, [
    { kind: 'domain', name: 'b.example', sent: 4, delivered: 3, hard: 1, bounced: 1, took_0: 3 },
  ]);
  const { body } = await world.call('GET', '/api/public/stats');
  t.is(body.by, 'domain');
  t.is(body.groups.length, 1);
  t.like(body.groups[0], {
    name: 'b.example',
    sent: 4,
    hardBounced: 1,
    hardBounceRate: 0.25,
    complaintRate: 0,
    p50Ms: 50,
  });
  t.is((await world.call('GET', '/api/public/stats?by=hour')).status, 400);
  t.deepEqual(
    (await world.call('GET', '/api/public/stats?since=2001-01-01&until=2001-01-02T08:00:00Z')).body,
    {
      success: true,
      by: 'domain',
      since: '2001-01-01',
      until: '2001-01-03',
      groups: [],
    },
  );
});
