/**
 * Mail that ends without an attempt names what held it, and mail of a short deadline gets more than one try. From bug reports
 * against queues whose mail "failed" while it had only waited, and of login codes that were tried once.
 */
import test, { type ExecutionContext } from 'ava';
import { cliOf } from '#lab/cli.ts';
import { aSecondLater } from '#lab/scenes/nodes.ts';
import { startWorld, type World } from '#lab/scenes/world.ts';
import { applyQueueAction } from '#mail/queue/rows/apply-queue-action.ts';

const to = 'ann@there.invalid';
const isExpired = ({ status }: { status: string }) => status === 'expired';
const isFinal = ({ status }: { status: string }) => status === 'expired' || status === 'bounced';
const maxAge = { POSTERN_MTA_MAX_AGE: '2m' };

/** What the API, `email show`, `email why` and the mail log say of it. */
async function told(t: ExecutionContext, world: World, emailId: string) {
  const { json } = cliOf(t, world);
  const email = await world.get(emailId);
  const [shown] = (await json(`email show ${emailId}`)).recipients;
  const [why] = (await json(`email why ${emailId}`)).recipients;
  return { recipient: email.recipients[0], event: email.events.at(-1), shown, why: why.why as string };
}

interface Hold {
  name: string;
  settings?: Record<string, string>;
  expiresAfter?: number;
  before?: string[];
  after?(world: World, emailId: string, run: (command: string) => Promise<unknown>): Promise<void>;
  says: RegExp;
}

const suspend = 'queue suspend there.invalid --for 2h --reason maintenance';
const holds: Hold[] = [
  {
    name: 'suspended, at its maximum age',
    settings: maxAge,
    before: [suspend],
    says: /suspended by the operator: maintenance/,
  },
  {
    name: 'suspended, at its deadline',
    expiresAfter: 60,
    before: [suspend],
    says: /suspended by the operator: maintenance/,
  },
  {
    name: 'of a paused organization, at its deadline',
    expiresAfter: 60,
    before: ['org pause Tenant --reason unpaid'],
    async after(world, _, run) {
      await world.clock.advance('2m');
      // So that the server has seen after the deadline, too, that it is paused.
      await aSecondLater(world);
      await run('org resume Tenant --reason paid');
    },
    says: /the operator had paused the organization/,
  },
  {
    name: 'on hold, at its deadline',
    expiresAfter: 60,
    before: [suspend],
    async after(world, emailId, run) {
      await run(`queue hold ${emailId} --reason checking`);
      await run('queue resume there.invalid --reason done');
      await world.clock.advance('2m');
      // The command's clock is that of the machine.
      const request = { action: 'release', reason: 'done', now: world.clock.now() } as const;
      await applyQueueAction(world.db, { emailId }, request);
    },
    says: /the operator held it until after that: checking/,
  },
  {
    name: 'no server running, at its deadline',
    expiresAfter: 60,
    before: [suspend],
    async after(world, _, run) {
      await run('queue resume there.invalid --reason done');
      await world.stop();
      await world.clock.jump('5m');
      await world.restart();
    },
    says: /no server that could send it was running/,
  },
  {
    // The first mail is sent, and takes the rate of the minute.
    name: 'rate limit used up, at its deadline',
    expiresAfter: 30,
    before: ['queue slow there.invalid --per-minute 1 --for 2h --reason slow'],
    says: /the rate limit for this destination is used up/,
  },
];

for (const { name, settings = {}, expiresAfter, before = [], after, says } of holds) {
  test(`mail that was never tried: ${name}`, async (t) => {
    const world = await startWorld(t, { settings });
    const { json } = cliOf(t, world);
    const isRate = name.startsWith('rate');
    for (const command of before) if (!command.startsWith('org')) await json(command);
    await aSecondLater(world);
    if (isRate) {
      const first = (await world.send({ to: 'bob@there.invalid', subject: 'first' })).body.emailId;
      await world.passUntil(first, ({ status }) => status === 'delivered');
    }
    const pause = before.find((command) => command.startsWith('org'));
    if (pause) await json(suspend);
    if (pause) await aSecondLater(world);
    const { emailId } = (await world.send({ to, expiresAfter })).body;
    if (pause) await json(pause);
    if (pause) await aSecondLater(world);
    if (pause) await json('queue resume there.invalid --reason done');
    await after?.(world, emailId, json);
    await world.passUntil(emailId, isExpired);
    const { recipient, event, shown, why } = await told(t, world, emailId);
    t.is(recipient.attempts, 0);
    t.like(event, { type: 'email.expired', data: { attempt: 0, category: 'withheld' } });
    t.is(event.data.reason, expiresAfter ? 'deadline' : 'maximum_age');
    t.regex(event.data.diagnostic, says);
    t.deepEqual(shown.attemptLog, []);
    t.regex(why, /^It expired without an attempt, at (?:its maximum age|the deadline that the sender set)/);
    t.regex(why, says);
    t.notRegex(why, /itself deferred/);
    t.is(world.mx[0]!.messages.length, isRate ? 1 : 0);
  });
}

