/** Emails that are deleted after a time (POSTERN_KEEP_EMAILS): what goes with one, and what stays, on both databases. */
import test from 'ava';
import { cliOf } from '#lab/cli.ts';
import { kinds } from '#lab/database/databases.ts';
import { insertEmail } from '#lab/database/partitioned-rows.ts';
import { startWorld, type World } from '#lab/scenes/world.ts';
import { deleteTestMail, forgetEmails } from '#mail/record/rows/forget-emails.ts';
import { sumUp } from '#mail/record/rows/statistics.ts';

const day = 86_400_000;

const count = async (world: World, table: string) => Number((await world.db(table).count('* as n'))[0]!.n);

for (const database of kinds) {
  test(`${database}: an email goes with all that is its own, and what counts without it stays`, async (t) => {
    const world = await startWorld(t, { database });
    const { body } = await world.send({ to: 'ann@there.invalid', idempotencyKey: 'one' });
    const held = (await world.send({ to: 'bob@there.invalid' })).body;
    for (const { emailId } of [body, held]) await world.when(emailId, ({ status }) => status === 'delivered');
    await world.db('deliveries').where({ email_id: held.emailId }).update({ status: 'held' });
    await sumUp(world.db);
    const ledger = await count(world, 'credit_entries');
    const forget = forgetEmails(world.db, () => Date.now() + 4 * day, 3 * day);
    t.is(await forget(), 0);
    t.is((await world.call('GET', `/api/public/email/${body.emailId}`)).status, 404);
    t.is((await world.get(held.emailId)).status, 'held');
    for (const table of ['emails', 'deliveries', 'messages', 'attempts'])
      t.is(await count(world, table), 1, table);
    t.is(await count(world, 'credit_entries'), ledger);
    t.is(Number((await world.db('statistics').sum('sent as n'))[0]!.n), 2);
    const again = await world.send({ to: 'ann@there.invalid', idempotencyKey: 'one' });
    t.deepEqual(again.body, body);
    const { cli } = cliOf(t, world);
    t.is((await cli('email show', body.emailId)).code, 1);
  });

  test(`${database}: emails go in small parts, and leave nothing that refers to them`, async (t) => {
    const world = await startWorld(t, { database });
    await world.stop();
    const now = Date.now();
    const held = await insertEmail(world.db, now - 10_000, 'held');
    for (let n = 0; n < 60; n++) await insertEmail(world.db, now - 9000);
    await insertEmail(world.db, now);
    const forget = forgetEmails(world.db, () => now, 1000);
    t.is(await forget(), 50);
    t.is(await count(world, 'emails'), 13);
    t.is(await forget(), 0);
    const left = ['emails', 'deliveries', 'messages', 'attempts', 'events', 'inbound_mails'];
    for (const table of left) t.is(await count(world, table), 2, table);
    t.truthy(await world.db('emails').where({ id: held.emailId }).first());
    const orgId = (await world.db('emails').first('org_id')).org_id;
    await world.db('emails').update({ is_test: true });
    t.is(await deleteTestMail(world.db, orgId, 100), 1, 'what is held stays');
    t.deepEqual(await world.db('emails').pluck('id'), [held.emailId]);
    if (database === 'sqlite') {
      t.deepEqual(await world.db.raw('pragma foreign_key_check'), []);
      t.deepEqual(await world.db.raw('pragma foreign_keys'), [{ foreign_keys: 1 }]);
    }
  });
}
