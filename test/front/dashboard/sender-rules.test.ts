/** The page that says whether an organization's mail meets the rules of the large providers: by its own mail, for its people. */
import test from 'ava';
import { invite } from '#accounts/people/people.ts';
import { insertOrganization } from '#accounts/rows/organizations.ts';
import { createBrowser, password, setUp } from '#lab/browser/browser.ts';
import { journeyKinds } from '#lab/database/databases.ts';
import { startWorld, type World } from '#lab/scenes/world.ts';
import { readMailboxDays } from '#mail/record/rows/mailbox-days.ts';

async function counted({ db, clock, orgId }: World) {
  await clock.passUntil(
    async () => Boolean(await db('group_statistics').where({ org_id: orgId, kind: 'mailboxes' }).first()),
    { step: '10s' },
  );
}

for (const database of journeyKinds) {
  test(`${database}: mail to personal mailboxes is counted for the registered domain; the page shows it and each demand`, async (t) => {
    const world = await startWorld(t, { database });
    const { db, clock, orgId } = world;
    for (const to of ['a@gmail.com', 'b@googlemail.com', 'c@yahoo.fr', 'd@there.invalid'])
      t.is((await world.send({ to, subject: to })).status, 200);
    await counted(world);
    const days = await readMailboxDays(db, { orgIds: [orgId], now: clock.now(), days: 30 });
    t.deepEqual(days.map(({ provider, domain, sent }) => [provider, domain, sent]).sort(), [
      ['gmail', 'sender.invalid', 2],
      ['yahoo', 'sender.invalid', 1],
    ]);
    const other = await insertOrganization(db, 'Other', 0);
    t.deepEqual(await readMailboxDays(db, { orgIds: [other], now: clock.now(), days: 30 }), []);

    const browser = createBrowser(world);
    await setUp(browser, world);
    const page = await browser.get(`/dashboard/o/${orgId}/sender-rules`);
    t.is(page.status, 200);
    t.regex(
      page.text,
      /sender\.invalid .*Gmail No 2 \d{4}-\d\d-\d\d Yahoo No 1 \d{4}-\d\d-\d\d Outlook\.com No 0 –/,
    );
    t.regex(page.text, /Met DKIM Demanded by Gmail, Yahoo\./);
    t.regex(page.text, /Not met A From that takes replies Recommended; demanded of bulk senders\./);
    t.regex(page.text, /One-click unsubscribe/);
    t.regex(page.text, /0 of 0 mails to Yahoo and Outlook\.com in 30 days; Gmail's are not in it/);
    t.regex(page.text, /Yahoo \(Complaint Feedback Loop\) .*none in 30 days/);
    t.regex((await browser.get(`/dashboard/o/${other}/sender-rules`)).text, /No verified domain/);

    world.dns.set({
      [world.config.hostname]: { A: ['127.0.0.1'] },
      '1.0.0.127.in-addr.arpa': { PTR: ['secret.hoster.invalid'] },
    });
    const asOperator = await browser.get(`/dashboard/o/${orgId}/sender-rules`);
    t.regex(asOperator.text, /Reverse DNS .* It is secret\.hoster\.invalid, which does not resolve/);
    const person = { email: 'owner@there.invalid', name: 'Owner', isOperator: false };
    const { link } = await invite(db, { ...person, member: { orgId, role: 'viewer' } }, clock.now());
    const member = createBrowser(world);
    await member.get(link!.path);
    await member.submit('', { password });
    const shown = await member.get(`/dashboard/o/${orgId}/sender-rules`);
    t.regex(
      shown.text,
      /Reverse DNS .* Something is wrong with it on this server What to do: Ask the operator/,
    );
    t.notRegex(shown.html, /secret\.hoster/);
    t.is((await member.get(`/dashboard/o/${other}/sender-rules`)).status, 404);
  });
}
