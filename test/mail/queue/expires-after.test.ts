/** Mail with a deadline (`expiresAfter`): attempts until then, none after it, and the reason is shown. */
import test from 'ava';
import { cliOf } from '#lab/cli.ts';
import { startWorld, type World } from '#lab/scenes/world.ts';
import { until } from '#lab/until.ts';
import { applyQueueAction } from '#mail/queue/rows/apply-queue-action.ts';

const minute = 60_000;
const to = 'ann@there.invalid';
const is =
  (wanted: string) =>
  ({ status }: { status: string }) =>
    status === wanted;

/** Lets time pass until the email is in this state, in the steps of its next attempts; at most an hour. */
async function passUntil(world: World, emailId: string, status: string): Promise<void> {
  const { clock } = world;
  const end = clock.now() + 60 * minute;
  while (clock.now() <= end) {
    const email = await world.get(emailId);
    if (email.status === status) return;
    const [{ status: state, nextAttemptAt, attempts }] = email.recipients;
    if (state !== 'sending') await clock.advance(Math.max(Date.parse(nextAttemptAt) - clock.now(), 0) + 50);
    await until(async () => {
      const [recipient] = (await world.get(emailId)).recipients;
      if (recipient.attempts > attempts || recipient.status === status) return true;
      await clock.advance(50);
      return false;
    });
  }
  throw new Error(`the email is not ${status} after an hour`);
}

test('a host that greylists for 15 minutes is tried at least four times in the ten minutes that a mail has', async (t) => {
  const firstAt = new Map<string, number>();
  const attempts: number[] = [];
  let clockNow = () => 0;
  const world = await startWorld(t, {
    exchangers: [
      {
        script: {
          rcpt({ address = '' }) {
            const now = clockNow();
            if (address.startsWith('ann')) attempts.push(now);
            const first = firstAt.get(address) ?? now;
            firstAt.set(address, first);
            return now - first < 15 * minute
              ? '451 4.7.1 Greylisted, please try again in 900 seconds'
              : undefined;
          },
        },
      },
    ],
  });
  clockNow = world.clock.now;
  const acceptedAt = world.clock.now();
  const { emailId } = (await world.send({ to, expiresAfter: 600 })).body;
  await world.when(emailId, is('deferred'));
  t.is((await world.get(emailId)).expiresAt, new Date(acceptedAt + 10 * minute).toISOString());
  await passUntil(world, emailId, 'expired');
  t.true(attempts.length >= 4, `${attempts.length} attempts`);
  await world.clock.jump('20m');
  await world.clock.jump('2h');
  for (const at of attempts) t.true(at - acceptedAt < 10 * minute, `an attempt after ${at - acceptedAt} ms`);
  const email = await world.get(emailId);
  t.is(email.recipients[0].lastResponse.enhanced, '4.7.1');
  t.like(email.events.at(-1), {
    type: 'email.expired',
    data: { reason: 'deadline', category: 'greylisting' },
  });
  const [why] = (await cliOf(t, world).json(`email why ${emailId}`)).recipients;
  t.regex(
    why.why,
    /^It expired after \d+ attempts, at the deadline that the sender set with expiresAfter \(2.*Greylisted/,
  );
});

test('no attempt starts after the deadline, wherever the mail waited', async (t) => {
  const world = await startWorld(t, { exchangers: [{ script: { rcpt: () => '451 4.3.0 later' } }] });
  const { clock, db, mx } = world;
  const send = async (local: string) =>
    (await world.send({ to: `${local}@there.invalid`, expiresAfter: 600 })).body.emailId as string;
  const [deferred, held] = [await send('deferred'), await send('held')];
  for (const id of [deferred, held]) await world.when(id, is('deferred'));
  const request = { reason: 'r', now: clock.now() };
  await applyQueueAction(db, { emailId: held }, { ...request, action: 'hold' });
  const before = mx[0]!.sessions.length;
  await world.stop();
  mx[0]!.script = {};
  await clock.jump('1h');
  await applyQueueAction(db, { emailId: held }, { ...request, action: 'release', now: clock.now() });
  await world.restart();
  await clock.passUntil(async () => {
    const all = await Promise.all([deferred, held].map((id) => world.get(id)));
    return all.every(is('expired'));
  });
  t.is(mx[0]!.sessions.length, before, 'not even a connection');
  const { events } = await world.get(held);
  t.like(events.at(-1), { type: 'email.expired', data: { reason: 'deadline' } });
});
