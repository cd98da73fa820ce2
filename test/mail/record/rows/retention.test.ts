/** What goes in time, and what stays, on both databases; the clock is turned by hand. */
import test, { type ExecutionContext } from 'ava';
import { cliOf } from '#lab/cli.ts';
import { manualClock } from '#lab/clock.ts';
import { type DatabaseKind, kinds } from '#lab/database/databases.ts';
import { startWorld, type World } from '#lab/scenes/world.ts';
import { until } from '#lab/until.ts';
import { forgetAttempts, forgetEvents, removeMessages } from '#mail/record/rows/retention.ts';
import { newId } from '#platform/base/id.ts';
import { lastIdOf } from '#platform/database/tables/time-of-id.ts';
import { startMaintenance } from '#server/maintenance.ts';

const script = { rcpt: ({ address = '' }) => (address.startsWith('greta') ? '451 4.7.1 later' : undefined) };
const newWorld = (t: ExecutionContext, database: DatabaseKind, settings = {}) =>
  startWorld(t, { database, exchangers: [{ script }], settings });

const count = async (world: World, table: string) => Number((await world.db(table).count('* as n'))[0]!.n);
const sizes = async (world: World, emailId: string): Promise<number[]> =>
  world.db('messages').where({ email_id: emailId }).pluck('size');
const told = (world: World) => new Date(world.clock.now()).toISOString();
const isEmpty = async (world: World, emailId: string) =>
  (await sizes(world, emailId)).every((size) => size === 0);

/** Lets a day pass from `time`, and then little more, because nothing else may become due while the bytes are looked for. */
async function goesADayAfter(world: World, time: string, emailId: string): Promise<void> {
  const { clock } = world;
  const end = Date.parse(time) + 24 * 60 * 60_000;
  while (clock.now() < end - 1) {
    await clock.jump(Math.min(60 * 60_000, end - 1 - clock.now()));
    if (await isEmpty(world, emailId)) throw new Error(`the bytes are gone too early: at ${told(world)}`);
  }
  await until(
    async () => {
      await clock.jump('10s');
      return isEmpty(world, emailId);
    },
    { what: () => `the bytes to go; it is ${told(world)}` },
  );
}

/** Goes from retry to retry, so that the clock is never much later than the expiry. */
function retryUntilExpired({ db, clock }: World, recipient: string): Promise<boolean> {
  return until(async () => {
    const { status, due_at } = await db('deliveries').where({ recipient }).first('status', 'due_at');
    // Short steps while an attempt is under way: one that times out lets the destination rest for hours.
    await clock.advance(status === 'deferred' ? Math.max(due_at - clock.now(), 1000) : 50);
    return status === 'expired';
  });
}

