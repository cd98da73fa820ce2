/** POSTERN_MTA_SOURCES, as the receiving host sees it. */
import test from 'ava';
import { startWorld, type World } from '#lab/scenes/world.ts';

const two = { 'one.invalid': { MX: ['10 mx1.invalid'] }, 'two.invalid': { MX: ['10 mx2.invalid'] } };

async function deliver(world: World, to: string) {
  const { body } = await world.send({ to });
  return world.when(body.emailId, ({ status }) => status === 'delivered');
}

/** Who talked to the exchanger, and what they called themselves. */
function callers(world: World, mx: number) {
  return world.mx[mx]!.sessions.map(({ from, commands }) => [from, commands[0]]);
}

test('mail leaves from the source addresses in turn, each under its own name', async (t) => {
  const world = await startWorld(t, {
    exchangers: [{}, {}],
    zone: two,
    settings: { POSTERN_MTA_SOURCES: '127.0.0.21=out1.invalid 127.0.0.22=out2.invalid' },
  });
  // Two hosts, so that the second mail needs a connection of its own.
  await deliver(world, 'ann@one.invalid');
  await deliver(world, 'ann@two.invalid');
  t.deepEqual(callers(world, 0), [['127.0.0.21', 'EHLO out1.invalid']]);
  t.deepEqual(callers(world, 1), [['127.0.0.22', 'EHLO out2.invalid']]);
});

test('a source address that this machine does not have delays nothing', async (t) => {
  const world = await startWorld(t, {
    exchangers: [{}, {}],
    zone: two,
    settings: { POSTERN_MTA_SOURCES: '203.0.113.9=gone.invalid, 127.0.0.22' },
  });
  await deliver(world, 'ann@one.invalid');
  const email = await deliver(world, 'ann@two.invalid');
  t.is(email.recipients[0].attempts, 1);
  t.deepEqual(
    [...callers(world, 0), ...callers(world, 1)],
    [
      ['127.0.0.22', 'EHLO postern.invalid'],
      ['127.0.0.22', 'EHLO postern.invalid'],
    ],
  );
});

test('a host of a family without a source address is not called, and the mail says why it waits', async (t) => {
  const world = await startWorld(t, { settings: { POSTERN_MTA_SOURCES: '::ffff:127.0.0.21' } });
  const { body } = await world.send({ to: 'ann@there.invalid' });
  const email = await world.when(body.emailId, ({ status }) => status === 'deferred');
  t.regex(
    JSON.stringify(email.events),
    /127\.0\.0\.2 is of a family that POSTERN_MTA_SOURCES has no address for/,
  );
  t.is(world.mx[0]!.sessions.length, 0);
});
