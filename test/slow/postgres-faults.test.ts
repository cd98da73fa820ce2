/**
 * PostgreSQL and several nodes under faults that an operator or another program causes: what is promised holds, and errors say
 * what to do.
 */
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import net from 'node:net';
import test, { type ExecutionContext } from 'ava';
import { Secret, TOTP } from 'otpauth';
import pg from 'pg';
import { makeSetUpLink } from '#accounts/people/people.ts';
import { setLimits } from '#accounts/rows/organizations.ts';
import { createSeal } from '#accounts/seal.ts';
import { createBrowser, setUp, signIn } from '#lab/browser/browser.ts';
import { createMigrated } from '#lab/database/databases.ts';
import { startPostgres } from '#lab/database/postgres.ts';
import { memoryLog, temporaryDirectory } from '#lab/evidence.ts';
import { sharedSecret, startNode } from '#lab/scenes/nodes.ts';
import { startProcess } from '#lab/scenes/process.ts';
import { startWorld, testSettings, type World } from '#lab/scenes/world.ts';
import { threadsHere } from '#lab/threads-here.ts';
import { until } from '#lab/until.ts';
import { checkDatabase } from '#operate/doctor/checks/database.ts';
import { systemClock } from '#platform/base/clock.ts';
import { loadSecrets } from '#platform/base/secrets.ts';
import { start } from '#server/start.ts';

/** A migrated database whose tables belong to a user of its own; `admin` is connected as another one. */
async function createOwned(t: ExecutionContext, terms = '') {
  const { url, drop } = await createMigrated('postgres', await temporaryDirectory(t));
  const admin = new pg.Client({ connectionString: url! });
  await admin.connect();
  const user = `user_${randomBytes(4).toString('hex')}`;
  await admin.query(`create role ${user} login password 'x' ${terms}`);
  await admin.query(`grant all on schema public to ${user}`);
  const { rows } = await admin.query(
    `select relname as name from pg_class where relnamespace = 'public'::regnamespace and relkind in ('r', 'p')`,
  );
  for (const { name } of rows) await admin.query(`alter table ${name} owner to ${user}`);
  t.teardown(async () => {
    await admin.end();
    await drop();
  });
  const own = new URL(url!);
  [own.username, own.password] = [user, 'x'];
  return { admin, user, url: own.href };
}

const launch = (world: World) => start(world.config, { log: memoryLog().log, ...threadsHere });

async function sendBy(url: string, { key }: World, fields: object) {
  const response = await fetch(`${url}/api/public/email/send`, {
    method: 'POST',
    headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
    body: JSON.stringify({ from: 'app@sender.invalid', subject: 'Hello', text: 'Hello', ...fields }),
  });
  // biome-ignore lint/suspicious/noExplicitAny: what the API says is what the tests look at
  return { status: response.status, body: (await response.json()) as any };
}

/** A node in a process of its own, by a clock that differs from the machine's. */
async function startAt(t: ExecutionContext, world: World, aheadMs: number) {
  const { databaseUrl, secret } = world.config;
  const environment = {
    dataDir: await temporaryDirectory(t),
    databaseUrl,
    dns: world.dns,
    mtaPort: world.mx[0]!.port,
  };
  const settings = testSettings(environment, { POSTERN_SECRET: secret!, POSTERN_LOG_LEVEL: 'info' });
  const clock = `const now = Date.now; Date.now = () => now() + ${aheadMs};`;
  const node = await startProcess(settings, [
    '--import',
    `data:text/javascript,${encodeURIComponent(clock)}`,
  ]);
  t.teardown(() => node.end('SIGKILL'));
  return node;
}

test('a user without the rights to one table is named at the start and by the doctor, with what to run', async (t) => {
  const { admin, user, url } = await createOwned(t);
  const world = await startWorld(t, { databaseUrl: url });
  await world.stop();
  for (const [table, right] of [
    ['suspensions', 'SELECT'],
    ['events', 'INSERT'],
    ['nodes', 'DELETE'],
  ]) {
    await admin.query(`revoke ${right} on ${table} from ${user}`);
    const sentence = `the user "${user}" of POSTERN_DATABASE_URL has no right to ${right} on the table ${table}; `;
    const { message } = (await t.throwsAsync(launch(world)))!;
    t.true(message.startsWith(sentence), message);
    t.like(await checkDatabase(async () => world.db), { verdict: 'failure' });
    const [, cure] = /owner run: (.*)$/.exec(message)!;
    await admin.query(cure!);
    await (await launch(world)).stop();
  }
});

