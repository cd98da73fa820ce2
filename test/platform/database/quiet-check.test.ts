/** Which commits a poll notices. */
import { dirname } from 'node:path';
import test from 'ava';
import { manualClock } from '#lab/clock.ts';
import { openQueue } from '#lab/database/queue-rows.ts';
import { until } from '#lab/until.ts';
import { publishPools } from '#mail/queue/rows/ip-pools.ts';
import { openDatabase } from '#platform/database/engine/open.ts';
import { changeToken, createTokenReader, withoutIgnored } from '#platform/database/engine/quiet-check.ts';
import { heartbeat } from '#platform/database/tables/nodes.ts';

test('a transaction that is ignored leaves the token as it was, and every other one changes it', (t) => {
  const none = new Set<number>();
  const own = new Set([10]);
  const quiet = withoutIgnored('10:10:', none);
  t.is(withoutIgnored('10:11:10', own), quiet, 'ours is in progress');
  t.is(withoutIgnored('11:11:', own), quiet, 'ours is committed');
  t.not(withoutIgnored('11:11:', none), quiet, 'another one is committed');
  t.not(withoutIgnored('12:12:', own), quiet, 'another one is committed after ours');
  const oneInProgress = withoutIgnored('9:10:9', none);
  t.is(withoutIgnored('9:11:9', own), oneInProgress);
  t.not(withoutIgnored('11:11:', own), oneInProgress, 'it is committed');
});

test('on SQLite the commits of every connection change the token, and nothing else does', async (t) => {
  const { db } = await openQueue(t, 'sqlite');
  const other = await openDatabase({
    dataDir: dirname(db.client.config.connection.filename),
    databaseUrl: null,
  });
  t.teardown(() => other.destroy());
  const settled = () =>
    until(async () => {
      const token = await changeToken(db);
      return (await changeToken(db)) === token && token;
    });
  for (const connection of [db, other, db, other]) {
    const before = await settled();
    await connection('organizations').count();
    t.is(await changeToken(db), before, 'a look changes nothing');
    await connection('sessions').where({ id: 'none' }).delete();
    t.is(await changeToken(db), before, 'nothing was written');
    // Some of these share a tick of the kernel's clock.
    let last = before;
    for (let n = 0; n < 20; n++) {
      await connection('organizations').update({ name: `${n}` });
      const token = await changeToken(db);
      t.not(token, last);
      last = token;
    }
  }
});

test('a sign of life of this node is no change; the same of another node is', async (t) => {
  const { db } = await openQueue(t, 'postgres');
  const clock = manualClock();
  const reader = createTokenReader(db, clock);
  const read = async () => {
    await clock.advance('1s');
    return reader.read();
  };
  const say = async (ignore: (transaction: string) => void) => {
    const own = { node: 'one', members: '', at: clock.now(), version: '1.0.0' };
    await heartbeat(db, own, ignore);
    await publishPools(db, 'one', ['default'], clock.now(), ignore);
  };
  // Other tests' databases are on the same server.
  await until(async () => {
    const before = await read();
    await say(reader.ignore);
    return (await read()) === before;
  });
  const before = await read();
  await say(() => {});
  t.not(await read(), before);
});
