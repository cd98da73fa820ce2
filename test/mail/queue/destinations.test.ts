/** A destination is a set of hosts: all domains with the same hosts share its connections. */
import test from 'ava';
import { startWorld } from '#lab/scenes/world.ts';
import { until } from '#lab/until.ts';

test('domains with the same hosts share one destination, and its connections', async (t) => {
  const hosts = { MX: ['10 mx1.invalid', '20 mx2.invalid'] };
  const world = await startWorld(t, {
    exchangers: [{ script: { greeting: () => 'hang' } }, {}],
    zone: { 'one.invalid': hosts, 'two.invalid': { MX: ['10 mx1.invalid', '20 mx2.invalid.'] } },
    settings: { POSTERN_MTA_PER_DESTINATION: '3' },
  });
  for (let n = 0; n < 5; n++) {
    await world.send({ to: `n${n}@one.invalid`, subject: `${n}` });
    await world.send({ to: `n${n}@two.invalid`, subject: `${n}` });
  }
  await until(() => world.mx[0]!.connections === 3, { what: 'three connections' });
  await until(async () => (await world.db('deliveries').where({ status: 'queued' })).length > 0, {
    what: 'the others to wait',
  });
  t.is(world.mx[0]!.maxConnections, 3);
  const state = await world.clock.passUntil(() => world.db('destinations').first(), { what: 'the bulletin' });
  t.is(state.name, 'mx1.invalid,mx2.invalid');
  const routes = await until(
    async () => {
      const rows = await world.db('routes').orderBy('domain');
      return rows.length === 2 && rows;
    },
    { what: 'the routes of both' },
  );
  t.deepEqual(
    routes.map(({ domain, destination }) => `${domain} ${destination}`),
    ['one.invalid mx1.invalid,mx2.invalid', 'two.invalid mx1.invalid,mx2.invalid'],
  );
  await world.mx[0]!.close();
});

test('a new mail is sent at once after its acceptance, without a scan', async (t) => {
  const world = await startWorld(t, { exchangers: [{ script: { dot: () => 'hang' } }] });
  const { body } = await world.send({ to: 'ann@there.invalid' });
  const row = await world.db('deliveries').where({ email_id: body.emailId }).first();
  t.is(row.status, 'sending', 'the commit that accepted it leased it');
  t.is(row.updated_at, row.created_at);
  await world.mx[0]!.received(1);
  await world.mx[0]!.close();
});
