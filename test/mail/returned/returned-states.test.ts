/** Bounces of mail that is not delivered, or not yet as far as we know; and addresses that are not ours. */
import test from 'ava';
import { goldenMail, startReturns, typesOf } from '#lab/scenes/returns.ts';
import { until } from '#lab/until.ts';
import { createReturnPath } from '#mail/returned/return-path.ts';
import { loadSecrets } from '#platform/base/secrets.ts';

test('a bounce of mail that may have arrived ends its retries; other mail that waits goes on', async (t) => {
  const world = await startReturns(t, {});
  const isDeferred = ({ status }: { status: string }) => status === 'deferred';
  const [lost, refused] = await Promise.all(
    ['drop-after-dot@there.invalid', 'tempfail@there.invalid'].map(async (to) => {
      const { emailId } = (await world.send({ to })).body;
      await world.when(emailId, isDeferred);
      await world.comesBack(await world.returnPath(emailId), goldenMail('qmail-remote', undefined, to));
      return world.get(emailId);
    }),
  );
  t.like(lost.recipients[0], { status: 'bounced', nextAttemptAt: null, deliveredAt: null });
  t.is(refused.status, 'deferred');
  t.truthy(refused.recipients[0].nextAttemptAt);
  const taken = world.mx[0]!.messages.length;
  await world.clock.advance('1h');
  await world.passUntil(refused.emailId, ({ recipients }) => recipients[0].attempts > 1);
  t.is(world.mx[0]!.messages.length, taken, 'the one that may have arrived is not sent again');
});

test('a bounce that comes before our outcome is stored waits for it', async (t) => {
  const returned: Promise<unknown>[] = [];
  const world = await startReturns(t, {
    exchangers: [
      {
        script: {
          async dot({ message }) {
            // Before the 250 of the mail that it returns.
            returned.push(world.comesBack(message!.from, goldenMail('postfix-unknown-user')).catch(String));
            await until(async () => (await world.db('deliveries').where({ status: 'sending' })).length === 1);
            return undefined;
          },
        },
      },
    ],
  });
  const { emailId } = (await world.send({ to: 'ann@there.invalid' })).body;
  const email = await world.when(emailId, ({ status }) => status === 'bounced');
  t.deepEqual(typesOf(email), ['email.queued', 'email.delivered', 'email.bounced']);
  t.deepEqual(await Promise.all(returned), [undefined]);
});

test('mail to an address that is not ours is refused, and not relayed', async (t) => {
  const world = await startReturns(t);
  const raw = goldenMail('letter-reply');
  await t.throwsAsync(world.comesBack('ann@example.org', raw), { message: /550 5\.7\.1/ });
  await t.throwsAsync(world.comesBack('ann@postern.invalid', raw), { message: /550 5\.1\.1/ });
  const unsent = createReturnPath(
    loadSecrets(world.config),
    'postern.invalid',
  )('01a1fde4-3a44-750e-831d-9eda6307a7e9');
  await t.throwsAsync(world.comesBack(unsent, raw), { message: /550 5\.1\.1/ }, 'a delivery that is gone');
});
