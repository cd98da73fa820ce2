/** New source addresses keep to their daily allowance: real connections from addresses of loopback, on a clock that is set. */
import test, { type ExecutionContext } from 'ava';
import { cliOf } from '#lab/cli.ts';
import { journeyKinds, nameOf } from '#lab/database/databases.ts';
import { countStatements } from '#lab/database/statements.ts';
import { settleAll, sharedSecret, startNode } from '#lab/scenes/nodes.ts';
import { asNewTenant, startWorld, type World, type WorldOptions } from '#lab/scenes/world.ts';
import { dayMs, isWarm } from '#mail/deliver/warm-up-plan.ts';
import { assignPool } from '#mail/queue/rows/ip-pools.ts';
import { takeAllowance } from '#mail/record/rows/warm-up-rows.ts';

const hourMs = 3_600_000;
const [known, fresh, another] = ['127.0.0.41', '127.0.0.42', '127.0.0.43'] as const;

const start = (t: ExecutionContext, settings: Record<string, string>, options: WorldOptions = {}) =>
  startWorld(t, { ...options, settings: { POSTERN_MTA_SOURCES: `${fresh} ${another}`, ...settings } });

/** As if the address had sent so much to `there.invalid` since `beganAt`. */
const seed = (world: World, address: string, used: number, row: object = {}) =>
  world.db('warm_ups').insert({
    address,
    receivers: 'others',
    day: 1,
    step: 1,
    began_at: world.clock.now(),
    used,
    deferred: 0,
    ...row,
  });

let sends = 0;

/** One mail to each of so many recipients; the id of the last send. */
async function sendMany(world: Pick<World, 'send'>, count: number, fields: object = {}): Promise<string> {
  const perSend = 10;
  let emailId = '';
  for (let left = count; left > 0; left -= perSend) {
    sends += 1;
    const to = Array.from({ length: Math.min(left, perSend) }, (_, n) => `n${n}-${sends}@there.invalid`);
    const { status, body } = await world.send({ to, subject: `${sends}`, ...fields });
    if (status !== 200) throw new Error(JSON.stringify(body));
    emailId = body.emailId;
  }
  return emailId;
}

const allMessages = ({ mx }: World) => mx.flatMap(({ messages }) => messages);

function bySource(world: World): Record<string, number> {
  const groups = Map.groupBy(allMessages(world), ({ session }) => session.from);
  return Object.fromEntries([...groups].map(([from, some]) => [from, some.length]).sort());
}

const statuses = async ({ db }: World): Promise<Record<string, number>> => {
  const rows = await db('deliveries').groupBy('status').select('status').count('* as count');
  return Object.fromEntries(rows.map(({ status, count }) => [status, Number(count)]).sort());
};

/** Nothing is under way, and nothing is due. */
const atRest = (world: World) =>
  world.clock.passUntil(
    async () => {
      const due = world
        .db('deliveries')
        .whereIn('status', ['queued', 'deferred'])
        .where('due_at', '<=', world.clock.now());
      const sending = world.db('deliveries').where({ status: 'sending' });
      return (await due).length + (await sending).length === 0;
    },
    { step: 100 },
  );