for (const database of kinds) {
  test(`${database}: bytes go a day after the last delivery is final, the story stays`, async (t) => {
    const world = await newWorld(t, database);
    const { body } = await world.send({ to: ['ann@there.invalid', 'greta@there.invalid'] });
    const done = (await world.send({ to: 'ann@there.invalid' })).body;
    await world.when(body.emailId, ({ recipients }) => recipients[1].status === 'deferred');
    await world.when(done.emailId, ({ status }) => status === 'delivered');
    const { cli } = cliOf(t, world);
    t.is((await cli('email source', done.emailId)).code, 0);

    const { deliveredAt } = (await world.get(done.emailId)).recipients[0];
    await goesADayAfter(world, deliveredAt, done.emailId);
    t.false(await isEmpty(world, body.emailId), 'greta waits for her copy');
    await retryUntilExpired(world, 'greta@there.invalid');
    await goesADayAfter(world, (await world.get(body.emailId)).updatedAt, body.emailId);
    t.like(await world.get(done.emailId), { status: 'delivered', recipients: [{ attempts: 1 }] });
    const gone = await cli('email source', done.emailId);
    t.is(gone.code, 1);
    t.regex(gone.stderr, /has been deleted \(POSTERN_KEEP_MESSAGES/);
    t.is((await cli('email show', done.emailId)).code, 0);
    t.is((await cli('email why', done.emailId)).code, 0);
  });

  test(`${database}: without keeping, bytes go when it is final; what waits keeps them`, async (t) => {
    const world = await newWorld(t, database, { POSTERN_KEEP_MESSAGES: '0' });
    const ann = (await world.send({ to: 'ann@there.invalid', idempotencyKey: 'one' })).body;
    const greta = (await world.send({ to: 'greta@there.invalid' })).body;
    await world.when(ann.emailId, ({ status }) => status === 'delivered');
    await world.when(greta.emailId, ({ status }) => status === 'deferred');
    await until(
      async () => {
        // In short steps: the key of the send is kept for a day, and a round of maintenance may last for many steps.
        await world.clock.jump('1m');
        return isEmpty(world, ann.emailId);
      },
      { what: () => `the bytes to go; it is ${told(world)}` },
    );
    t.false(await isEmpty(world, greta.emailId));
    const again = await world.send({ to: 'ann@there.invalid', idempotencyKey: 'one' });
    t.is(again.headers.get('idempotent-replayed'), 'true');
    t.deepEqual(again.body, ann);
    t.is(world.mx[0]!.messages.length, 1);
  });

  test(`${database}: events and attempts go when their time has come, counts and states stay`, async (t) => {
    const world = await newWorld(t, database);
    const { body } = await world.send({ to: 'ann@there.invalid' });
    await world.when(body.emailId, ({ status }) => status === 'delivered');
    await world.db('deliveries').update({ open_count: 3, click_count: 1 });
    const first = (await world.call('GET', '/api/public/events')).body;
    const begun = world.clock.now();
    await until(
      async () => {
        await world.clock.jump('2d');
        return (await count(world, 'events')) === 0 && (await count(world, 'attempts')) === 0;
      },
      { what: () => `events and attempts to go; it is ${told(world)}` },
    );
    t.true(world.clock.now() - begun >= 30 * 24 * 60 * 60_000);
    const email = await world.get(body.emailId);
    t.like(email, {
      status: 'delivered',
      events: [],
      recipients: [{ attempts: 1, opens: { count: 3 }, clicks: { count: 1 } }],
    });
    // The cursor of before goes on as if nothing had gone.
    await world.send({ to: 'bob@there.invalid' });
    await until(async () => {
      const { events } = (await world.call('GET', `/api/public/events?after=${first.next}`)).body;
      return events.length === 2 && events[0].recipient === 'bob@there.invalid';
    });
  });

  test(`${database}: old emails are deleted in small parts, the oldest first, past those that have to stay`, async (t) => {
    const world = await newWorld(t, database);
    const orgId = (await world.db('organizations').first('id')).id;
    const { body } = await world.send({ to: 'ann@there.invalid' });
    await world.when(body.emailId, ({ status }) => status === 'delivered');
    await world.stop();
    const now = world.clock.now();
    const eventAt = (at: number) => ({
      id: newId(),
      org_id: orgId,
      email_id: null,
      type: 'credits.low',
      recipient: null,
      at,
      data: '{}',
    });
    for (let part = 0; part < 6; part++)
      await world.db('events').insert(Array.from({ length: 200 }, () => eventAt(now - 10)));
    await world.db('events').insert(eventAt(now + 10));
    const gone: number[] = [];
    for (let n = 1; n > 0; gone.push(n)) n = await forgetEvents(world.db, now + 1);
    t.deepEqual(gone, [500, 500, 202, 0]);
    t.is(await count(world, 'events'), 1);

    const [delivery] = await world.db('deliveries');
    const attemptAt = (at: number, number: number) => ({
      id: newId(),
      delivery_id: delivery.id,
      number,
      started_at: at,
      ended_at: at,
      verdict: '{}',
      transcript: '[]',
    });
    await world.db.batchInsert(
      'attempts',
      Array.from({ length: 550 }, (_, at) => attemptAt(now - 10, at)),
      50,
    );
    t.is(await forgetAttempts(world.db, now - 5), 499, 'the first of the five hundred is young');
    t.is(await forgetAttempts(world.db, now - 5), 51);
    t.is(await forgetAttempts(world.db, now - 5), 0);

    // Of 450 emails the first 220 wait, and the others are done with.
    await world.db('deliveries').update({ message_id: null });
    await world.db('messages').delete();
    for (let at = 0; at < 450; at++) await putEmail(world, orgId, at < 220 ? 'held' : 'delivered', now - 10);
    const remove = removeMessages(world.db, () => Date.now() + 1000, 0);
    const looked: number[] = [];
    for (let n = 1; n > 0; looked.push(n)) n = await remove();
    t.deepEqual(looked, [200, 200, 0]);
    t.is((await world.db('messages').where('size', '>', 0)).length, 220);
  });
}

async function putEmail(world: World, orgId: string, status: string, now: number) {
  const [emailId, messageId] = [newId(), newId()];
  const times = { created_at: now, updated_at: now };
  const texts = {
    message_id: 'm',
    sender: 'a@b.invalid',
    subject: 's',
    recipients: '[]',
    tags: '{}',
    tracking: '{}',
  };
  await world.db('emails').insert({ id: emailId, org_id: orgId, credits: 1, ...texts, ...times });
  await world.db('messages').insert({ id: messageId, email_id: emailId, size: 1, raw: Buffer.from('x') });
  await world.db('deliveries').insert({
    id: newId(),
    email_id: emailId,
    org_id: orgId,
    message_id: messageId,
    position: 0,
    status,
    recipient: 'c@d.invalid',
    domain: 'd.invalid',
    expires_at: now,
    ...times,
  });
}

test('the last id of a millisecond is above those of it and below those after', (t) => {
  const now = Date.now();
  const id = newId();
  t.true(id <= lastIdOf(Date.now()));
  t.true(id > lastIdOf(now - 1));
  t.is(lastIdOf(-5), '00000000-0000-7fff-bfff-ffffffffffff');
});

function recordingChores() {
  const order: string[] = [];
  const chore = (name: string, found: number, workMs = 0) => ({
    name,
    async run() {
      order.push(name);
      const begun = performance.now();
      while (performance.now() - begun < workMs);
      return found;
    },
  });
  return { order, chore };
}

/** What a database says that cannot tell whether something was committed. */
const always = { changeToken: async () => null };

test('maintenance follows commits: urgent jobs within ten seconds, all within a minute; else every ten minutes, or timely', async (t) => {
  const clock = manualClock();
  const { order, chore } = recordingChores();
  const token = { now: 'a' };
  const changeToken = async () => token.now;
  const stop = startMaintenance({
    jobs: [
      { ...chore('urgent', 0), isUrgent: true },
      { ...chore('timely', 0), isTimely: true },
      chore('other', 0),
    ],
    changeToken,
    clock,
    onError: (what) => t.fail(what),
  });
  const pass = async (seconds: number) => {
    order.length = 0;
    for (let passed = 0; passed < seconds; passed += 10) await clock.advance('10s');
    return order;
  };
  const all = ['urgent', 'timely', 'other'];
  t.deepEqual(await pass(10), all, 'at 10 seconds');
  t.deepEqual(await pass(120), ['timely', 'timely'], 'at 70 and 130 seconds');
  token.now = 'b';
  t.deepEqual(await pass(10), ['urgent']);
  t.deepEqual(await pass(60), all, 'at 190 seconds');
  t.deepEqual(await pass(580), Array(9).fill('timely'));
  t.deepEqual(await pass(10), all, 'ten minutes later');
  await stop();
});

test('maintenance pauses between the runs of a job, lets other jobs have their turn, and stops between runs', async (t) => {
  const clock = manualClock();
  const { order, chore } = recordingChores();
  const begun = performance.now();
  const chores = [chore('endless', 5, 5), chore('long', 1), chore('short', 0)];
  const stop = startMaintenance({ jobs: chores, ...always, clock, onError: (what) => t.fail(what) });
  await clock.advance('10s');
  await until(() => order.length >= 21);
  t.deepEqual(order.slice(0, 7), ['endless', 'long', 'short', 'endless', 'long', 'endless', 'long']);
  t.true(performance.now() - begun >= 9 * 25, 'a fifth of the time at most');
  await clock.advance('60s');
  await until(() => order.filter((name) => name === 'short').length === 2);
  await stop();
  const { length } = order;
  await clock.advance('10m');
  t.is(order.length, length);
});

test('a job that waits for a stranger’s server holds up no other, and runs once at a time', async (t) => {
  const clock = manualClock();
  const { order, chore } = recordingChores();
  const answer = Promise.withResolvers<number>();
  let asked = 0;
  const away = {
    name: 'away',
    isRemote: true,
    run: () => (asked++ === 0 ? answer.promise : Promise.resolve(0)),
  };
  const jobs = [away, chore('short', 0)];
  const stop = startMaintenance({ jobs, ...always, clock, onError: (what) => t.fail(what) });
  await clock.advance('10s');
  await until(() => order.length === 1);
  await clock.advance('1m');
  await until(() => order.length === 2);
  t.is(asked, 1);
  answer.resolve(1);
  await until(() => asked === 2, { what: 'what it may find more' });
  await stop();
});

test('of rows to which every mail adds, those of the last minute are left', async (t) => {
  const clock = manualClock();
  const { order, chore } = recordingChores();
  const fed = (name: string, found: number) => ({ ...chore(name, found), isFedByMail: true });
  const jobs = [fed('few', 249), fed('many', 250)];
  const stop = startMaintenance({ jobs, ...always, clock, onError: (what) => t.fail(what) });
  await clock.advance('10s');
  await until(() => order.length >= 5);
  t.deepEqual(order.slice(0, 5), ['few', 'many', 'many', 'many', 'many']);
  await clock.advance('60s');
  await until(() => order.filter((name) => name === 'few').length === 2);
  await stop();
});
