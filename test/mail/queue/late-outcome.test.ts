/** An outcome whose commit takes longer than the wait for the next attempt: the scans have passed that time meanwhile. */
import test from 'ava';
import { startWorld } from '#lab/scenes/world.ts';
import { until } from '#lab/until.ts';
import { suspend } from '#mail/queue/rows/suspensions.ts';

test('mail whose next attempt was due before its outcome was committed is sent, or expires, at once', async (t) => {
  const replies = [Promise.withResolvers<string>(), Promise.withResolvers<string>()];
  let asked = 0;
  const rcpt = () => replies[asked++]?.promise;
  const world = await startWorld(t, {
    database: 'postgres',
    exchangers: [{ script: { rcpt } }, { script: { rcpt } }],
    zone: { 'blocked.invalid': { MX: ['10 mx2.invalid'] } },
    settings: { POSTERN_MTA_RETRY: '10s', POSTERN_MTA_MAX_AGE: '1m' },
  });
  const { clock, db } = world;
  const send = async (to: string) => (await world.send({ to })).body.emailId as string;
  const old = await send('ann@blocked.invalid');
  await until(() => asked === 1);
  await clock.advance('30s');
  const young = await send('ann@there.invalid');
  await until(() => asked === 2);
  // The lock keeps the outcomes from being committed.
  const lock = await db.transaction();
  t.teardown(() => lock.rollback());
  await lock('deliveries').forUpdate().select('id');
  for (const reply of replies) reply.resolve('451 4.3.0 try again later');
  const isWaiting = () =>
    db('pg_stat_activity')
      .where({ wait_event_type: 'Lock' })
      .whereRaw('datname = current_database()')
      .first('pid');
  await until(isWaiting, { what: 'the commit to wait' });
  const now = clock.now() + 45_000;
  await suspend(db, {
    destination: 'blocked.invalid',
    reason: 'closed',
    until: now + 3_600_000,
    createdAt: 0,
  });
  // This node has scanned the queue until then.
  while (clock.now() < now) await clock.advance('1s');
  world.hasProgressed();
  await db.raw('select txid_current()');
  await clock.advance('1s');
  await until(world.hasProgressed);
  await lock.rollback();
  await world.when(young, ({ status }) => status === 'delivered');
  t.is((await world.when(old, ({ status }) => status === 'expired')).recipients[0].attempts, 1);
});
