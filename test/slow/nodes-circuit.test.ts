/** Nothing answers at a destination: what one node finds out all know, one probes at a time, and one answer is enough. */
import test, { type ExecutionContext } from 'ava';
import { settleAll, sharedSecret, startNode, tickAll } from '#lab/scenes/nodes.ts';
import { startWorld, type World } from '#lab/scenes/world.ts';
import { until } from '#lab/until.ts';

const attempts = async ({ db }: World) =>
  Number((await db('deliveries').sum('attempts as sum').first())!.sum);

const circuits = async ({ db }: World): Promise<number[]> => {
  const states: string[] = await db('destinations').pluck('state');
  return states.map((state) => JSON.parse(state).circuit?.failures ?? 0);
};

async function startDead(t: ExecutionContext) {
  let isDead = true;
  const world = await startWorld(t, {
    database: 'postgres',
    settings: sharedSecret,
    exchangers: [{ script: { connect: () => (isDead ? 'close' : undefined) } }],
  });
  const others = [await startNode(t, world), await startNode(t, world)];
  await settleAll(world, 3);
  const urls = [world.url(), ...others.map(({ url }) => url)];
  let sent = 0;
  const send = async (n: number) => {
    sent += 1;
    const { body } = await world.at(urls[n]!).send({ to: `n${sent}@there.invalid`, subject: `${sent}` });
    return body.emailId as string;
  };
  /** What was under way has ended, and all have heard of it. */
  const calm = async () => {
    await until(async () => (await world.db('deliveries').where({ status: 'sending' })).length === 0, {
      what: 'what was under way to end',
    });
    for (let n = 0; n < 3; n++) await tickAll(world, 3);
  };
  return { world, send, calm, revive: () => (isDead = false) };
}

test('a circuit that is open on one node is open on all; one answer anywhere closes it for all', async (t) => {
  const { world, send, calm, revive } = await startDead(t);
  // All by one node; whoever has no share of so few passes them on.
  for (let n = 0; n < 8; n++) await send(0);
  await until(async () => (await attempts(world)) >= 5, { what: 'five failures' });
  await calm();
  await until(
    async () => {
      await tickAll(world, 3);
      return (await circuits(world)).some((failures) => failures >= 5);
    },
    { what: 'a circuit to open' },
  );
  await calm();
  const before = await attempts(world);

  // Whoever takes it knows.
  const ids = [await send(0), await send(1), await send(2)];
  for (const id of ids) {
    const { recipients } = await world.get(id);
    t.is(recipients[0].attempts, 0, 'no attempt of its own was needed');
  }
  const open = await circuits(world);
  t.is(new Set(open).size, 1, `they agree: ${open}`);

  // Half a minute: the probe after fifteen seconds, and one that is due by its own schedule.
  for (let n = 0; n < 30; n++) await tickAll(world, 3);
  await calm();
  const probes = (await attempts(world)) - before;
  t.true(probes >= 1 && probes <= 4, `${probes} probes of three nodes in half a minute`);

  revive();
  await until(
    async () => {
      await tickAll(world, 3);
      return world.mx[0]!.messages.length === 11;
    },
    { what: () => `all the mail; ${world.mx[0]!.messages.length} have come` },
  );
  await calm();
  t.true(
    (await circuits(world)).every((failures) => failures === 0),
    'closed everywhere',
  );
});
