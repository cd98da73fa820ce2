/** Nothing gets out of this server: port 25 closed, by a refusal or in silence, or no DNS. And what only looks like it. */
import { stripVTControlCharacters } from 'node:util';
import test, { type ExecutionContext } from 'ava';
import { createBrowser, setUp } from '#lab/browser/browser.ts';
import { cliOf } from '#lab/cli.ts';
import { startSilent } from '#lab/mx/silent.ts';
import { startWorld, type World, type WorldOptions } from '#lab/scenes/world.ts';
import { until as eventually } from '#lab/until.ts';
import type { ProblemCause } from '#mail/deliver/problem-cause.ts';
import { DestinationHealth } from '#mail/record/destination-health.ts';
import type { SilentDestination } from '#mail/record/rows/destination-status-rows.ts';
import { noWaysOut } from '#operate/condition/no-way-out.ts';
import type { Attempt } from '#platform/values/glossary.ts';

const minute = 60_000;
const names = ['one', 'two', 'three', 'four', 'five', 'six', 'seven'];
const domainOf = (name: string) => `${name}.invalid`;
/** Nobody listens there. */
const hostOf = (at: number) => `127.0.1.${at + 1}`;

interface Entry {
  cause: string;
  severity: string;
  subject: string;
  since: string;
  figure: string;
  command: string;
  waiting: number;
}

interface Told {
  verdict: string;
  code: number;
  needs: Entry[];
  folded: Entry[];
}

/** Seven domains, each with a host of its own, and `there.invalid`, whose host answers. */
async function start(t: ExecutionContext, options: WorldOptions = {}) {
  const hosts = names.map((name, at) => [`mx.${domainOf(name)}`, { A: [hostOf(at)] }]);
  const mx = names.map((name) => [domainOf(name), { MX: [`10 mx.${domainOf(name)}`] }]);
  const world = await startWorld(t, {
    ...options,
    zone: Object.fromEntries([...hosts, ...mx]),
    settings: { POSTERN_MTA_TIMEOUTS: 'connect=1s greeting=1s', ...options.settings },
  });
  const { cli, onTerminalOf, json } = cliOf(t, world, world.clock);
  const status = async (): Promise<Told> => {
    const { stdout, code } = await cli('status --json');
    return { code, ...JSON.parse(stdout.toString()) };
  };
  let told: Told;
  const holdsNow = async (holds: (told: Told) => boolean) => {
    told = await status();
    return holds(told) && told;
  };
  const until = (holds: (told: Told) => boolean) =>
    world.clock.passUntil(() => holdsNow(holds), { what: () => JSON.stringify(told, null, 1) });
  return {
    world,
    status,
    until,
    json,
    screen: async () => stripVTControlCharacters((await onTerminalOf(80, 24)('status')).stdout.toString()),
    sendTo: (some = names) =>
      Promise.all(some.flatMap((name) => [1, 2].map((n) => world.send({ to: `${n}@${domainOf(name)}` })))),
  };
}

const isClosed = ({ needs }: Told) => needs[0]?.cause === 'no_way_out';

function deliveryTo(world: World, domain: string) {
  return world.db('deliveries').where({ domain }).first();
}

const closings: [
  how: string,
  figure: RegExp,
  category: string,
  close: (t: ExecutionContext, world: World) => Promise<unknown>,
][] = [
  ['refused', /^14 waiting, port \d+ to all 7 hosts is refused or silent$/, 'network', async () => {}],
  [
    'silent',
    /^14 waiting, port \d+ to all 7 hosts is refused or silent$/,
    'network',
    async (t, world) => {
      const silent = await startSilent(
        names.map((_, at) => hostOf(at)),
        world.config.mtaPort,
      );
      t.teardown(silent.close);
    },
  ],
  [
    'no DNS',
    /^14 waiting, our DNS resolver does not answer for any of 7 domains$/,
    'resolver',
    async (_, world) => world.dns.close(),
  ],
];

