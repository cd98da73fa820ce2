/** A destination where nothing answers is left alone but for one probe at a time; then its mail goes at once. */
import test from 'ava';
import { startWorld } from '#lab/scenes/world.ts';
import { until } from '#lab/until.ts';

const attempts = async (world: Awaited<ReturnType<typeof startWorld>>) =>
  (await world.db('deliveries').sum('attempts as sum').first())!.sum as number;

test('after five failures one delivery at a time probes the host; when one is answered, all the mail is sent', async (t) => {
  let isDead = true;
  const world = await startWorld(t, {
    exchangers: [{ script: { connect: () => (isDead ? 'close' : undefined) } }],
  });
  for (let n = 0; n < 30; n++) {
    await world.send({ to: `n${n}@there.invalid`, subject: `${n}` });
  }
  // Those that were under way beside each other when the fifth failed may have failed too.
  await until(async () => (await attempts(world)) >= 5, { what: 'the circuit to open' });
  await until(async () => (await world.db('deliveries').where({ status: 'sending' })).length === 0, {
    what: 'what was under way to end',
  });
  const before = await attempts(world);
  t.true(before <= 9, `${before} attempts of 30 deliveries`);
  const waiting = await world.db('deliveries').where({ status: 'queued', attempts: 0 });
  t.true(waiting.length >= 21, 'the others wait in their lane, untried');

  await world.clock.advance('16s');
  await world.clock.passUntil(async () => (await attempts(world)) > before, { what: 'a probe' });
  t.is(await attempts(world), before + 1, 'one');

  isDead = false;
  await world.clock.passUntil(() => world.mx[0]!.messages.length === 30, {
    step: '10s',
    what: 'all the mail to arrive',
  });
  t.pass();
});

test('the retries of a single mail keep to their schedule, circuit or not', async (t) => {
  const world = await startWorld(t, { exchangers: [{ script: { connect: () => 'close' } }] });
  const { body } = await world.send({ to: 'ann@there.invalid' });
  for (const [attempt, wait] of [30, 120, 300, 600, 1200, 2400, 3600].entries()) {
    await world.passUntil(
      body.emailId,
      ({ recipients: [one] }) => one.status === 'deferred' && one.attempts === attempt + 1,
    );
    await world.clock.advance(`${wait}s`);
  }
  const email = await world.passUntil(body.emailId, ({ recipients: [one] }) => one.attempts === 8);
  t.is(email.recipients[0].attempts, 8);
});