for (const kind of journeyKinds) {
  test(`mail over the allowance goes from another address of the pool, on ${kind}`, async (t) => {
    const settings = { POSTERN_MTA_SOURCES: `${known} ${fresh}`, POSTERN_WARM_SOURCES: known };
    const world = await start(t, settings, { database: kind });
    await seed(world, fresh, 97);
    await sendMany(world, 12);
    await atRest(world);
    const { [fresh]: few = 0, ...rest } = bySource(world);
    t.true(few > 0 && few <= 3, `${few} from the new address`);
    t.deepEqual(rest, { [known]: 12 - few });
  });

  test(`mail over the allowance waits for the next day, untried and without a look at it, on ${kind}`, async (t) => {
    const world = await start(t, {}, { database: kind });
    const { clock, db } = world;
    await seed(world, fresh, 99);
    await seed(world, another, 98);
    const beganAt = clock.now();
    const emailId = await sendMany(world, 30);
    await atRest(world);
    t.deepEqual(await statuses(world), { delivered: 3, queued: 27 });
    t.deepEqual(bySource(world), { [fresh]: 1, [another]: 2 });
    t.deepEqual(await db('deliveries').where({ status: 'queued' }).distinct('due_at', 'attempts'), [
      { due_at: beganAt + dayMs, attempts: 0 },
    ]);

    const statements = await countStatements(
      nameOf({ url: world.config.databaseUrl }, world.config.dataDir),
      async () => {
        for (let n = 0; n < 10; n++) await clock.advance('1s');
      },
    );
    t.deepEqual(
      [...statements.keys()].filter((sql) => /^update deliveries/.test(sql)),
      [],
    );

    const cli = await cliOf(t, world);
    const { needs, warmUps } = await cli.json('status');
    t.deepEqual(
      needs.map(({ cause, subject }: { cause: string; subject: string }) => [cause, subject]),
      [
        ['warm_up', fresh],
        ['warm_up', another],
      ],
    );
    t.like(warmUps[0], {
      address: fresh,
      receivers: 'others',
      day: 1,
      used: 100,
      allowance: 100,
      tomorrow: 150,
      daysLeft: 20,
    });
    const { recipients } = await cli.json('email why', emailId);
    const waiting = recipients.find(({ status }: { status: string }) => status === 'queued');
    t.regex(waiting.why, /is new to its receiver and has used its allowance of today; mail over it waits\./);

    await clock.jump(dayMs - (clock.now() - beganAt));
    await atRest(world);
    await clock.passUntil(async () => (await statuses(world)).delivered === 30);
    t.deepEqual(await statuses(world), { delivered: 30 });
    t.deepEqual(await db('deliveries').distinct('attempts'), [{ attempts: 1 }]);
    t.deepEqual(await db('warm_ups').where({ day: 2 }).distinct('step'), [{ step: 2 }]);
  });

  test(`an organization with much mail leaves others some of the day, on ${kind}`, async (t) => {
    const world = await start(t, {}, { database: kind });
    const other = await asNewTenant(world);
    await seed(world, fresh, 60);
    await seed(world, another, 60);
    await sendMany(world, 1);
    await sendMany(other, 1);
    await sendMany(world, 80);
    await atRest(world);
    await sendMany(other, 5);
    await atRest(world);
    const rows = await world
      .db('deliveries')
      .join('emails', 'emails.id', 'email_id')
      .select('emails.org_id', 'status');
    const of = (org: string, status: string) =>
      rows.filter((row) => row.org_id === org && row.status === status).length;
    t.deepEqual([of(other.orgId, 'delivered'), of(other.orgId, 'queued')], [6, 0]);
    t.true(of(world.orgId, 'queued') > 20, `${of(world.orgId, 'queued')} wait`);
    await sendMany(other, 20);
    await atRest(world);
    t.true((await statuses(world)).delivered! <= 80, 'the plan is kept');
  });

  test(`the allowance is taken for many mails at once, on ${kind}`, async (t) => {
    const world = await start(t, {}, { database: kind });
    await sendMany(world, 1);
    await atRest(world);
    const counts = await countStatements(
      nameOf({ url: world.config.databaseUrl }, world.config.dataDir),
      async () => {
        await sendMany(world, 50);
        await atRest(world);
      },
    );
    const takings = [...counts].filter(([sql]) => /update .?warm_ups/.test(sql));
    const taken = takings.reduce((sum, [, count]) => sum + count, 0);
    t.true(taken > 0 && taken <= 4, `${taken} takings for 50 mails`);
  });

  test(`a restart forgets nothing and allows no more than the plan, on ${kind}`, async (t) => {
    const world = await start(t, {}, { database: kind });
    for (let n = 0; n < 3; n++) {
      await sendMany(world, 90);
      await atRest(world);
      await world.restart();
    }
    const { delivered } = await statuses(world);
    t.true(delivered! > 190 && delivered! <= 200, `${delivered} of 200`);
  });

  test(`several takers at once never get more than there is, on ${kind}`, async (t) => {
    const { db, clock } = await start(t, {}, { database: kind });
    const taking = {
      address: '192.0.2.1',
      receivers: 'Gmail',
      want: 7,
      over: 0,
      deferred: 0,
      mayBegin: true,
      leavesReserve: false,
    } as const;
    const taken = await Promise.all(Array.from({ length: 20 }, () => takeAllowance(db, taking, clock.now())));
    t.is(
      taken.reduce((sum, { granted }) => sum + granted, 0),
      100,
    );
  });

  test(`complaints about any mail to the receivers slow the plan, on ${kind}`, async (t) => {
    const { db, clock, orgId } = await start(t, {}, { database: kind });
    const now = clock.now();
    const counted = { org_id: orgId, day: now - (now % dayMs) - dayMs, kind: 'domain' };
    const columns = Object.keys(await db('group_statistics').columnInfo()).filter(
      (name) => !(name in counted) && name !== 'name',
    );
    const zeros = Object.fromEntries(columns.map((name) => [name, 0]));
    await db('group_statistics').insert([
      { ...zeros, ...counted, name: 'mail.example', delivered: 500, complained: 2 },
      { ...zeros, ...counted, name: 'there.invalid', delivered: 500, complained: 0 },
    ]);
    await db('routes').insert({ domain: 'mail.example', destination: 'google' });
    const begun = { day: 4, step: 4, began_at: now - dayMs, used: 340, deferred: 0 };
    await db('warm_ups').insert([
      { address: fresh, receivers: 'Gmail', ...begun },
      { address: fresh, receivers: 'others', ...begun },
    ]);
    const taking = { address: fresh, want: 1, over: 0, deferred: 0, mayBegin: true, leavesReserve: false };
    const gmail = await takeAllowance(db, { ...taking, receivers: 'Gmail' }, now);
    const others = await takeAllowance(db, { ...taking, receivers: 'others' }, now);
    t.deepEqual([gmail.warmUp.step, others.warmUp.step], [3, 5]);
  });
}