test('a database that accepts no writes: 500, nothing is charged or kept, and all goes on by itself', async (t) => {
  const { admin, user, url } = await createOwned(t);
  const world = await startWorld(t, {
    databaseUrl: url,
    overrides: { clock: systemClock },
    tenant: { quota: 10 },
  });
  t.is((await world.send({ to: 'before@there.invalid' })).status, 200);
  const setReadOnly = async (value: string) => {
    await admin.query(`alter role ${user} set default_transaction_read_only = ${value}`);
    await admin.query('select pg_terminate_backend(pid) from pg_stat_activity where usename = $1', [user]);
  };
  await setReadOnly('on');
  for (let n = 0; n < 5; n++) {
    const { status, body } = await world.send({ to: `n${n}@there.invalid` });
    t.deepEqual([status, body.error], [500, 'SEND_FAILED']);
  }
  t.regex(
    (await t.throwsAsync(
      launch({ ...world, config: { ...world.config, dataDir: await temporaryDirectory(t) } }),
    ))!.message,
    /accepts no writes, because default_transaction_read_only is on; turn it off/,
  );
  await setReadOnly('off');
  const after = await until(async () => {
    const answer = await world.send({ to: 'after@there.invalid' });
    return answer.status === 200 && answer;
  });
  await world.when(after.body.emailId, ({ status }) => status === 'delivered');
  const { rows } = await admin.query('select distinct recipient from deliveries order by recipient');
  t.deepEqual(
    rows.map(({ recipient }) => recipient),
    ['after@there.invalid', 'before@there.invalid'],
  );
  const { rows: charged } = await admin.query(
    `select sum(change)::int as sum from credit_entries where reason = 'send'`,
  );
  t.is(charged[0].sum, -2);
});

test('a failover: while the standby is read-only sends are refused, and after its promotion all goes on by itself', async (t) => {
  t.timeout(120_000);
  const primary = await startPostgres(await temporaryDirectory(t), { wal_level: 'replica' });
  t.teardown(primary.stop);
  const standby = await primary.startStandby();
  const address = await startSwitch(t, primary.url);
  const world = await startWorld(t, {
    databaseUrl: address.url,
    overrides: { clock: systemClock },
    tenant: { quota: 10 },
  });
  const before = await world.send({ to: 'before@there.invalid' });
  await world.when(before.body.emailId, ({ status }) => status === 'delivered');
  const follower = new pg.Client({ connectionString: standby.url });
  await follower.connect();
  t.teardown(() => follower.end());
  await until(
    async () => (await follower.query('select status from deliveries')).rows[0]?.status === 'delivered',
  );
  await primary.end('SIGKILL');
  t.is((await world.send({ to: 'away@there.invalid' })).status, 500);
  address.leadTo(standby.url);
  const refused = await until(async () => {
    const { status, body } = await world.send({ to: 'during@there.invalid' });
    return status === 500 && body;
  });
  t.is(refused.error, 'SEND_FAILED');
  const config = { ...world.config, dataDir: await temporaryDirectory(t) };
  t.regex(
    (await t.throwsAsync(launch({ ...world, config })))!.message,
    /accepts no writes, because it is a standby/,
  );
  await follower.query('select pg_promote()');
  const after = await until(async () => {
    const answer = await world.send({ to: 'after@there.invalid' });
    return answer.status === 200 && answer;
  });
  await world.when(after.body.emailId, ({ status }) => status === 'delivered');
  const { rows } = await follower.query('select distinct recipient from deliveries order by recipient');
  t.deepEqual(
    rows.map(({ recipient }) => recipient),
    ['after@there.invalid', 'before@there.invalid'],
  );
  const { rows: charged } = await follower.query(
    `select sum(change)::int as sum from credit_entries where reason = 'send'`,
  );
  t.is(charged[0].sum, -2);
});

