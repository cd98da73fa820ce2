import test from 'ava';
import { startWorld } from '../lab/scenes/world.ts';

const first = (email: { recipients: unknown[] }) => email.recipients[0] as never as Record<string, never>;

test('greylisted, then delivered on the second attempt', async (t) => {
  const world = await startWorld(t);
  const { body } = await world.send({ to: 'greylist@there.invalid' });
  const deferred = await world.when(body.emailId, ({ status }) => status === 'deferred');
  t.is(deferred.recipients[0].attempts, 1);
  t.is(deferred.recipients[0].lastResponse.enhanced, '4.7.1');
  t.is(
    Date.parse(deferred.recipients[0].nextAttemptAt),
    world.clock.now() + 30_000,
    'the first wait is 30 s, the dice in the middle',
  );
  await world.clock.advance('29s');
  t.is(world.mx[0]!.messages.length, 0, 'not before its time');
  await world.clock.advance('1s');
  const email = await world.passUntil(body.emailId, ({ status }) => status === 'delivered');
  t.is(email.recipients[0].attempts, 2);
  t.is(email.recipients[0].nextAttemptAt, null);
  t.deepEqual(
    email.events.map(({ type }: { type: string }) => type),
    ['email.queued', 'email.deferred', 'email.delivered'],
  );
});

test('a 550 bounces with its category, and is not tried again', async (t) => {
  const world = await startWorld(t);
  const { body } = await world.send({
    to: ['unknown@there.invalid', 'full@there.invalid', 'ann@there.invalid'],
  });
  const email = await world.when(body.emailId, ({ status }) => status === 'partially_delivered');
  const [unknown, full] = email.recipients;
  t.is(unknown.status, 'bounced');
  t.like(unknown.bounce, { type: 'hard', category: 'unknown_user', fault: 'recipient' });
  t.regex(unknown.bounce.diagnostic, /^550 5\.1\.1 /);
  t.like(full.bounce, { type: 'soft', category: 'mailbox_full', fault: 'recipient' });
  await world.clock.jump('3d');
  t.is((await world.get(body.emailId)).recipients[0].attempts, 1);
});

test('deferred to its maximum age, a mail expires', async (t) => {
  const settings = { POSTERN_MTA_RETRY: '10m', POSTERN_MTA_MAX_AGE: '25m' };
  const world = await startWorld(t, { settings });
  const { body } = await world.send({ to: 'tempfail@there.invalid' });
  for (const attempts of [1, 2, 3]) {
    await world.when(
      body.emailId,
      (email) => first(email).attempts === attempts && first(email).status === 'deferred',
    );
    await world.clock.advance('10m');
  }
  const email = await world.passUntil(body.emailId, ({ status }) => status === 'expired');
  t.is(email.recipients[0].attempts, 4, 'at 0, 10, 20 and, at last, 25 minutes');
  t.is(email.events.at(-1).type, 'email.expired');
  t.regex(email.events.at(-1).data.diagnostic, /^451 4\.3\.0/);
});

test('what is due while nobody runs is delivered at the next start', async (t) => {
  const world = await startWorld(t);
  const { body } = await world.send({ to: 'greylist@there.invalid' });
  await world.when(body.emailId, ({ status }) => status === 'deferred');
  await world.restart();
  await world.clock.advance('30s');
  await world.passUntil(body.emailId, ({ status }) => status === 'delivered');
  t.pass();
});
