import { setTimeout as sleep } from 'node:timers/promises';
import test from 'ava';
import { type kinds, oneKind } from '#lab/database/databases.ts';
import { startWorld, type World } from '#lab/scenes/world.ts';
import { until } from '#lab/until.ts';

const minute = 60_000;

/** An exchanger that takes a recipient's mail `delay` after it was first offered, as postgrey does. */
async function greylistingWorld(t: Parameters<typeof startWorld>[0], database: (typeof kinds)[number]) {
  const world = await startWorld(t, { database });
  const firstSeen = new Map<string, number>();
  world.mx[0]!.script = {
    rcpt({ address = '' }) {
      const now = world.clock.now();
      const first = firstSeen.get(address) ?? now;
      firstSeen.set(address, first);
      return now - first < 5 * minute ? '450 4.2.0 Greylisted, please come again' : undefined;
    },
  };
  return world;
}

/** Sends a mail and turns the clock from one attempt to the next; answers how many attempts it took, and how long. */
async function deliver(world: World, to: string): Promise<{ attempts: number; age: number }> {
  const sentAt = world.clock.now();
  const { body } = await world.send({ to });
  for (let attempts = 1; ; attempts++) {
    const email = await until(async () => {
      const { recipients, ...rest } = await world.get(body.emailId);
      const isOver = rest.status !== 'sending' && rest.status !== 'queued';
      if (recipients[0].attempts === attempts && isOver) return { recipients, ...rest };
      // The timer of the next attempt may be set after the clock has reached it.
      await sleep(100);
      await world.clock.advance(100);
      return false;
    });
    if (email.status !== 'deferred') return { attempts, age: world.clock.now() - sentAt };
    await world.clock.advance(Date.parse(email.recipients[0].nextAttemptAt) - world.clock.now());
  }
}

test('the second mail to a greylisting host needs one attempt fewer, the third two', async (t) => {
  const world = await greylistingWorld(t, oneKind);
  const attempts: number[] = [];
  for (const name of ['ann', 'ben', 'cleo']) {
    attempts.push((await deliver(world, `${name}@there.invalid`)).attempts);
  }
  t.deepEqual(attempts, [4, 3, 2]);
  await world.restart();
  const last = await deliver(world, 'dora@there.invalid');
  t.is(last.attempts, 2, 'it is known over a restart');
  t.true(last.age >= 5 * minute && last.age < 6 * minute, `${last.age} ms`);
});

// Waits for the reply rules that read hints (Verdict.retryAfterMs).
test('a time that the reply names is waited for', async (t) => {
  const world = await startWorld(t);
  world.mx[0]!.script = {
    rcpt: ({ attempt }) => (attempt === 1 ? '450 4.2.0 Greylisted, try again in 300 seconds' : undefined),
  };
  const sentAt = world.clock.now();
  const { body } = await world.send({ to: 'ann@there.invalid' });
  const email = await world.when(body.emailId, ({ status }) => status === 'deferred');
  const wait = Date.parse(email.recipients[0].nextAttemptAt) - sentAt;
  t.true(wait >= 300_000 && wait <= 330_000, `${wait} ms`);
});
