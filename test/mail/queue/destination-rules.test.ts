/** The operator's rules: a destination that is slowed for a time, and domains whose mail is held or bounced. */
import test from 'ava';
import { cliOf } from '#lab/cli.ts';
import { golden } from '#lab/cli-golden.ts';
import { aSecondLater } from '#lab/scenes/nodes.ts';
import { startWorld, type World } from '#lab/scenes/world.ts';
import { until } from '#lab/until.ts';

const zone = { 'same.invalid': { MX: ['10 mx1.invalid'] }, 'other.invalid': { MX: ['10 mx2.invalid'] } };
const exchangers = [{}, {}];
const isDelivered = ({ status }: { status: string }) => status === 'delivered';

async function nothingUnderWay(world: World): Promise<void> {
  await world.clock.passUntil(
    async () => (await world.db('deliveries').where({ status: 'sending' })).length <= 1,
    { step: 0 },
  );
}

/** A look that was under way when the clock moved sees it only at the next one. */
const arrives = (world: World, count: number) =>
  world.clock.passUntil(() => world.mx[0]!.messages.length >= count, {
    step: 100,
    what: () => `${count} mails`,
  });

test('slow: a destination gets so many mails a minute, whichever of its domains is named, until its time is up', async (t) => {
  const world = await startWorld(t, { zone, exchangers });
  const { json, refusal } = cliOf(t, world);
  const mx = world.mx[0]!;
  // No mail has gone to this domain: its hosts are looked up.
  t.like(await json('queue slow same.invalid --per-minute 12 --for 10m'), {
    destination: 'mx1.invalid',
    rule: 'slow',
    perMinute: 12,
    reason: 'on the command line',
  });
  await aSecondLater(world);
  await world.send({ to: 'first@there.invalid' });
  await mx.received(1);
  const ids: string[] = [];
  for (let n = 0; n < 4; n++)
    ids.push((await world.send({ to: `${n}@there.invalid`, subject: `${n}` })).body.emailId);
  for (let n = 2; n <= 3; n++) {
    await world.clock.advance('4s');
    await nothingUnderWay(world);
    t.is(mx.messages.length, n - 1);
    await world.clock.advance('1s');
    await arrives(world, n);
    await nothingUnderWay(world);
  }
  const [row] = await json('queue summary');
  t.regex(row.condition.text, /^slowed to 12 a minute until 2.*: on the command line$/);
  const why = (await json('email why', ids[3]!)).recipients[0].why;
  t.regex(
    why,
    /operator limited mx1\.invalid at 2.* to 12 mails a minute \("on the command line"\), until 2/,
  );
  t.like((await json('queue rules'))[0], { destination: 'mx1.invalid', rule: 'slow', perMinute: 12 });
  t.like(await json('queue resume there.invalid --reason enough'), {
    resumed: 'there.invalid',
    suspension: null,
    limit: { perMinute: 12 },
  });
  t.regex(await refusal(1, 'queue resume there.invalid --reason x'), /neither suspended nor slowed/);
  t.regex(await refusal(2, 'queue slow there.invalid --per-minute 0'), /"0" is not a number of mails/);
  await aSecondLater(world);
  await arrives(world, 5);
  for (const id of ids) await world.when(id, isDelivered);
  t.deepEqual(await json('queue rules'), []);
});

test('rule: mail to a held domain is held without a word to its hosts, and mail to a bounced one bounces', async (t) => {
  const world = await startWorld(t, { zone, exchangers });
  const cli = cliOf(t, world);
  const { json, refusal } = cli;
  await json('queue rule there.invalid hold --reason', 'a wrong list');
  await json('queue rule other.invalid bounce --reason', 'mistyped');
  await aSecondLater(world);
  const send = async (to: string) => (await world.send({ to, subject: to })).body.emailId as string;
  const [held, bounced, free] = [
    await send('ann@there.invalid'),
    await send('bob@other.invalid'),
    await send('cat@same.invalid'),
  ];
  await world.when(free, isDelivered);
  const inState = async (id: string, state: string) =>
    world.clock.passUntil(async () => (await world.get(id)).status === state, {
      what: () => `the mail to be ${state}`,
    });
  await inState(held, 'held');
  await inState(bounced, 'bounced');
  t.is(world.mx[0]!.messages.length, 1);
  t.is(world.mx[1]!.sessions.length, 0);
  const { recipients } = await world.get(bounced);
  t.like(recipients[0].bounce, {
    type: 'soft',
    category: 'withheld',
    diagnostic: 'the operator bounces mail to other.invalid: mistyped',
  });
  t.deepEqual(await json('suppression list'), [], 'the address is not to blame');
  const rows: { domains: string[]; condition: { text: string } }[] = await json('queue summary');
  t.is(
    rows.find(({ domains }) => domains[0] === 'there.invalid')?.condition.text,
    'mail to there.invalid is held: a wrong list',
  );

  t.like(await json('queue rule there.invalid none'), { removed: { rule: 'hold', reason: 'a wrong list' } });
  t.regex(await refusal(1, 'queue rule there.invalid none'), /there is no rule for there\.invalid/);
  await aSecondLater(world);
  t.is((await world.get(held)).status, 'held', 'what is held stays held');
  await json('queue release --domain there.invalid --reason right');
  await inState(held, 'delivered');
  await json('queue slow there.invalid --per-minute 5 --for 2h --reason', 'they asked us to');
  await golden(t, cli, 'queue-rules');
});

test('trace: the transcript of each attempt at a destination, as it ends', async (t) => {
  const world = await startWorld(t, { zone, exchangers });
  const { json, cli, onTerminal, start } = cliOf(t, world);
  const send = async (to: string) => (await world.send({ to, subject: to })).body.emailId as string;
  await world.when(await send('first@there.invalid'), isDelivered);
  const past = (await cli('queue trace mx1.invalid --last 5 --once')).stdout.toString();
  t.regex(past, /^attempt\tfirst@there\.invalid\t1\t2.*\tdelivered\tmx1\.invalid\t250 /);
  t.regex(past, /^transcript\tfirst@there\.invalid\t1\t\d+\t>\tRCPT TO:<first@there\.invalid>/m);
  await golden(t, { cli, onTerminal }, 'queue-trace', [
    [/\d+ ms/g, '1 ms'],
    [/\t1\t\d+\t([<>*])/g, '\t1\t1\t$1'],
    [/\]:\d+/g, ']:25'],
    [/FROM:<[^<>\s]+@/g, 'FROM:<return-path@'],
    [/SIZE=\d+/g, 'SIZE=1000'],
    [/[\d,.]+ (bytes|bytes)/g, '1000 $1'],
  ]);
  const live = start('queue', 'trace', 'same.invalid', '--json');
  const other = await send('elsewhere@other.invalid');
  const bad = await send('unknown@same.invalid');
  await world.when(other, isDelivered);
  await world.when(bad, ({ status }) => status === 'bounced');
  await until(() => live.stdout().includes('\n'), { what: () => `a traced attempt; ${live.stderr()}` });
  const { stdout } = await live.exit();
  const traced = stdout
    .toString()
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line));
  t.is(traced.length, 1);
  t.like(traced[0], { emailId: bad, recipient: 'unknown@same.invalid', outcome: 'bounced' });
  t.deepEqual(await json('queue rules'), []);
});