test('mail to a domain that a rule bounces was not tried either', async (t) => {
  const world = await startWorld(t);
  const { json } = cliOf(t, world);
  await json('queue rule there.invalid bounce --reason closed');
  await aSecondLater(world);
  const { emailId } = (await world.send({ to })).body;
  await world.passUntil(emailId, isFinal);
  const { recipient, event, why } = await told(t, world, emailId);
  t.is(recipient.attempts, 0);
  t.like(event, { type: 'email.bounced', data: { attempt: 0 } });
  t.regex(why, /^It was not sent: the operator bounces mail to there\.invalid: closed\. That is final/);
});

test('mail that was tried, and whose destination is suspended at its end, keeps its attempts and the last reply', async (t) => {
  const script = { rcpt: () => '451 4.3.0 later' };
  const world = await startWorld(t, { settings: maxAge, exchangers: [{ script }] });
  const { json } = cliOf(t, world);
  const { emailId } = (await world.send({ to })).body;
  await world.when(emailId, ({ status }) => status === 'deferred');
  await json(suspend);
  await aSecondLater(world);
  await world.passUntil(emailId, isExpired);
  const { recipient, event, why } = await told(t, world, emailId);
  t.is(recipient.attempts, 1);
  t.like(event.data, { attempt: 1, category: 'withheld' });
  t.regex(
    why,
    /^It expired after one attempt, at its maximum age .*\. It was not tried then: suspended by the operator: maintenance\. Before: .* said "451 4\.3\.0 later"/,
  );
});

test('a deadline of ten seconds is enough for a host that says "later" once', async (t) => {
  let refusals = 0;
  const script = { rcpt: () => (refusals++ < 1 ? '451 4.3.0 later' : undefined) };
  const world = await startWorld(t, { exchangers: [{ script }] });
  const { emailId } = (await world.send({ to, expiresAfter: 10 })).body;
  await world.when(emailId, ({ status }) => status === 'deferred');
  await world.passUntil(emailId, ({ status }) => status === 'delivered');
  t.is((await world.get(emailId)).recipients[0].attempts, 2);
});

test('a deadline of ten seconds has three tries, and says that it ended before it', async (t) => {
  const world = await startWorld(t, { exchangers: [{ script: { rcpt: () => '451 4.3.0 later' } }] });
  const acceptedAt = world.clock.now();
  const { emailId } = (await world.send({ to, expiresAfter: 10 })).body;
  // While an attempt is under way the clock goes on by moments: enough for the timer of the next, set when it is due already.
  for (const attempts of [1, 2, 3]) {
    const { nextAttemptAt } = await world.clock.passUntil(
      async () =>
        (await world.get(emailId)).recipients.find((one: { attempts: number }) => one.attempts === attempts),
      { step: 1, what: `attempt ${attempts}` },
    );
    if (attempts < 3) await world.clock.advance(Math.max(Date.parse(nextAttemptAt) - world.clock.now(), 0));
  }
  await world.passUntil(emailId, isExpired);
  t.true(world.clock.now() - acceptedAt < 12_000);
  const { recipient, why } = await told(t, world, emailId);
  t.true(recipient.attempts >= 2, `${recipient.attempts} attempts`);
  t.regex(
    why,
    /^It expired after 3 attempts, at the deadline that the sender set with expiresAfter \(2\S+\); the time that was left was too short for another attempt\./,
  );
});

test('a wait that ends before the deadline is not cut', async (t) => {
  const script = { rcpt: () => '451 4.7.1 Greylisted, try again in 40 seconds' };
  const world = await startWorld(t, { exchangers: [{ script }] });
  const { emailId } = (await world.send({ to, expiresAfter: 60 })).body;
  const { recipients } = await world.when(emailId, ({ status }) => status === 'deferred');
  t.true(Date.parse(recipients[0].nextAttemptAt) - world.clock.now() >= 39_000);
});