for (const [how, figure, category, close] of closings) {
  test(`${how}: there is one entry, the destinations are folded below it, and it is so after a restart`, async (t) => {
    const { world, status, until, screen, sendTo, json } = await start(t);
    const browser = createBrowser(world);
    await setUp(browser, world);
    await close(t, world);
    const began = world.clock.now();
    await sendTo();
    const told = await until(
      (one) => isClosed(one) && one.folded.length === names.length && figure.test(one.needs[0]!.figure),
    );
    t.is(told.verdict, 'needs_attention');
    t.is(told.code, 1);
    t.is(told.needs.length, 1, JSON.stringify(told.needs));
    const [need] = told.needs;
    t.like(need, { severity: 'act', command: 'postern doctor' });
    // On PostgreSQL there may be several nodes.
    t.regex(need!.subject, /^(this server|node \S+)$/);
    t.true(Date.parse(need!.since) >= began && Date.parse(need!.since) <= world.clock.now());
    t.deepEqual(
      told.folded.map(({ waiting }) => waiting),
      names.map(() => 2),
    );
    for (const row of await json('queue summary')) t.regex(row.condition.text, /^no way out since /);
    const { email_id } = await deliveryTo(world, 'one.invalid');
    const [{ condition, why }] = (await json(`email why ${email_id}`)).recipients;
    t.is(condition.cause, 'no_way_out');
    t.regex(why, /cannot be reached, and no other server can/);
    t.notRegex(why, /remote side/);
    const page = (await browser.get(`/dashboard/o/${world.orgId}`)).text;
    t.regex(page, /No way out: (this server|node )/);
    t.is(page.split('This server cannot reach other mail servers').length, 2, 'once for all of them');
    const trouble = /trouble_since_seconds\{destination="(?:mx\.)?one\.invalid",cause="no_way_out"\} \d/;
    // The database is read for a scrape at most every five seconds.
    const metrics = await eventually(
      async () => {
        const text = await (await fetch(`${world.url()}/metrics`)).text();
        return trouble.test(text) && text;
      },
      { what: 'the metrics to say so' },
    );
    t.regex(metrics, /postern_status_needs\{severity="act"\} 1\n/);
    t.regex(metrics, new RegExp(`postern_outcomes_total{outcome="deferred",category="${category}"} [1-9]`));
    const shown = await screen();
    if (process.env.SHOW_STATUS) console.log(`${how}\n${shown}`);
    t.regex(shown, /^1 problem needs action\.\n\n✗ no way out .* for /);
    for (const line of shown.split('\n')) t.true(line.length <= 80, line);

    await world.restart();
    t.true(isClosed(await until(isClosed)));
    t.is((await status()).needs[0]!.since, need!.since);
  });
}

test('a mail that is delivered ends "no way out" at once, and what fails after that is a trouble of its destination', async (t) => {
  const { world, until, sendTo, json } = await start(t);
  await sendTo(['one', 'two']);
  t.is((await until(isClosed)).needs.length, 1);
  const { body } = await world.send({ to: 'ann@there.invalid' });
  await world.passUntil(body.emailId, ({ status }) => status === 'delivered');
  const told = await until(({ needs }) => needs.length === 2);
  t.deepEqual(
    told.needs.map(({ cause }) => cause),
    ['unreachable', 'unreachable'],
  );
  t.deepEqual(told.folded, []);
  t.is(told.code, 0);
  // Their next attempts fail too. The clock waits for each: what is tried much later than it was due is a trouble that begins.
  for (const attempts of [2, 3]) {
    const deferred = () => world.db('deliveries').where({ status: 'deferred' });
    const [due] = await deferred().orderBy('due_at', 'desc').pluck('due_at');
    await world.clock.advance(Number(due) - world.clock.now());
    const haveFailed = async () => (await deferred().where({ attempts })).length === 4;
    await world.clock.passUntil(haveFailed, { step: 100, what: `attempt ${attempts} of all` });
  }
  t.false(isClosed(await until(({ needs }) => needs.length === 2)));
  for (const row of await json('queue summary')) t.regex(row.condition.text, /^unreachable since /);
});

