import test from 'ava';
import { grant } from '../../src/db/accept/credit-ledger.ts';
import { kinds } from '../lab/database/databases.ts';
import { startWorld, type World } from '../lab/scenes/world.ts';

async function books(world: World) {
  const [org] = await world
    .db('organizations')
    .select('id', 'quota_limit', 'quota_used', 'wallet', 'ledger_total');
  const changes: number[] = await world.db('credit_entries').orderBy('id').pluck('change');
  const sum = changes.reduce((total, change) => total + change, 0);
  return { ...org, sum, left: org.quota_limit - org.quota_used };
}

const news = (world: World) => world.db('events').whereNull('email_id').orderBy('id').pluck('type');

for (const database of kinds) {
  test(`${database}: the quota goes first, then the wallet, recipients in request order; then 402`, async (t) => {
    const world = await startWorld(t, { database, tenant: { quota: 2 } });
    const { id } = await books(world);
    await world.db.transaction((trx) => grant(trx, id, 1, world.clock.now()));
    const to = ['a', 'b', 'c', 'd'].map((name) => `${name}@there.invalid`);
    const { status, body } = await world.send({ to });
    t.is(status, 200);
    t.deepEqual(body.accepted, to.slice(0, 3));
    t.deepEqual(body.insufficientCredit, to.slice(3));
    t.like(await books(world), { left: 0, wallet: 0, ledger_total: 0, sum: 0 });
    t.is((await world.send({ to, subject: 'more' })).status, 402);
    const email = await world.get(body.emailId);
    t.is(email.recipients[3].status, 'insufficient_credit');
    t.is(email.credits, 3);
  });

  test(`${database}: low and exhausted credits are told once each, until there are credits again`, async (t) => {
    const world = await startWorld(t, { database, tenant: { quota: 10 } });
    const send = (n: number) => world.send({ to: `n${n}@there.invalid`, subject: `${n}` });
    for (let n = 0; n < 8; n++) await send(n);
    t.deepEqual(await news(world), []);
    await send(8);
    t.deepEqual(await news(world), ['credits.low']);
    await send(9);
    await send(10);
    t.deepEqual(await news(world), ['credits.low', 'credits.exhausted']);
    const { id } = await books(world);
    await world.db.transaction((trx) => grant(trx, id, 1, world.clock.now()));
    await send(11);
    t.deepEqual(await news(world), ['credits.low', 'credits.exhausted', 'credits.low', 'credits.exhausted']);
  });

  test(`${database}: the quota is new on the organization’s day of the month`, async (t) => {
    const world = await startWorld(t, { database, tenant: { quota: 2 } });
    t.is((await world.send({ to: ['a@there.invalid', 'b@there.invalid'] })).status, 200);
    t.is((await world.send({ to: 'c@there.invalid' })).status, 402);
    await world.clock.jump('32d');
    t.is((await world.send({ to: 'c@there.invalid' })).status, 200);
    const { left, ledger_total, sum } = await books(world);
    t.deepEqual({ left, ledger_total, sum }, { left: 1, ledger_total: 1, sum: 1 });
  });
}

test('trouble in the accepting commit is a 500 that charges and keeps nothing', async (t) => {
  const world = await startWorld(t, { database: 'sqlite', tenant: { quota: 5 } });
  await world.db.raw(
    `create trigger broken before insert on emails when new.subject = 'broken' begin select raise(abort, 'broken'); end`,
  );
  const [broken, fine] = await Promise.all([
    world.send({ to: 'a@there.invalid', subject: 'broken', idempotencyKey: 'k' }),
    world.send({ to: 'b@there.invalid', subject: 'fine' }),
  ]);
  t.is(broken.status, 500);
  t.is(broken.body.error, 'SEND_FAILED');
  t.is(fine.status, 200, 'its neighbour in the group is not harmed');
  t.like(await books(world), { left: 4, ledger_total: 4, sum: 4 });
  await world.db.raw('drop trigger broken');
  t.is((await world.send({ to: 'a@there.invalid', subject: 'broken', idempotencyKey: 'k' })).status, 200);
});