test('a new address that this machine does not have delays nothing, and uses no allowance', async (t) => {
  const world = await start(t, { POSTERN_MTA_SOURCES: `203.0.113.9 ${fresh}` });
  await seed(world, fresh, 90);
  await sendMany(world, 12);
  await atRest(world);
  t.deepEqual(await statuses(world), { delivered: 10, queued: 2 });
  await world.restart();
  const rows = await world.db('warm_ups').orderBy('address').select('address', 'used');
  t.deepEqual(rows, [
    { address: fresh, used: 100 },
    { address: '203.0.113.9', used: 0 },
  ]);
  t.deepEqual(bySource(world), { [fresh]: 10 });
});

test('two nodes with one address share its allowance', async (t) => {
  const world = await start(t, sharedSecret, { database: 'postgres' });
  const second = await startNode(t, world);
  await settleAll(world, 2);
  const there = world.at(second.url);
  for (let n = 0; n < 3; n++) await Promise.all([sendMany(world, 50), sendMany(there, 50)]);
  await atRest(world);
  const { delivered } = await statuses(world);
  t.true(delivered! >= 190 && delivered! <= 200, `${delivered} of 200`);
});

test('mail over the allowance goes from the pool that is set for it', async (t) => {
  const world = await start(t, {
    POSTERN_MTA_SOURCES: `${known} ${fresh}@bulk ${another}@bulk`,
    POSTERN_WARM_SOURCES: known,
    POSTERN_WARM_UP: '@default',
  });
  await assignPool(world.db, world.orgId, 'bulk');
  await world.clock.advance('1s');
  await seed(world, fresh, 98);
  await seed(world, another, 100);
  await sendMany(world, 10);
  await atRest(world);
  t.deepEqual(bySource(world), { [known]: 8, [fresh]: 2 });
});

test('with `warn` mail is counted, and none waits', async (t) => {
  const world = await start(t, { POSTERN_WARM_UP: 'warn' });
  await seed(world, fresh, 100);
  await seed(world, another, 100);
  await sendMany(world, 40);
  await atRest(world);
  t.deepEqual(await statuses(world), { delivered: 40 });
  await world.restart();
  t.like(await world.db('warm_ups').sum('used as used').first(), { used: 240 });
});

test('the only address warns and holds nothing, also if the system chooses it', async (t) => {
  for (const settings of [{ POSTERN_MTA_SOURCES: fresh }, { POSTERN_MTA_SOURCES: '' }]) {
    const world = await startWorld(t, { settings });
    const address = settings.POSTERN_MTA_SOURCES || '127.0.0.1';
    await seed(world, address, 300);
    await sendMany(world, 100);
    await atRest(world);
    t.deepEqual(await statuses(world), { delivered: 100 });
    const isStored = async () => {
      const row = await world.db('warm_ups').where({ address }).first('used');
      return row!.used === 400;
    };
    await world.clock.passUntil(isStored, { step: 1_000 });
    const { needs, warmUps } = await (await cliOf(t, world)).json('status');
    t.is(warmUps[0].address, address);
    t.is(warmUps[0].used, 400);
    t.like(needs[0], { cause: 'warm_up', severity: 'watch', subject: address });
    t.regex(needs[0].advice, /sends more than receivers expect of one/);
  }
});

