/**
 * Mail that cannot start is neither claimed nor looked at again and again. The statements are counted while the clock stands
 * still, and while it goes on by seconds.
 */

import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import test, { type ExecutionContext } from 'ava';
import { pauseOrganization } from '#accounts/rows/pauses.ts';
import { type DatabaseKind, journeyKinds, nameOf, oneKind } from '#lab/database/databases.ts';
import { countStatements } from '#lab/database/statements.ts';
import { temporaryDirectory } from '#lab/evidence.ts';
import { asNewTenant, startWorld, type World } from '#lab/scenes/world.ts';
import { until } from '#lab/until.ts';
import { suspend } from '#mail/queue/rows/suspensions.ts';
import { changeToken } from '#platform/database/engine/quiet-check.ts';

const statementsOf = ({ config }: World, act: () => Promise<void>) =>
  countStatements(nameOf({ url: config.databaseUrl }, config.dataDir), act);

interface Work {
  all: number;
  claims: number;
  commits: number;
}

async function workOf(world: World, act: () => Promise<void>): Promise<Work> {
  const statements = [...(await statementsOf(world, act))];
  const sum = (text: RegExp) =>
    statements.filter(([sql]) => text.test(sql)).reduce((total, [, count]) => total + count, 0);
  return {
    all: sum(/^/),
    claims: sum(/^update deliveries set status = 'sending'/),
    commits: sum(/^commit/i) + sum(/lease_owner = null/),
  };
}

const attemptsOf = async ({ db }: World) =>
  Number((await db('deliveries').sum('attempts as sum').first())!.sum);

const atRest = (world: World) =>
  until(async () => (await world.db('deliveries').where({ status: 'sending' })).length === 0, {
    what: 'what was under way to end',
  });

/** Longer than a claim and a release take by far. */
const stillMs = 300;

/** All work that was begun ends, and then nothing is claimed and nothing committed while the clock stands still. */
async function assertStill(t: ExecutionContext, world: World): Promise<void> {
  let work: Work | null = null;
  const isStill = async () => {
    work = await workOf(world, () => sleep(3 * stillMs));
    return work.claims + work.commits === 0;
  };
  await until(isStill, { what: () => `no claims while the clock stands still: ${JSON.stringify(work)}` });
  t.pass();
}

/** Maintenance, a probe or a retry may fall into a time, but not into each: a loop would be in all of them. */
async function untilQuiet(
  t: ExecutionContext,
  world: World,
  pass: () => Promise<void>,
  isQuiet: (work: Work) => boolean | Promise<boolean>,
): Promise<void> {
  let work: Work | null = null;
  const holds = async () => {
    work = await workOf(world, pass);
    return isQuiet(work);
  };
  await until(holds, { what: () => `a time in which nothing happens: ${JSON.stringify(work)}` });
  t.pass();
}

/** A minute by the clock; after each step it stands still for a moment, in which a loop would show. */
async function assertRest(t: ExecutionContext, world: World): Promise<void> {
  await atRest(world);
  const before = await attemptsOf(world);
  const { claims } = await workOf(world, async () => {
    for (let step = 0; step < 3; step++) {
      await world.clock.jump('20s');
      await sleep(stillMs);
    }
    await atRest(world);
  });
  const attempts = (await attemptsOf(world)) - before;
  t.true(claims <= attempts + domains.length, `${claims} claims for ${attempts} attempts`);
  await assertStill(t, world);
}

const domains = ['one.invalid', 'two.invalid'];

async function sendToEach(world: World, count: number): Promise<string[]> {
  const sends = domains.flatMap((domain) =>
    Array.from({ length: count }, (_, n) => world.send({ to: `n${n}@${domain}`, subject: `${domain} ${n}` })),
  );
  return (await Promise.all(sends)).map(({ body }) => body.emailId);
}

const zoneOf = (entry: 'SERVFAIL' | { MX: string[] }) =>
  Object.fromEntries(domains.map((domain) => [domain, entry]));

