import test from 'ava';
import { startWorld } from '../lab/scenes/world.ts';
import { until } from '../lab/until.ts';

test('a domain that hangs keeps its share of the room and no more', async (t) => {
  const world = await startWorld(t, {
    exchangers: [{ script: { greeting: () => 'hang' } }, {}],
    zone: { 'slow.invalid': { MX: ['10 mx1.invalid'] }, 'quick.invalid': { MX: ['10 mx2.invalid'] } },
    settings: { POSTERN_MTA_CONCURRENCY: '4', POSTERN_MTA_PER_DESTINATION: '2' },
  });
  for (let n = 0; n < 6; n++) await world.send({ to: `n${n}@slow.invalid`, subject: `${n}` });
  await until(() => world.mx[0]!.connections === 2, { what: 'the slow domain to fill its share' });
  for (let n = 0; n < 6; n++) await world.send({ to: `n${n}@quick.invalid`, subject: `${n}` });
  await world.mx[1]!.received(6);
  t.is(world.mx[0]!.maxConnections, 2);
  t.true(world.mx[1]!.maxConnections <= 2);
  await world.mx[0]!.close();
});

test('what a node that is gone was sending is taken over when its lease has run out', async (t) => {
  const world = await startWorld(t);
  const { body } = await world.send({ to: 'greylist@there.invalid' });
  await world.when(body.emailId, ({ status }) => status === 'deferred');
  const leaseEnd = world.clock.now() + 100_000;
  await world
    .db('deliveries')
    .where({ email_id: body.emailId })
    .update({ status: 'sending', lease_owner: 'another node', due_at: leaseEnd });
  await world.clock.advance('90s');
  t.is(
    (await world.get(body.emailId)).status,
    'sending',
    'as long as the lease holds, it is the other node’s',
  );
  // Leases are looked at once a minute, counted from when the last look had ended.
  const email = await world.clock.passUntil(
    async () => {
      const latest = await world.get(body.emailId);
      return latest.status === 'delivered' && latest;
    },
    { step: '60s', what: 'the other node’s delivery to be taken over' },
  );
  t.is(email.recipients[0].attempts, 3);
  t.deepEqual(
    email.events.map(({ data }: { data: { category?: string } }) => data.category ?? null),
    [null, 'greylisting', 'interrupted', null],
  );
});

test('a send whose recipients are partly suppressed tells the whole story', async (t) => {
  const world = await startWorld(t);
  const [{ id: orgId }] = await world.db('organizations').select('id');
  await world.db('suppressions').insert({
    id: '01890000-0000-7000-8000-000000000000',
    org_id: orgId,
    address: 'Gone@there.invalid',
    address_key: 'gone@there.invalid',
    reason: 'test',
    created_at: 0,
  });
  const { body } = await world.send({ to: ['GONE@There.invalid', 'ann@there.invalid'] });
  t.deepEqual(body.suppressed, ['GONE@There.invalid']);
  t.deepEqual(body.accepted, ['ann@there.invalid']);
  const email = await world.when(body.emailId, ({ status }) => status === 'partially_delivered');
  t.is(email.recipients[0].status, 'suppressed');
  t.is(email.credits, 1);
});
