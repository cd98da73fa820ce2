/**
 * What idempotency leaves to the database: calls at once, a restart, forgetting. What a caller is promised is in
 * test/contract/.
 */
import test from 'ava';
import { journeyKinds } from '#lab/database/databases.ts';
import { startWorld } from '#lab/scenes/world.ts';

const mail = { to: ['ann@there.invalid', 'bob@there.invalid'], subject: 'Once' };

for (const database of journeyKinds) {
  test(`${database}: twenty sends at once with one key are one mail, one debit, twenty equal answers; the key holds over a restart, for a day, and is then forgotten`, async (t) => {
    const world = await startWorld(t, { database, tenant: { quota: 100 } });
    const send = (idempotencyKey?: string) => world.send({ ...mail, idempotencyKey });
    const answers = await Promise.all(Array.from({ length: 20 }, () => send('order-1')));
    const [first] = answers;
    for (const { status, body } of answers) {
      t.is(status, 200);
      t.deepEqual(body, first!.body);
    }
    t.is(answers.filter(({ headers }) => headers.get('idempotent-replayed') === 'true').length, 19);
    await world.when(first!.body.emailId, ({ status }) => status === 'delivered');
    t.is(world.mx[0]!.messages.length, 2);
    t.deepEqual(await world.db('credit_entries').where({ reason: 'send' }).pluck('change'), [-2]);
    t.not((await send()).body.emailId, first!.body.emailId, 'kept by its window');

    await world.restart();
    await world.clock.jump('23h');
    const replay = await send('order-1');
    t.deepEqual(replay.body, first!.body);
    t.is(replay.headers.get('idempotent-replayed'), 'true');
    await world.clock.jump('2h');
    await send('new');
    const kept = () => world.db('idempotency').pluck('key');
    await world.clock.passUntil(async () => (await kept()).length === 1, {
      step: '1m',
      what: 'maintenance to forget',
    });
    t.deepEqual(await kept(), ['new']);
    t.not((await send('order-1')).body.emailId, first!.body.emailId);
  });
}