interface Way {
  from: 'SERVFAIL' | { MX: string[] };
  move(world: World, shapingFile: string): Promise<void> | void;
}

const toDead = { MX: ['10 mx1.invalid'] };
const joined = `{ "rules": [{ "domain": ${JSON.stringify(domains)}, "name": "joined" }] }`;

const ways: Record<string, Way> = {
  'DNS works again': { from: 'SERVFAIL', move: ({ dns }) => dns.set(zoneOf(toDead)) },
  'another MX set': {
    from: { MX: ['10 mx2.invalid'] },
    move: ({ dns }) => dns.set(zoneOf(toDead)),
  },
  'an edited shaping file': {
    from: toDead,
    move: (_, shapingFile) => writeFile(shapingFile, joined),
  },
};

/** Mail that waits behind one destination, with an open circuit, whose domains then belong to another. */
async function startMoved(t: ExecutionContext, kind: DatabaseKind, { from, move }: Way): Promise<World> {
  const shapingFile = join(await temporaryDirectory(t), 'shaping.jsonc');
  await writeFile(shapingFile, '{}');
  const world = await startWorld(t, {
    database: kind,
    exchangers: [{ script: { connect: () => 'close' } }, { script: { connect: () => 'close' } }],
    zone: zoneOf(from),
    settings: { POSTERN_SHAPING_FILE: shapingFile },
  });
  await sendToEach(world, 8);
  await until(async () => (await attemptsOf(world)) >= 5, { what: 'a circuit to open' });
  await atRest(world);
  await move(world, shapingFile);
  // The routes that are known expire, and the probes are due.
  for (let step = 0; step < 4; step++) {
    await world.clock.jump('3m');
    await sleep(stillMs);
    await atRest(world);
  }
  return world;
}

const isArrived = async ({ db }: World) =>
  (await db('deliveries').whereNot({ status: 'delivered' })).length === 0;

for (const [name, way] of Object.entries(ways)) {
  test(`${name}: nothing is claimed only to be released, and at last all arrives`, async (t) => {
    const world = await startMoved(t, oneKind, way);
    await assertRest(t, world);
    const createdAt = world.clock.now();
    for (const destination of ['mx1.invalid', 'joined'])
      await suspend(world.db, { destination, reason: 'a test', createdAt, until: createdAt + 600_000 });
    await world.clock.jump('2s');
    await assertRest(t, world);
    for (const { script } of world.mx) delete script.connect;
    await world.clock.passUntil(() => isArrived(world), { step: '20s', what: 'all the mail to arrive' });
  });
}

/** At how many times of the next minute a timer is due. */
async function wakeUpsOf({ clock }: World): Promise<number> {
  const end = clock.now() + 60_000;
  let count = 0;
  for (;;) {
    const next = clock.pending.find((at) => at > clock.now());
    if (next === undefined || next > end) return count;
    count += 1;
    await clock.advance(next - clock.now());
  }
}

const costs = { sqlite: 'no statement', postgres: 'one statement for all polls' };

