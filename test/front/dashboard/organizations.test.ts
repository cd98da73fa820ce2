/** The organizations as a table of what is stored, sorted by a column, on either database; a member's list has names only. */
import test from 'ava';
import { invite } from '#accounts/people/people.ts';
import { grant, setQuota } from '#accounts/rows/credit-ledger.ts';
import { insertOrganization } from '#accounts/rows/organizations.ts';
import { createBrowser, password, setUp } from '#lab/browser/browser.ts';
import { journeyKinds } from '#lab/database/databases.ts';
import { startWorld } from '#lab/scenes/world.ts';
import { suspend } from '#mail/queue/rows/suspensions.ts';
import { countNames } from '#mail/record/counts.ts';
import { latencyBounds } from '#mail/record/latency.ts';
import { hourMs } from '#mail/record/rows/statistics.ts';
import { insertRows } from '#platform/database/engine/insert-rows.ts';

const path = '/dashboard/organizations';
const named = (html: string) => [...html.matchAll(/row-link"[^>]*>([^<]+)</g)].map(([, name]) => name);

for (const database of journeyKinds) {
  test(`${database}: organizations are sorted by what they sent, what waits and their credits; a name is found`, async (t) => {
    const world = await startWorld(t, { database, zone: { 'dead.invalid': { MX: ['10 mx1.invalid'] } } });
    const { db, clock } = world;
    const browser = createBrowser(world);
    await setUp(browser, world);
    const now = clock.now();
    const hour = now - (now % hourMs);
    const none = Object.fromEntries(
      [...countNames, ...[...latencyBounds, 0].map((_, at) => `took_${at}`)].map((name) => [name, 0]),
    );
    const ids: string[] = [];
    for (let n = 1; n <= 60; n++) {
      const id = await insertOrganization(db, `Org ${n}`, now);
      ids.push(id);
      await db.transaction((trx) => setQuota(trx, id, 100, now));
    }
    const figures = (at: number, hourOf: number, counts: object) => ({
      org_id: ids[at - 1]!,
      hour: hourOf,
      ...none,
      ...counts,
    });
    const rows = [
      figures(7, hour, { sent: 3000, bounced: 2 }),
      figures(7, hour - hourMs, { sent: 1000, complained: 1 }),
      figures(9, hour, { sent: 20, bounced: 12 }),
      // Of more than seven days ago.
      figures(11, hour - 8 * 24 * hourMs, { sent: 90_000 }),
    ];
    await db.transaction((trx) => insertRows(trx, 'statistics', rows));
    await db.transaction((trx) => setQuota(trx, ids[19]!, 5, now));
    await db.transaction((trx) => grant(trx, ids[20]!, 1000, now));
    await suspend(db, { destination: 'dead.invalid', reason: 'test', createdAt: 0, until: now + hourMs });
    await clock.advance('5s');
    await world.send({ to: 'ann@dead.invalid' });

    const newest = await browser.get(path);
    t.is(named(newest.html).length, 50);
    t.is(named(newest.html)[0], 'Org 60');
    t.regex(newest.html, /rel="next"/);
    const sent = await browser.get(`${path}?sort=sent`);
    t.deepEqual(named(sent.html).slice(0, 2), ['Org 7', 'Org 9']);
    t.regex(sent.text, /Org 7 4,000 2 1 · 100/);
    t.regex(sent.html, /aria-sort="descending"[^>]*>\s*<a href="\?sort=sent"/);
    t.regex(sent.text, /The first 50 in this order are shown/);
    t.is(named((await browser.get(`${path}?sort=bounced`)).html)[0], 'Org 9');
    t.is(named((await browser.get(`${path}?sort=complained`)).html)[0], 'Org 7');
    const fewest = await browser.get(`${path}?sort=credits`);
    t.is(named(fewest.html)[0], 'Org 20');
    t.is(named((await browser.get(`${path}?sort=name`)).html)[0], 'Org 1');
    await clock.passUntil(
      async () => named((await browser.get(`${path}?sort=waiting`)).html)[0] === 'Tenant',
    );
    t.regex(browser.page().text, /Tenant (·|1) · · 1 unlimited/);
    t.deepEqual(named((await browser.get(`${path}?q=ORG%2021&sort=sent`)).html), ['Org 21']);
    t.regex(browser.page().text, /Org 21 · · · · 1,100/);
    t.regex((await browser.get(`${path}?q=100%25`)).text, /Nothing found/);
    t.is((await browser.get(`${path}?sort=nonsense`)).status, 200);

    const member = { orgId: ids[0]!, role: 'viewer' as const };
    const person = { email: 'vera@postern.invalid', name: 'Vera', isOperator: false, member };
    const { link } = await invite(db, person, now);
    // The switcher has the newest twelve, but the pages of the server keep the one that was opened last.
    await browser.get(`/dashboard/o/${ids[0]}`);
    t.true((await browser.get('/dashboard/queue')).html.includes('<nav aria-label="Org 1">'));
    const viewer = createBrowser(world);
    await viewer.get(link!.path);
    await viewer.submit('', { password });
    t.regex((await viewer.get(path)).text, /Choose an organization\. Org 1 viewer/);
    t.notRegex(viewer.page().text, /Org 2/);
  });
}
