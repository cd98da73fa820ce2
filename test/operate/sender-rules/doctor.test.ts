/** The doctor on bulk senders: whose mail is counted, which demands are not met, and which feedback loops are silent. */
import test from 'ava';
import { journeyKinds } from '#lab/database/databases.ts';
import { dkimDomain, startDoctorWorld } from '#lab/scenes/doctor-world.ts';
import { sumNames } from '#mail/record/counts.ts';
import { insertRows } from '#platform/database/engine/insert-rows.ts';

const dayMs = 86_400_000;

for (const database of journeyKinds) {
  test(`${database}: a bulk sender that breaks a rule is a failure, one that nearly is a warning, others are fine`, async (t) => {
    const world = await startDoctorWorld(t, { database });
    const { db, dns, domain } = world;
    const today = Date.now() - (Date.now() % dayMs);
    const keep = (name: string, sent: number, day = today) =>
      db.transaction((trx) => {
        const none = Object.fromEntries(sumNames.map((one) => [one, 0]));
        const row = { org_id: domain.orgId, day, kind: 'mailboxes', name, ...none, sent, delivered: sent };
        return insertRows(trx, 'group_statistics', [row]);
      });
    const rules = async () => {
      const found = (await world.examineNow()).find(({ check }) => check === 'sender rules')!;
      t.is(found.subject, dkimDomain);
      return found;
    };
    t.like(await rules(), {
      verdict: 'ok',
      found: 'not a bulk sender: at most 0 to Gmail, 0 to Yahoo, 0 to Outlook.com in a day',
    });
    await keep(`gmail ${dkimDomain}`, 9_000, today - 40 * dayMs);
    await keep('gmail other.invalid', 9_000);
    t.is((await rules()).verdict, 'ok', 'long ago, or another domain');

    await keep(`gmail ${dkimDomain}`, 7_210, today - dayMs);
    const met = await rules();
    t.is(met.verdict, 'ok', met.found);
    t.regex(
      met.found,
      /^bulk sender: 7210 to Gmail on \d{4}-\d\d-\d\d; all demands that can be checked here are met$/,
    );

    dns.set({ '_dmarc.sender.invalid': null });
    const broken = await rules();
    t.is(broken.verdict, 'failure');
    t.regex(broken.found, /not met: DMARC, aligned \(no DMARC record/);
    t.is(broken.records[0]!.name, `_dmarc.${dkimDomain}`);
    dns.set({ '_dmarc.sender.invalid': { TXT: ['v=DMARC1; p=none'] } });

    await keep(`microsoft ${dkimDomain}`, 4_100);
    const near = await rules();
    t.regex(near.found, /A From that takes replies \(sender\.invalid takes no mail/);
    await db('group_statistics')
      .where({ name: `gmail ${dkimDomain}` })
      .delete();
    t.is((await rules()).verdict, 'warning');
    dns.set({ [dkimDomain]: { MX: ['10 mx1.invalid'] } });
    t.is((await rules()).verdict, 'ok');

    dns.set({ '1.0.0.127.in-addr.arpa': { PTR: ['elsewhere.invalid'] } });
    t.regex((await rules()).found, /Reverse DNS \(it is elsewhere\.invalid/);
  });
}

test('feedback loops are named, with where to register', async (t) => {
  const world = await startDoctorWorld(t);
  const loops = world.healthy.find(({ check }) => check === 'feedback loops')!;
  t.is(loops.verdict, 'ok');
  t.regex(loops.found, /^last reports to complaints@bounces\.invalid: /);
  t.regex(
    loops.found,
    /Yahoo \(Complaint Feedback Loop\): none, register at https:\/\/senders\.yahooinc\.com/,
  );
});