for (const kind of journeyKinds) {
  test(`whatever waits, a second costs ${costs[kind]} and one wake-up, and nothing is written, on ${kind}`, async (t) => {
    const world = await startWorld(t, {
      database: kind,
      exchangers: [{ script: { connect: () => 'close' } }],
    });
    const paused = await asNewTenant(world);
    const { clock, db } = world;
    for (let n = 0; n < 6; n++) await world.send({ to: `n${n}@there.invalid`, subject: `${n}` });
    const now = clock.now();
    const farOff = now + 24 * 3_600_000;
    await suspend(db, { destination: 'shut.invalid', reason: 'a test', createdAt: now, until: farOff });
    await pauseOrganization(db, paused.orgId, { since: now, reason: 'a test' });
    await clock.jump('2s');
    world.dns.set({ 'shut.invalid': { MX: ['10 mx1.invalid'] } });
    await world.send({ to: 'ann@shut.invalid' });
    await paused.send({ to: 'ann@there.invalid' });
    await world.send({
      to: 'ann@there.invalid',
      subject: 'later',
      scheduledAt: new Date(farOff).toISOString(),
    });
    // The circuit's probes come to be minutes apart, and so do the next attempts.
    for (let step = 0; step < 8; step++) {
      await clock.jump('5m');
      await sleep(stillMs);
      await atRest(world);
    }
    await assertStill(t, world);
    const seconds = 15;
    const passSeconds = async () => {
      for (let second = 0; second < seconds; second++) {
        await clock.advance('1s');
        await sleep(20);
      }
    };
    // Those that have just changed something are followed by a look, and some by a scan.
    await passSeconds();
    // The leases, the databases' clocks and maintenance have times of their own.
    let woken = Number.POSITIVE_INFINITY;
    await until(
      async () => {
        woken = await wakeUpsOf(world);
        return woken <= 60 + 10;
      },
      { what: () => `a minute of 60 wake-ups; ${woken}` },
    );
    // On PostgreSQL the other tests' databases change as well, and a node says now and then that it is alive.
    let written = '';
    await untilQuiet(
      t,
      world,
      async () => {
        written = await changeToken(db);
        await passSeconds();
      },
      async ({ all, claims }) =>
        claims === 0 && (kind === 'postgres' || (all <= 5 && (await changeToken(db)) === written)),
    );
  });
}

test('a past time of the next probe makes no poll: a suspended destination with an open circuit', async (t) => {
  const world = await startWorld(t, { exchangers: [{ script: { connect: () => 'close' } }] });
  for (let n = 0; n < 8; n++) await world.send({ to: `n${n}@there.invalid`, subject: `${n}` });
  await until(async () => (await attemptsOf(world)) >= 5, { what: 'the circuit to open' });
  await atRest(world);
  const createdAt = world.clock.now();
  const suspension = { destination: 'there.invalid', reason: 'a test', createdAt };
  await suspend(world.db, { ...suspension, until: createdAt + 3_600_000 });
  await world.clock.jump('2s');
  await assertStill(t, world);
  await world.clock.jump('10m');
  await assertStill(t, world);
  // The rounds of a second follow one another, however long each of them takes.
  const passSecond = async () => {
    for (let ms = 0; ms < 1000; ms += 10) {
      await world.clock.advance(10);
      await sleep(1);
    }
  };
  await untilQuiet(t, world, passSecond, ({ all }) => all < 60);
  await assertStill(t, world);
});

test('mail that has moved to a destination with one connection is leased as that one takes it', async (t) => {
  const shapingFile = join(await temporaryDirectory(t), 'shaping.jsonc');
  await writeFile(shapingFile, '{ "rules": [{ "mx": "mx2.invalid", "connections": 1 }] }');
  const all = Array.from({ length: 30 }, (_, n) => `d${n}.invalid`);
  const zoneTo = (mx: string) => Object.fromEntries(all.map((domain) => [domain, { MX: [`10 ${mx}`] }]));
  const world = await startWorld(t, {
    exchangers: [{ script: { connect: () => 'close' } }, { script: { greeting: () => 'hang' } }],
    zone: zoneTo('mx1.invalid'),
    settings: { POSTERN_SHAPING_FILE: shapingFile },
  });
  for (const domain of all) await world.send({ to: `ann@${domain}`, subject: domain });
  await until(async () => (await attemptsOf(world)) >= 5, { what: 'the circuit to open' });
  await atRest(world);
  world.dns.set(zoneTo('mx2.invalid'));
  let leased = 0;
  for (let step = 0; step < 6 || leased === 0; step++) {
    await world.clock.jump('2m');
    for (let look = 0; look < 10; look++) {
      await sleep(30);
      const rows = await world.db('deliveries').where({ status: 'sending' });
      leased = Math.max(leased, rows.length);
    }
  }
  t.true(leased <= 4, `${leased} are leased for one connection`);
  await world.mx[1]!.close();
});
