/** A long queue waits where it is: nothing is written when it falls due, and nobody else waits for it. */
import test from 'ava';
import { v7 as uuid } from 'uuid';
import { startWorld } from '#lab/scenes/world.ts';
import { until } from '#lab/until.ts';
import { suspend } from '#mail/queue/rows/suspensions.ts';
import { insertRows } from '#platform/database/engine/insert-rows.ts';

const hour = 3_600_000;

test('a server that starts with a long overdue queue sends what it can and leaves the rest unchanged', async (t) => {
  const world = await startWorld(t, { zone: { 'shut.invalid': { MX: ['10 mx9.invalid'] } } });
  const { db, clock } = world;
  const suspension = { reason: 'test', createdAt: clock.now(), until: clock.now() + hour };
  for (const destination of ['shut.invalid', 'there.invalid'])
    await suspend(db, { destination, ...suspension });
  await clock.advance('1s');
  const { body } = await world.send({ to: 'ann@there.invalid' });
  await world.send({ to: 'ann@shut.invalid' });
  await world.stop();
  const row = await db('deliveries').where({ recipient: 'ann@shut.invalid' }).first();
  const older = { created_at: row.created_at - 1000, due_at: row.due_at - 1000 };
  await db.transaction((trx) =>
    insertRows(
      trx,
      'deliveries',
      Array.from({ length: 3000 }, (_, n) => ({
        ...row,
        ...older,
        id: uuid(),
        recipient: `n${n}@shut.invalid`,
      })),
    ),
  );
  await db('suspensions').where({ destination: 'there.invalid' }).delete();
  const queue = () => db('deliveries').where({ domain: 'shut.invalid' }).orderBy('id');
  const before = await queue();
  await world.restart();
  await until(async () => (await world.get(body.emailId)).status === 'delivered', {
    what: 'what can be sent',
  });
  await clock.advance('5s');
  t.deepEqual(await queue(), before);
});
