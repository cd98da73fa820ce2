/** One mail by itself, counted in calls of the driver, each of which wakes threads or goes over the network. */
import test from 'ava';
import { kinds, nameOf } from '#lab/database/databases.ts';
import { countStatements } from '#lab/database/statements.ts';
import { startWorld } from '#lab/scenes/world.ts';
import { until } from '#lab/until.ts';

/** The statements that write, and those that begin and end a transaction, by their first words. */
const expected = {
  sqlite: { 'BEGIN IMMEDIATE': 1, 'insert into': 2, COMMIT: 1 },
  postgres: { 'BEGIN;': 2, 'with write0': 2, 'update deliveries': 1, 'COMMIT;': 2 },
};

for (const kind of kinds) {
  test(`${kind}: a mail is accepted in one transaction and one write, and its outcome is another`, async (t) => {
    const world = await startWorld(t, { database: kind });
    const { db, config } = world;
    const recorded = async (count: number) => {
      const [row] = await db('attempts').count('* as count');
      return Number(row!.count) === count;
    };
    await world.send({ to: 'first@there.invalid' });
    await until(() => recorded(1));
    const name = nameOf({ url: config.databaseUrl }, config.dataDir);
    const counts = await countStatements(name, async () => {
      await world.send({ to: 'second@there.invalid' });
      await until(() => recorded(2));
    });
    const writes: Record<string, number> = {};
    for (const [sql, count] of counts) {
      const words = /^\s*(BEGIN( IMMEDIATE|;)|COMMIT;?|with write0|insert into|update \w+)/.exec(sql)?.[1];
      if (words) writes[words] = (writes[words] ?? 0) + count;
    }
    t.deepEqual(writes, expected[kind]);
  });
}
