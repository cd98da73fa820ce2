import test from 'ava';
import { kinds } from '../lab/database/databases.ts';
import { startWorld } from '../lab/scenes/world.ts';
import { until } from '../lab/until.ts';

const mail = { to: ['ann@there.invalid', 'bob@there.invalid'], subject: 'Once' };

for (const database of kinds) {
  test(`${database}: twenty sends at once with one key are one mail, one debit, twenty equal answers`, async (t) => {
    const world = await startWorld(t, { database, tenant: { quota: 100 } });
    const answers = await Promise.all(
      Array.from({ length: 20 }, () => world.send({ ...mail, idempotencyKey: 'order-1' })),
    );
    for (const { status, body } of answers) {
      t.is(status, 200);
      t.deepEqual(body, answers[0]!.body);
    }
    t.is(answers.filter(({ headers }) => headers.get('idempotent-replayed') === 'true').length, 19);
    await world.when(answers[0]!.body.emailId, ({ status }) => status === 'delivered');
    t.is(world.mx[0]!.messages.length, 2);
    t.deepEqual(await world.db('credit_entries').where({ reason: 'send' }).pluck('change'), [-2]);
  });

  test(`${database}: the key holds over a restart, for a day`, async (t) => {
    const world = await startWorld(t, { database });
    const first = await world.send({ ...mail, idempotencyKey: 'k' });
    await world.restart();
    await world.clock.advance('23h');
    const replay = await world.send({ ...mail, idempotencyKey: 'k' });
    t.deepEqual(replay.body, first.body);
    t.is(replay.headers.get('idempotent-replayed'), 'true');
    await world.clock.advance('2h');
    t.not((await world.send({ ...mail, idempotencyKey: 'k' })).body.emailId, first.body.emailId);
  });

  test(`${database}: the same key with another request is refused; in another order it is the same request`, async (t) => {
    const world = await startWorld(t, { database });
    const call = (body: string) => world.call('POST', '/api/public/email/send', { body });
    const first = await call(
      '{"from":"app@sender.invalid","to":"a@there.invalid","subject":"s","text":"t","idempotencyKey":"k"}',
    );
    const same = await call(
      '{ "idempotencyKey": "k", "text":"t","subject":"s","to":"a@there.invalid","from":"app@sender.invalid" }',
    );
    t.deepEqual(same.body, first.body);
    const other = await call(
      '{"from":"app@sender.invalid","to":"a@there.invalid","subject":"s","text":"other","idempotencyKey":"k"}',
    );
    t.is(other.status, 400);
    t.is(other.body.error, 'BAD_REQUEST');
  });

  test(`${database}: what no longer holds is forgotten, what holds is kept`, async (t) => {
    const world = await startWorld(t, { database });
    await world.send({ ...mail, idempotencyKey: 'old' });
    await world.send({ ...mail, subject: 'Window' });
    await world.clock.advance('25h');
    await world.send({ ...mail, idempotencyKey: 'new' });
    const kept = () => world.db('idempotency').pluck('key');
    await until(
      async () => {
        await world.clock.advance('10m');
        return (await kept()).length === 1;
      },
      { what: 'upkeep to forget' },
    );
    t.deepEqual(await kept(), ['new']);
  });

  test(`${database}: a refused send does not use up its key`, async (t) => {
    const world = await startWorld(t, { database, tenant: { quota: 0 } });
    t.is((await world.send({ ...mail, idempotencyKey: 'k' })).status, 402);
    await world.db('organizations').update({ wallet: 5, ledger_total: 5 });
    t.is((await world.send({ ...mail, idempotencyKey: 'k' })).status, 200);
  });

  test(`${database}: without a key, the same recipients and subject within two seconds are one send`, async (t) => {
    const world = await startWorld(t, { database, tenant: { quota: 100 } });
    const first = await world.send(mail);
    const again = await world.send({
      ...mail,
      to: ['BOB@There.invalid', 'ann@there.invalid'],
      text: 'another body',
    });
    t.deepEqual(again.body, first.body);
    t.is(again.headers.get('idempotent-replayed'), 'true');
    const keyed = await world.send({ ...mail, idempotencyKey: 'k' });
    t.not(keyed.body.emailId, first.body.emailId, 'the window is among sends without a key');
    const otherSubject = await world.send({ ...mail, subject: 'Twice' });
    t.not(otherSubject.body.emailId, first.body.emailId);
    await world.clock.advance('2s');
    t.not((await world.send(mail)).body.emailId, first.body.emailId);
  });
}

test('the header Idempotency-Key counts where the body has none', async (t) => {
  const world = await startWorld(t);
  const body = JSON.stringify({ ...mail, from: 'app@sender.invalid', text: 't' });
  const send = (key: string) =>
    world.call('POST', '/api/public/email/send', { body, headers: { 'idempotency-key': key } });
  const first = await send('k');
  t.deepEqual((await send('k')).body, first.body);
  t.not((await send('other')).body.emailId, first.body.emailId);
  t.is((await send('')).status, 400);
  t.is((await send('x'.repeat(256))).status, 400);
});
