/** What attempts leave behind is packed; rows of older versions, which are not, read the same. */
import test from 'ava';
import { cliOf } from '#lab/cli.ts';
import { kinds } from '#lab/database/databases.ts';
import { startWorld, type World } from '#lab/scenes/world.ts';
import { listQueue } from '#mail/queue/rows/queue-view.ts';
import { findEmail, listAttempts } from '#mail/record/rows/emails.ts';
import { readEvents } from '#mail/record/rows/read-events.ts';
import { unpackJson } from '#platform/database/engine/packed-json.ts';
import type { Reply } from '#platform/values/glossary.ts';

/** Writes all rows as versions before 024-packed wrote them. */
async function unpackAll({ db }: World): Promise<number> {
  let count = 0;
  const each = async (table: string, columnsOf: (value: never, row: { data: string }) => object) => {
    for (const row of await db(table).whereNotNull('packed')) {
      count++;
      const columns = columnsOf(unpackJson(row.packed) as never, row);
      const texts = Object.entries(columns).map(([name, value]) => [name, value && JSON.stringify(value)]);
      await db(table)
        .where({ id: row.id })
        .update({ ...Object.fromEntries(texts), packed: null });
    }
  };
  await each('attempts', ({ outcome: verdict, ...rest }: { outcome: object }) => ({ verdict, ...rest }));
  await each('deliveries', ([last_reply, mx, tls]: [Reply, object, object]) => ({ last_reply, mx, tls }));
  await each('events', ([response, mx, tls]: [Reply, object, object], row) => {
    const { attempt, ...others } = JSON.parse(row.data);
    return { data: { attempt, response, mx, tls, ...others } };
  });
  return count;
}

for (const database of kinds) {
  test(`${database}: packed rows and those of older versions read the same`, async (t) => {
    const world = await startWorld(t, { database });
    const { cli } = cliOf(t, world);
    const to = ['ann@there.invalid', 'unknown@there.invalid', 'tempfail@there.invalid'];
    const { body } = await world.send({ to });
    await world.when(body.emailId, ({ recipients }) =>
      ['delivered', 'bounced', 'deferred'].every((status, at) => recipients[at].status === status),
    );
    const all = async () => ({
      get: await world.get(body.emailId),
      show: (await cli('email show', body.emailId)).stdout.toString(),
      why: (await cli('email why', body.emailId)).stdout.toString(),
      email: await findEmail(world.db, body.emailId, null),
      attempts: await listAttempts(world.db, body.emailId),
      feed: await readEvents(world.db, { orgId: null, after: 0, limit: 100 }),
      queue: await Promise.all(
        (['bounced', 'deferred'] as const).map((status) => listQueue(world.db, { status, limit: 10 }, 0)),
      ),
    });
    const packed = await all();
    t.like(packed.get.recipients[0], { lastResponse: { code: 250 }, tls: { protocol: 'TLSv1.3' } });
    t.like(packed.queue[0]![0], { lastReply: { code: 550 } });
    t.true(packed.attempts[0]!.transcript.some(({ text }) => text.startsWith('MAIL FROM')));
    const [event] = packed.feed.events.filter(({ type }) => type === 'email.bounced');
    t.deepEqual(Object.keys(event!.data), ['attempt', 'response', 'mx', 'tls', 'bounce']);
    t.is(await unpackAll(world), 3 + 2 + 3, 'what waits is not packed: the queue is searched by its replies');
    t.deepEqual(await all(), packed);
  });
}

test('the dictionary is that of the rows in databases', (t) => {
  // Packed by the first version. If this fails, the dictionary was changed: give the new one another number, and keep this one.
  const golden = 'ASPPZyYRlVWovtMryUgtStXLzCtLzMlMQfWrJcgsIz1UP4OybywA';
  t.deepEqual(unpackJson(Buffer.from(golden, 'base64')), [
    { code: 250, enhanced: '2.0.0', text: 'Ok: queued as 4Xyz' },
    { host: 'mx.there.invalid', address: '192.0.2.1', port: 25 },
    null,
  ]);
  t.throws(() => unpackJson(Buffer.of(2, 1, 2, 3)), { message: /unknown dictionary 2/ });
});
