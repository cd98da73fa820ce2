/**
 * PostgreSQL goes away under load and comes back: while it is away a send is a 500 and nothing is charged; afterwards
 * everything goes on by itself, nothing is lost, and a copy too many is flagged.
 */
import test from 'ava';
import { systemClock } from '../../src/base/clock.ts';
import { openDatabase } from '../../src/db/engine/open.ts';
import { assertPromises, drained } from '../lab/crash-scene.ts';
import { startFreezableProxy } from '../lab/database/freezable-proxy.ts';
import { startPostgres } from '../lab/database/postgres.ts';
import { temporaryDirectory } from '../lab/evidence.ts';
import { startWorld, type World } from '../lab/scenes/world.ts';
import { until } from '../lab/until.ts';

/** Sends one after the other until it is told to end; the recipients by what was answered. */
function pour(world: World, name: string) {
  const answers = new Map<number, string[]>();
  let isOver = false;
  const work = async (sender: number) => {
    for (let number = 0; !isOver; number++) {
      const to = `${name}s${sender}n${number}@there.invalid`;
      const { status } = await world.send({ to, subject: to });
      answers.set(status, [...(answers.get(status) ?? []), to]);
      if (status !== 200) await new Promise((resolve) => setTimeout(resolve, 20));
    }
  };
  const working = Promise.all(Array.from({ length: 6 }, (_, sender) => work(sender)));
  const count = (status: number) => answers.get(status)?.length ?? 0;
  return {
    answers,
    count,
    /** So many more than there are now. */
    more(status: number, number: number) {
      const before = count(status);
      return until(() => count(status) >= before + number, {
        what: () =>
          `more answers ${status}; had ${[...answers].map(([each, list]) => `${each}: ${list.length}`)}`,
      });
    },
    async end() {
      isOver = true;
      await working;
    },
  };
}

/** What was being claimed when the connection was lost is free again when nobody has renewed its lease for half its time. */
const freedMs = 150_000;

const overrides = { clock: systemClock, databaseTimeoutMs: 4_000 };
const settings = { POSTERN_MTA_RETRY: '1s' };

test.serial('killed and started again, twice', async (t) => {
  t.timeout(300_000);
  const postgres = await startPostgres(await temporaryDirectory(t));
  t.teardown(postgres.stop);
  const world = await startWorld(t, { databaseUrl: postgres.url, overrides, settings });
  const load = pour(world, 'k');
  for (let round = 0; round < 2; round++) {
    await load.more(200, 30);
    await postgres.end('SIGQUIT');
    await load.more(500, 20);
    await postgres.start();
  }
  await load.more(200, 30);
  await load.end();
  t.deepEqual([...load.answers.keys()].sort(), [200, 500]);
  const around = { mx: world.mx[0]!, db: world.db };
  await drained(around, load.answers.get(200)!, freedMs);
  await assertPromises(t, around);
  const kept = new Set(await world.db('deliveries').pluck('recipient'));
  const charged = load.answers.get(500)!.filter((to) => kept.has(to));
  t.deepEqual(charged, [], 'nothing is kept of what was answered 500');
});

test.serial('silent, though its connections stand', async (t) => {
  t.timeout(300_000);
  const postgres = await startPostgres(await temporaryDirectory(t));
  t.teardown(postgres.stop);
  const proxy = await startFreezableProxy(postgres.url);
  t.teardown(proxy.close);
  const world = await startWorld(t, { databaseUrl: proxy.url, overrides, settings });
  const load = pour(world, 'c');
  await load.more(200, 30);
  proxy.freeze();
  await load.more(500, 10);
  proxy.thaw();
  await load.more(200, 30);
  await load.end();
  // The way that the test itself has to the database was cut as well.
  const db = await openDatabase({ dataDir: world.config.dataDir, databaseUrl: postgres.url });
  t.teardown(() => db.destroy());
  const around = { mx: world.mx[0]!, db };
  await drained(around, load.answers.get(200)!, freedMs);
  await assertPromises(t, around);
});
