/** A suspended destination gets nothing until it is resumed, or its time is up; everything else goes on. */
import test from 'ava';
import { cliOf } from '#lab/cli.ts';
import { aSecondLater } from '#lab/scenes/nodes.ts';
import { startWorld, type World } from '#lab/scenes/world.ts';
import { until } from '#lab/until.ts';

/** They are due, and nobody has them. */
const waiting = ({ db, clock }: World, count: number) =>
  until(
    async () =>
      (await db('deliveries').where({ status: 'queued' }).where('due_at', '<=', clock.now())).length ===
      count,
    { what: `${count} deliveries to wait` },
  );

const zone = { 'other.invalid': { MX: ['10 mx2.invalid'] }, 'same.invalid': { MX: ['10 mx1.invalid'] } };
const exchangers = [{}, {}];
const isDelivered = ({ status }: { status: string }) => status === 'delivered';

test('a suspended destination gets nothing until it is resumed', async (t) => {
  const world = await startWorld(t, { zone, exchangers });
  const { json } = cliOf(t, world);
  const suspended = await json('queue suspend there.invalid --reason', 'they asked us to wait');
  t.is(Date.parse(suspended.until) - Date.parse(suspended.createdAt), 3_600_000, 'an hour by default');
  await aSecondLater(world);
  const { emailId } = (await world.send({ to: 'ann@there.invalid' })).body;
  const others = await Promise.all(
    ['ann@same.invalid', 'ann@other.invalid'].map((to) => world.send({ to, subject: to })),
  );
  for (const { body } of others) await world.when(body.emailId, isDelivered);
  await waiting(world, 1);
  await world.clock.advance('10m');
  const email = await world.get(emailId);
  t.true(['queued', 'deferred'].includes(email.status));
  t.is(email.recipients[0].attempts, 0, 'nothing is tried');
  t.true(
    Date.parse(email.recipients[0].nextAttemptAt) <= world.clock.now(),
    'due since then, not at its end',
  );
  const [why] = (await json(`email why ${emailId}`)).recipients;
  t.regex(why.why, /waits because the operator suspended there\.invalid .*"they asked us to wait"/);
  const [line] = await json('queue summary');
  t.regex(line.condition.text, /^there\.invalid suspended until 2.*: they asked us to wait/);

  await json('queue resume there.invalid --reason', 'they are well');
  await aSecondLater(world);
  await world.passUntil(emailId, isDelivered);
});

test('a suspended destination gets nothing until its time is up', async (t) => {
  const world = await startWorld(t, { zone, exchangers });
  const { json } = cliOf(t, world);
  await json('queue suspend mx1.invalid --for 30m --reason maintenance');
  await aSecondLater(world);
  const ids = await Promise.all(
    ['ann@there.invalid', 'ann@same.invalid'].map(
      async (to) => (await world.send({ to, subject: to })).body.emailId as string,
    ),
  );
  await waiting(world, 2);
  await world.clock.advance('29m');
  t.is(world.mx[0]!.messages.length, 0, 'none of the domains that it serves');
  await world.clock.advance('2m');
  for (const id of ids) await world.passUntil(id, isDelivered);
});
