/** Which orders are composed on the calling thread. */
import test from 'ava';
import { composeAlone } from '#mail/compose/compose-alone.ts';
import type { ComposeOrder } from '#mail/compose/compose-order.ts';
import type { Composed } from '#mail/compose/recipient-copies.ts';

const order = (length = 0) =>
  ({
    fields: { to: [], text: 'x'.repeat(length), attachments: [] },
    tracking: { opens: false, clicks: false, deliveryIds: [] },
    signer: {},
  }) as unknown as ComposeOrder;

function recorded() {
  const where: string[] = [];
  const time = { ms: 0 };
  const composed = {} as Composed;
  const compose = composeAlone(
    async () => {
      where.push('thread');
      return composed;
    },
    () => {
      where.push('here');
      return composed;
    },
    () => time.ms,
  );
  return { where, compose, time };
}

test('a mail that comes alone is composed here, those that follow it closely on threads', async (t) => {
  const { where, compose, time } = recorded();
  await Promise.all([compose(order()), compose(order()), compose(order())]);
  t.deepEqual(where, ['here', 'thread', 'thread']);
  // Longer than the gap in a burst.
  time.ms += 5;
  await compose(order());
  t.is(where.at(-1), 'here');
});

test('a mail that takes long is composed on a thread, even alone', async (t) => {
  const { where, compose } = recorded();
  await compose(order(100_000));
  t.deepEqual(where, ['thread']);
});

test('an error while a mail is composed here is the answer to its order', async (t) => {
  const compose = composeAlone(
    async () => ({}) as Composed,
    () => {
      throw new Error('broken');
    },
  );
  await t.throwsAsync(compose(order()), { message: 'broken' });
});
