/**
 * Copies for several recipients, on both databases: common bytes are stored once, every attempt sends what `email source`
 * prints, and the base is deleted together with the bytes of its email.
 */
import test from 'ava';
import { cliOf } from '#lab/cli.ts';
import { verifyDkim } from '#lab/dkim.ts';
import { partOf } from '#lab/mail.ts';
import { startWorld, type World } from '#lab/scenes/world.ts';
import { forgetEmails } from '#mail/record/rows/forget-emails.ts';
import { removeMessages } from '#mail/record/rows/retention.ts';

const links = (count: number) =>
  Array.from(
    { length: count },
    (_, n) =>
      `<p>Number <a href="https://app.invalid/${n}?from=mail">${n}</a>: the same for all of them.</p>\r\n`,
  ).join('');
const othersOf = (count: number) =>
  ['bob', `greylist+${count}`, 'carol'].map((name) => `${name}@there.invalid`);
const tracking = { openTracking: true, clickTracking: true };
const day = 86_400_000;

/** The number of bytes in each row of a table. */
const stored = async (world: World, table: string): Promise<number[]> =>
  (await world.db(table).select('raw')).map(({ raw }) => raw.length);

const delivered = (world: World, address: string) =>
  world.mx[0]!.messages.find(({ to }) => to[0] === address)!.raw;

test('common bytes of copies are stored once, and email source shows what was sent', async (t) => {
  const world = await startWorld(t);
  const { cli } = cliOf(t, world);
  // The first copy is the base of the others, even if it is not sent.
  await cli('suppression add ann@there.invalid --org', (await world.db('organizations').first('id')).id);
  const send = async (count: number) => {
    const to = ['ann@there.invalid', ...othersOf(count)];
    const { body } = await world.send({ to, html: `<body>${links(count)}</body>`, tracking });
    await world.when(body.emailId, ({ recipients }) => recipients[2].status === 'deferred');
    return body.emailId as string;
  };
  // The large message is read again for its second attempt; the small one is read together with its delivery.
  for (const [count, max] of [
    [1001, 1.8],
    [40, 2.2],
  ] as const) {
    const others = othersOf(count);
    const emailId = await send(count);
    await world.clock.jump('10m');
    const email = await world.passUntil(emailId, ({ recipients }) =>
      recipients.slice(1).every(({ status }: { status: string }) => status === 'delivered'),
    );
    const raws = others.map((address) => delivered(world, address));
    const total = [...(await stored(world, 'message_bases')), ...(await stored(world, 'messages'))];
    const whole = raws[0]!.length;
    t.true(total.reduce((sum, length) => sum + length, 0) < max * whole, `${total} of ${whole}`);
    t.is(new Set(raws.map((raw) => raw.toString('latin1'))).size, 3);
    for (const [at, address] of others.entries()) {
      t.deepEqual((await cli('email source', emailId, '--to', address)).stdout, raws[at]!, address);
      t.is((await verifyDkim(raws[at]!, world.dns))[0]?.result, 'pass');
      const tracked = partOf(raws[at]!, 'text/html').match(/href="[^"]+\/t\/c\//g)!.length;
      t.is(tracked, Math.min(count, 1000));
    }
    const queued = email.events.find(({ type }: { type: string }) => type === 'email.queued');
    t.is(queued.data.trackedLinks, count > 1000 ? 1000 : undefined);
    if (count > 1000) {
      t.regex((await cli('logs --id', emailId)).stdout.toString(), /only the first 1000 links are tracked/);
      world.mx[0]!.messages.length = 0;
      await removeMessages(world.db, () => Date.now() + 2 * day, 0)();
      t.deepEqual(await stored(world, 'message_bases'), []);
      t.deepEqual(await stored(world, 'messages'), []);
      const gone = await cli('email source', emailId, '--to', others[0]!);
      t.regex(gone.stderr, /has been deleted/);
    }
  }
  t.is((await stored(world, 'message_bases')).length, 1);
  await forgetEmails(world.db, () => Date.now() + 4 * day, 3 * day)();
  t.deepEqual([await stored(world, 'message_bases'), await stored(world, 'messages')], [[], []]);
});
