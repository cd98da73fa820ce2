import test from 'ava';
import { startWorld } from '#lab/scenes/world.ts';

test('what is due while nobody runs is delivered at the next start', async (t) => {
  const world = await startWorld(t);
  const { body } = await world.send({ to: 'greylist@there.invalid' });
  await world.when(body.emailId, ({ status }) => status === 'deferred');
  await world.restart();
  await world.clock.advance('30s');
  await world.passUntil(body.emailId, ({ status }) => status === 'delivered');
  t.pass();
});
