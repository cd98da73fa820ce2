/**
 * The database's disk is full: every send is answered 200 and delivered later, or answered with an error and not
 * charged; an outcome that cannot be recorded is kept until it can; with space again, nothing is lost and nothing is
 * sent twice.
 */
import test from 'ava';
import { kinds } from '#lab/database/databases.ts';
import { fill, makeRoom, trackConnections } from '#lab/full-disk.ts';
import { startWorld } from '#lab/scenes/world.ts';
import { until } from '#lab/until.ts';

trackConnections();

for (const database of kinds) {
  test.serial(`${database}: a full disk loses nothing and charges for nothing`, async (t) => {
    const space = Promise.withResolvers<void>();
    // The exchanger takes mail all the time, and says so when the disk is full.
    const dot = async () => {
      await space.promise;
      return undefined;
    };
    const world = await startWorld(t, { database, exchangers: [{ script: { dot } }] });
    const answers = new Map<string, number>();
    let number = 0;
    const sendOne = async () => {
      number += 1;
      const to = `n${number}@there.invalid`;
      const { status, body } = await world.send({ to, text: 'Hello there. '.repeat(2000) });
      if (status !== 200) t.like(body, { error: 'SEND_FAILED', issues: [] });
      answers.set(to, status);
      return status;
    };
    for (let sent = 0; sent < 3; sent++) t.is(await sendOne(), 200);

    await fill(world.db);
    let refused = 0;
    await until(async () => {
      if ((await sendOne()) === 500) refused += 1;
      return refused === 5;
    });
    space.resolve();
    const accepted = [...answers].filter(([, status]) => status === 200).map(([to]) => to);
    await world.mx[0]!.received(Math.min(accepted.length, 3));
    await world.clock.advance('5s');
    const told = async () => Number((await world.db('attempts').count('* as n'))[0]!.n);
    if (database === 'postgres') t.is(await told(), 0, 'no outcome could be recorded');

    await makeRoom(world.db);
    t.is(await sendOne(), 200);
    const count = accepted.length + 1;
    await world.clock.passUntil(async () => (await told()) === count);
    const arrived = world.mx[0]!.messages.map(({ to }) => to[0]!);
    t.deepEqual(arrived.toSorted(), [...accepted, `n${number}@there.invalid`].toSorted(), 'each once');
    const statuses = await world.db('deliveries').distinct('status').pluck('status');
    t.deepEqual(statuses, ['delivered']);
    const [org] = await world.db('organizations').select('quota_used', 'ledger_total');
    t.like(org, { quota_used: count, ledger_total: -count });
  });
}
