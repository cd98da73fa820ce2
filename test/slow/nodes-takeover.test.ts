/** A delivery belongs to one node: while that lives, however long it takes; to another one soon after it is gone. */
import { setTimeout as sleep } from 'node:timers/promises';
import test from 'ava';
import { kinds } from '#lab/database/databases.ts';
import { sharedSecret, startNode } from '#lab/scenes/nodes.ts';
import { startWorld, type World } from '#lab/scenes/world.ts';
import { until } from '#lab/until.ts';
import { listAttempts } from '#mail/record/rows/emails.ts';

/**
 * In steps, each as long as the lease is renewed in time. The next renewal is timed when the last one has ended, so a slow
 * database needs a clock that goes on, slowly.
 */
async function pass({ clock, db }: World, minutes: number): Promise<void> {
  for (let n = 0; n < 2 * minutes; n++) {
    await clock.advance('30s');
    const isRenewed = async () => {
      const [leasedUntil] = await db('deliveries').pluck('due_at');
      if (Number(leasedUntil) > clock.now() + 90_000) return true;
      await sleep(250);
      await clock.advance('1s');
      return false;
    };
    await until(isRenewed, { what: 'the lease to be renewed' });
  }
}

test('an SMTP session longer than a lease is not taken over by another node', async (t) => {
  const [reached, answer] = [Promise.withResolvers<void>(), Promise.withResolvers<undefined>()];
  const dot = () => {
    reached.resolve();
    return answer.promise;
  };
  const world = await startWorld(t, {
    database: 'postgres',
    settings: sharedSecret,
    exchangers: [{ script: { dot } }],
  });
  t.teardown(() => answer.resolve(undefined));
  await startNode(t, world);

  const { body } = await world.send({ to: 'ann@there.invalid' });
  await reached.promise;
  await pass(world, 8);
  answer.resolve(undefined);
  const { recipients } = await world.when(body.emailId, ({ status }) => status === 'delivered');
  t.is(recipients[0].attempts, 1);
  t.is(world.mx[0]!.messages.length, 1);
});

for (const kind of kinds) {
  test(`${kind}: mail that a dead node was sending is taken over, flagged and sent`, async (t) => {
    const world = await startWorld(t, { database: kind });
    const { db, clock } = world;
    const { body } = await world.send({ to: 'ann@there.invalid' });
    await world.when(body.emailId, ({ status }) => status === 'delivered');
    const leaseEnds = clock.now() + 20_000;
    // As the end of a node of another name leaves it.
    const gone = {
      status: 'sending',
      lease_owner: 'gone',
      due_at: leaseEnds,
      attempts: 0,
      delivered_at: null,
    };
    await db('deliveries').update(gone);
    await db('attempts').delete();
    await clock.advance('15s');
    t.is((await world.get(body.emailId)).status, 'sending', 'as long as the lease holds');
    const { recipients } = await clock.passUntil(
      async () => {
        const email = await world.get(body.emailId);
        return email.status === 'delivered' && email;
      },
      { step: '5s', what: 'another node to take it over' },
    );
    t.is(recipients[0].attempts, 2);
    const [first] = await listAttempts(db, body.emailId);
    t.like(first!.verdict, { category: 'interrupted', possibleDuplicate: true });
  });
}
