/** Stopping the program while it sends: the conversations have seconds to end, and none is lost. */
import test from 'ava';
import { startWorld } from '#lab/scenes/world.ts';
import { until } from '#lab/until.ts';

test('a server that is stopped during a conversation cuts it short, and delivers at the next start', async (t) => {
  const world = await startWorld(t, { exchangers: [{ script: { rcpt: () => 'hang' } }] });
  const { body } = await world.send({ to: 'ann@there.invalid' });
  await until(() => world.mx[0]!.sessions[0]?.commands.some((command) => command.startsWith('RCPT')), {
    what: 'the conversation to hang',
  });
  const began = performance.now();
  const restarted = world.restart();
  world.mx[0]!.script = {};
  await restarted;
  t.true(performance.now() - began < 60_000, 'long before the session would time out');
  const email = await world.when(body.emailId, ({ status }) => status === 'delivered');
  t.is(email.recipients[0].attempts, 2);
  const { data } = email.events.find(({ type }: { type: string }) => type === 'email.deferred');
  t.is(data.category, 'interrupted');
  t.false(data.possibleDuplicate, 'no message had been sent');
});
