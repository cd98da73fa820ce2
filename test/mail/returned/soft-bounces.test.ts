/** An address that keeps bouncing softly because of its mailbox is suppressed; a delivery in between starts the count again. */
import test from 'ava';
import { journeyKinds } from '#lab/database/databases.ts';
import { goldenMail, startReturns } from '#lab/scenes/returns.ts';

const replies: Record<string, string> = {
  spam: '550 5.7.1 spam detected',
  crowded: '452 4.2.2 mailbox full',
  busy: '451 4.3.0 try again later',
};

for (const kind of journeyKinds) {
  test(`${kind}: soft bounces on three days, with no delivery in between, suppress the address`, async (t) => {
    const world = await startReturns(t, {
      database: kind,
      exchangers: [
        {
          script: {
            rcpt: ({ address }) => replies[address!.split('@')[0]!],
          },
        },
      ],
    });
    const day = () => world.clock.jump('1d');
    const reasons = () => world.db('suppressions').orderBy('address_key').pluck('reason');
    const rows = async () => (await world.db('soft_bounces').select('id')).length;
    let sent = 0;
    async function ends(to: string, as: string) {
      // Each with its own subject: equal mail within a day is sent once.
      const { emailId } = (await world.send({ to, subject: `Mail ${++sent}` })).body;
      await world.when(emailId, ({ status }) => status === as);
      return emailId;
    }
    async function bounces() {
      const emailId = await ends('Ann@there.invalid', 'delivered');
      const path = await world.returnPath(emailId);
      await world.comesBack(path, goldenMail('qmail-vpopmail-full', path));
      await world.when(emailId, ({ status }) => status === 'bounced');
    }
    await ends('Ann@there.invalid', 'delivered');
    t.is(await rows(), 0, 'mail that is delivered leaves nothing');
    await bounces();
    await bounces();
    await day();
    await bounces();
    t.deepEqual(await reasons(), [], 'three bounces, on two days');
    await day();
    // In another letter case: the same mailbox.
    await ends('ann@there.invalid', 'delivered');
    await day();
    await bounces();
    await day();
    await bounces();
    t.deepEqual(await reasons(), [], 'two days since the delivery');
    await day();
    await bounces();
    t.deepEqual(await reasons(), ['soft bounces on 3 days: mailbox_full']);
    t.is(await rows(), 0);
    t.is((await world.send({ to: 'ann@there.invalid' })).body.error, 'ALL_RECIPIENTS_SUPPRESSED');

    // The same for bounces in the session; refusals that are not about the mailbox do not count.
    for (let count = 0; count < 3; count++) {
      for (const to of ['full@there.invalid', 'spam@there.invalid']) await ends(to, 'bounced');
      await world.clock.jump('9d');
    }
    const suppressed = () => world.db('suppressions').orderBy('address_key').pluck('address');
    t.deepEqual(await suppressed(), ['Ann@there.invalid', 'full@there.invalid']);

    // The same for mail that expires while the mailbox is full, which most hosts refuse with a 4xx.
    for (let count = 0; count < 3; count++) {
      t.is((await suppressed()).length, 2, `${count} expired`);
      const waiting = [
        await ends('crowded@there.invalid', 'deferred'),
        await ends('busy@there.invalid', 'deferred'),
      ];
      await world.clock.advance('9d');
      for (const emailId of waiting) await world.passUntil(emailId, ({ status }) => status === 'expired');
    }
    t.deepEqual(await suppressed(), ['Ann@there.invalid', 'crowded@there.invalid', 'full@there.invalid']);
    const { reason } = await world.db('suppressions').where({ address_key: 'crowded@there.invalid' }).first();
    t.is(reason, 'soft bounces on 3 days: mailbox_full');
  });
}