test('if our resolver fails after the port was closed, that is the fault, and only what was tried since counts', (t) => {
  const tried = (destination: string, cause: ProblemCause, since: number, at = since): SilentDestination => {
    const own = { cause, since, at, silentSince: 'since' } as const;
    const problem = { ...own, category: 'network', count: 1, reply: '', host: null, bouncedAt: null };
    return { node: 'one', destination, problem };
  };
  const refused = [
    tried('mx.a.invalid', 'unreachable', 1000, 2000),
    tried('mx.b.invalid', 'unreachable', 1500),
  ];
  const unresolved = [
    tried('a.invalid', 'resolver_failing', 3000),
    tried('b.invalid', 'resolver_failing', 4000),
  ];
  const faults = (...silent: SilentDestination[]) =>
    noWaysOut(silent).map(({ cause, since, destinations }) => [cause, since, [...destinations]]);
  t.deepEqual(faults(...refused, ...unresolved), [['resolver', 3000, ['a.invalid', 'b.invalid']]]);
  t.deepEqual(faults(...refused, unresolved[0]!), [
    ['port', 1000, ['mx.a.invalid', 'mx.b.invalid', 'a.invalid']],
  ]);
  const still = tried('mx.a.invalid', 'unreachable', 1000, 5000);
  t.is(faults(still, ...unresolved)[0]![0], 'port', 'a connection was tried since');
});

const attempt = (destination: string, at: number, category: string, origin: 'local' | 'remote'): Attempt => ({
  destination,
  signal: null,
  startedAt: at,
  endedAt: at,
  verdict: {
    outcome: 'deferred',
    category,
    fault: 'infrastructure',
    bounce: null,
    origin,
    diagnostic: category,
    possibleDuplicate: false,
    rule: null,
    retryAfterMs: null,
  },
  reply: null,
  mx: null,
  tls: null,
  transcript: [],
});

test('once our resolver has answered for any domain, no destination is said to have none', (t) => {
  const health = new DestinationHealth();
  const later = 60 * minute;
  health.note(attempt('a.invalid', 1000, 'resolver', 'local'), later);
  t.is(health.problem('a.invalid', 2000)?.cause, 'resolver_failing');
  health.note(attempt('mx.b.invalid', 2000, 'network', 'remote'), later);
  t.is(health.problem('a.invalid', 3000), null, 'its hosts were found in DNS');
  t.deepEqual(health.troubled(3000), ['mx.b.invalid']);
});

// Found by the simulation, with its seed 69.
test('a domain that DNS names again has no trouble, although its earlier mail still waits for its turn', (t) => {
  const health = new DestinationHealth();
  const later = 60 * minute;
  health.note(attempt('a.invalid', 1000, 'dns', 'remote'), later);
  t.is(health.problem('a.invalid', 2000)?.cause, 'dns_failing');
  health.noteResolved('b.invalid');
  t.deepEqual(health.troubled(3000), ['a.invalid']);
  health.noteResolved('a.invalid');
  t.deepEqual(health.troubled(3000), []);
});

test('a single destination that is down is not "no way out"', async (t) => {
  const { until, sendTo } = await start(t);
  await sendTo(['one']);
  const told = await until(({ needs }) => needs.length > 0);
  t.deepEqual(
    told.needs.map(({ cause, subject }) => [cause, subject]),
    [['unreachable', 'mx.one.invalid']],
  );
});

test('name servers that fail, or are silent, are not our resolver', async (t) => {
  const { world, until, json } = await start(t);
  world.dns.set({ 'one.invalid': 'SERVFAIL', 'two.invalid': 'TIMEOUT' });
  await world.send({ to: 'ann@there.invalid' });
  for (const name of ['one', 'two']) await world.send({ to: `ann@${name}.invalid` });
  const told = await until(({ needs }) => needs.length === 2);
  t.deepEqual(
    told.needs.map(({ cause }) => cause),
    ['dns_failing', 'dns_failing'],
  );
  const { email_id } = await deliveryTo(world, 'one.invalid');
  const [{ why, evidence }] = (await json(`email why ${email_id}`)).recipients;
  t.regex(why, /SERVFAIL from the name servers of one\.invalid/);
  t.regex(JSON.stringify(evidence), /SERVFAIL/);
});

test('mail whose domain got a host, or lost it, is counted under one name', async (t) => {
  const { world, until, sendTo } = await start(t);
  world.dns.set({ 'one.invalid': 'SERVFAIL' });
  await world.send({ to: 'ann@there.invalid' });
  await sendTo(['one']);
  await until(({ needs }) => needs.some(({ subject }) => subject === 'one.invalid'));
  world.dns.set({ 'one.invalid': { MX: ['10 mx.one.invalid'] } });
  const told = await until(({ needs }) => needs.some(({ subject }) => subject === 'mx.one.invalid'));
  t.is(
    told.needs.reduce((sum, { waiting }) => sum + waiting, 0),
    2,
    JSON.stringify(told.needs),
  );
});