test('mail that cannot wait for the next day goes over the plan: a near deadline at once, other mail before its end', async (t) => {
  const world = await start(t, { POSTERN_MTA_MAX_AGE: '16h' });
  await seed(world, fresh, 100);
  await seed(world, another, 100);
  const beganAt = world.clock.now();
  await sendMany(world, 3, { expiresAfter: 600 });
  await sendMany(world, 2);
  await atRest(world);
  t.deepEqual(await statuses(world), { delivered: 3, queued: 2 });
  await world.clock.jump(14 * hourMs - 60_000);
  await atRest(world);
  t.deepEqual(await statuses(world), { delivered: 3, queued: 2 });
  await world.clock.jump(62_000);
  await world.clock.passUntil(async () => (await statuses(world)).delivered === 5);
  t.true(world.clock.now() < beganAt + 15 * hourMs);
  t.like(await world.db('warm_ups').where({ address: fresh }).first(), { day: 1 });
});

test('a long queue is spread over the days that have room for it', async (t) => {
  const world = await start(t, {});
  await seed(world, fresh, 100);
  await seed(world, another, 100, { began_at: world.clock.now() });
  const beganAt = world.clock.now();
  await sendMany(world, 300);
  await sendMany(world, 60);
  await atRest(world);
  const waits: number[] = (await world.db('deliveries').orderBy('due_at').pluck('due_at')).map(
    (at) => at - beganAt,
  );
  t.deepEqual(new Set(waits.slice(0, 300)), new Set([dayMs]));
  // The day after that one would be in the last eighth of their 48 hours.
  t.true(waits.slice(300).every((wait) => Math.abs(wait - 42 * hourMs) < 1000));
});

test('a leap of the clock begins no day, nor does one that is set back', async (t) => {
  const world = await start(t, {});
  const { clock, db } = world;
  await seed(world, fresh, 100);
  await seed(world, another, 100);
  await sendMany(world, 1);
  await atRest(world);
  await clock.jump(30 * hourMs);
  await world.noteLeap(30 * hourMs);
  await sendMany(world, 5);
  await clock.advance('5s');
  await atRest(world);
  t.deepEqual(bySource(world), {});
  t.deepEqual(await db('warm_ups').orderBy('address').select('day', 'used'), [
    { day: 1, used: 100 },
    { day: 1, used: 100 },
  ]);

  clock.setBack(4 * dayMs);
  await world.restart();
  await sendMany(world, 5);
  await clock.advance('5s');
  await atRest(world);
  t.deepEqual(bySource(world), {});
  const rows = await db('warm_ups').select('day', 'used', 'began_at');
  for (const { began_at, ...row } of rows) {
    t.deepEqual(row, { day: 1, used: 100 });
    t.true(began_at <= clock.now());
  }
});

test('an address that the server used when it was upgraded is not new, one that comes later is', async (t) => {
  const world = await start(t, {});
  const { db, clock } = world;
  const upgraded = { day: 0, step: 0, began_at: clock.now() - hourMs, used: 0, deferred: 0 };
  await db('warm_ups').insert({ address: '*', receivers: '*', ...upgraded });
  await world.restart();
  await sendMany(world, 4);
  await atRest(world);
  t.deepEqual(
    await db('warm_ups').whereNot({ address: '*' }).orderBy('address').select('address', 'receivers', 'used'),
    [
      { address: fresh, receivers: '*', used: 0 },
      { address: another, receivers: '*', used: 0 },
    ],
  );
  const taking = {
    receivers: 'Gmail',
    want: 1,
    over: 0,
    deferred: 0,
    mayBegin: true,
    leavesReserve: false,
  } as const;
  const first = await takeAllowance(db, { address: known, ...taking }, clock.now());
  const later = await takeAllowance(db, { address: '127.0.0.44', ...taking }, clock.now() + 2 * dayMs);
  t.deepEqual([first.warmUp, later.warmUp].map(isWarm), [true, false]);
});