/** A name or an address that can lead to another server, as operators have for a failover. Connections are cut then. */
async function startSwitch(t: ExecutionContext, first: string) {
  const sockets = new Set<net.Socket>();
  let target = new URL(first);
  const server = net.createServer((client) => {
    const far = net.connect(Number(target.port), target.hostname);
    for (const [one, other] of [
      [client, far],
      [far, client],
    ] as const) {
      sockets.add(one);
      one.on('error', () => {}).on('close', () => other.destroy());
      one.pipe(other);
    }
  });
  await once(server.listen(0, '127.0.0.1'), 'listening');
  t.teardown(() => server.close());
  const url = new URL(first);
  url.port = String((server.address() as net.AddressInfo).port);
  return {
    url: url.href,
    leadTo(next: string) {
      target = new URL(next);
      for (const socket of sockets) socket.destroy();
    },
  };
}

test('with ten connections, all that is sent at once is accepted and delivered; a node without any says what to do', async (t) => {
  const { url, admin } = await createOwned(t, 'connection limit 10');
  const world = await startWorld(t, { databaseUrl: url, overrides: { clock: systemClock } });
  const answers = await Promise.all(
    Array.from({ length: 100 }, (_, n) => world.send({ to: `n${n}@there.invalid`, subject: `${n}` })),
  );
  t.deepEqual([...new Set(answers.map(({ status }) => status))], [200]);
  const others = Array.from({ length: 10 }, () => new pg.Client({ connectionString: url }));
  await Promise.allSettled(others.map((one) => one.connect()));
  const config = { ...world.config, dataDir: await temporaryDirectory(t) };
  const { message } = (await t.throwsAsync(launch({ ...world, config })))!;
  t.regex(message, /too many connections for role .*; raise max_connections or the user's CONNECTION LIMIT/);
  await Promise.allSettled(others.map((one) => one.end()));
  await until(async () => {
    const { rows } = await admin.query(
      `select count(*)::int as n from deliveries where status = 'delivered'`,
    );
    return rows[0].n === 100;
  });
});

test('clocks that are five minutes apart: limits, duplicates, leases and codes are as with one clock', async (t) => {
  t.timeout(120_000);
  const gate = Promise.withResolvers<undefined>();
  const world = await startWorld(t, {
    database: 'postgres',
    settings: sharedSecret,
    exchangers: [{ script: { dot: () => gate.promise } }],
  });
  await world.stop();
  const [slow, fast] = await Promise.all([startAt(t, world, -150_000), startAt(t, world, 150_000)]);
  for (const { lines } of [slow, fast])
    t.true(lines.some((line) => line.includes("PostgreSQL's, whose time is used")));

  const both = [slow, fast, slow, fast].map(({ url }) => sendBy(url, world, { to: 'ann@there.invalid' }));
  const ids = (await Promise.all(both)).map(({ body }) => body.emailId);
  t.is(new Set(ids).size, 1, 'the same mail within two seconds is one');

  await until(() => world.mx[0]!.sessions.length > 0);
  // The other node looks once a second.
  await until(
    async () =>
      (await world.db('nodes').where('at', '>', Date.now() + 3_000 - 1_000)).length === 0 &&
      (await world.db('nodes')).length === 2,
  );
  await new Promise((resolve) => setTimeout(resolve, 4_000));
  const deliveries = await world.db('deliveries').select('status', 'attempts');
  t.deepEqual(deliveries, [{ status: 'sending', attempts: 0 }]);
  t.is(await world.db('attempts').then((rows) => rows.length), 0, 'no node took it from the other');
  gate.resolve(undefined);
  await until(async () => (await world.db('deliveries').first('status')).status === 'delivered');
  t.is(world.mx[0]!.messages.length, 1);

  // A phone goes by the right time, and so does PostgreSQL.
  await world.db('users').del();
  const secret = new Secret({ size: 20 });
  const link = await makeSetUpLink(world.db, Date.now());
  const browser = createBrowser({ url: () => slow.url });
  await setUp(browser, { setUpUrl: () => slow.url + link!.path });
  const sealed = createSeal(loadSecrets(world.config)).close(secret.base32);
  await world.db('users').update({ totp_secret: sealed });
  const statusAt = async (url: string, token: string) => {
    const phone = createBrowser({ url: () => url });
    await signIn(phone, 'olga@postern.invalid');
    return (await phone.submit('/code', { code: token })).status;
  };
  const totp = new TOTP({ secret });
  const code = totp.generate();
  t.is(await statusAt(slow.url, code), 200);
  t.is(await statusAt(fast.url, code), 422, 'a code is taken once, by either node');
  t.is(await statusAt(fast.url, totp.generate({ timestamp: Date.now() + 30_000 })), 200, 'the next one');
  t.is(await statusAt(fast.url, totp.generate({ timestamp: Date.now() + 150_000 })), 422);

  await setLimits(world.db, world.orgId, { requestsPerSecond: 5, requestsPerDay: null });
  await new Promise((resolve) => setTimeout(resolve, 2_500));
  const begun = Date.now();
  const answers = await Promise.all(
    Array.from({ length: 40 }, (_, n) =>
      sendBy([slow, fast][n % 2]!.url, world, { to: 'bob@there.invalid', subject: `${n}` }),
    ),
  );
  const seconds = Math.ceil((Date.now() - begun) / 1000) + 1;
  t.true(
    answers.filter(({ status }) => status === 200).length <= 5 * seconds,
    'the limit of a second is one for both',
  );
});

test('a node that stood still longer than its lease overwrites nothing, and goes on', async (t) => {
  t.timeout(120_000);
  const gate = Promise.withResolvers<undefined>();
  let dots = 0;
  const dot = () => (dots++ === 0 ? gate.promise : undefined);
  const world = await startWorld(t, {
    database: 'postgres',
    settings: sharedSecret,
    exchangers: [{ script: { dot } }],
  });
  await world.stop();
  const stalled = await startAt(t, world, 0);
  const { body } = await sendBy(stalled.url, world, { to: 'ann@there.invalid' });
  await until(() => dots === 1);
  process.kill(stalled.pid, 'SIGSTOP');
  t.teardown(() => process.kill(stalled.pid, 'SIGCONT'));
  await world.restart();
  const isDelivered = async (id: string) => (await world.get(id)).status === 'delivered';
  await world.clock.passUntil(() => isDelivered(body.emailId), { step: '5s' });
  const before = await world.get(body.emailId);
  t.is(before.recipients[0].attempts, 2);
  process.kill(stalled.pid, 'SIGCONT');
  gate.resolve(undefined);
  const next = await until(() =>
    sendBy(stalled.url, world, { to: 'bob@there.invalid' }).then((one) => one.status === 200 && one),
  );
  await world.clock.passUntil(() => isDelivered(next.body.emailId), { step: '1s' });
  t.deepEqual(
    (await world.get(body.emailId)).recipients,
    before.recipients,
    'what its successor recorded stays',
  );
});

test('a flood of notifications, ours and foreign ones, delays no send', async (t) => {
  const world = await startWorld(t, {
    database: 'postgres',
    settings: sharedSecret,
    overrides: { clock: systemClock },
  });
  await startNode(t, world);
  const client = new pg.Client({ connectionString: world.config.databaseUrl! });
  await client.connect();
  t.teardown(() => client.end());
  const flood = `select pg_notify('postern', case i % 3 when 0 then repeat('x', 7000) when 1 then '{"from":1}'
    else format('{"from":"%s","events":true,"lanes":[["%s.invalid","o"]]}', i, i) end) from generate_series(1, 5000) i`;
  let sent = 0;
  const medianOf = async (count: number) => {
    const took: number[] = [];
    for (let n = 0; n < count; n++) {
      const begun = performance.now();
      t.is((await world.send({ to: `n${sent++}@there.invalid` })).status, 200);
      took.push(performance.now() - begun);
    }
    return took.sort((a, b) => a - b)[Math.floor(count / 2)]!;
  };
  const before = await medianOf(21);
  const flooding = client.query(`${flood}; ${flood}; ${flood}`);
  const during = await medianOf(41);
  await flooding;
  // Both on the same machine, however busy it is; a send that waited for the flood would take far longer.
  t.true(
    during < 10 * before + 500,
    `${Math.round(before)} ms before, ${Math.round(during)} ms during the flood`,
  );
  await until(async () => (await world.db('deliveries').whereNot({ status: 'delivered' })).length === 0);
});
