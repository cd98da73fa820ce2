import test from 'ava';
import { journeyKinds } from '#lab/database/databases.ts';
import { startWorld } from '#lab/scenes/world.ts';

for (const database of journeyKinds) {
  test(`${database}: the quota is new on the organization’s day of the month`, async (t) => {
    const world = await startWorld(t, { database, tenant: { quota: 2 } });
    t.is((await world.send({ to: ['a@there.invalid', 'b@there.invalid'] })).status, 200);
    t.is((await world.send({ to: 'c@there.invalid' })).status, 402);
    await world.clock.jump('32d');
    t.is((await world.send({ to: 'c@there.invalid' })).status, 200);
    const [org] = await world.db('organizations').select('quota_limit', 'quota_used', 'ledger_total');
    t.deepEqual({ ...org }, { quota_limit: 2, quota_used: 1, ledger_total: 1 });
    const changes: number[] = await world.db('credit_entries').pluck('change');
    t.is(
      changes.reduce((sum, change) => sum + change, 0),
      1,
    );
  });
}
