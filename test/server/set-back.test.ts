/** A clock that is set back: it is noticed, and what waits does not wait for the hours of the clock before. */
import test from 'ava';
import { rotateKey } from '#accounts/create-key.ts';
import { invite } from '#accounts/people/people.ts';
import { inviteMember } from '#accounts/people/team.ts';
import { listKeys } from '#accounts/rows/keys.ts';
import { insertSession } from '#accounts/rows/sessions-table.ts';
import { manualClock } from '#lab/clock.ts';
import { memoryLog } from '#lab/evidence.ts';
import { startProcess } from '#lab/scenes/process.ts';
import { startWebhookWorld } from '#lab/scenes/webhook-world.ts';
import { startWorld } from '#lab/scenes/world.ts';
import { until } from '#lab/until.ts';
import { readStatus } from '#operate/status/read-status.ts';
import { newId } from '#platform/base/id.ts';
import { watchClock } from '#server/clock-jump.ts';

test('a jump of a minute is noticed, each time; less is not', async (t) => {
  const clock = manualClock();
  const noticed: number[] = [];
  watchClock(clock, (byMs) => noticed.push(byMs));
  await clock.advance('10s');
  clock.setBack('50s');
  await clock.advance('10s');
  await clock.jump('50s');
  await clock.advance('10s');
  t.deepEqual(noticed, []);
  for (const by of ['3h', '2m'] as const) {
    clock.setBack(by);
    await clock.advance('10s');
  }
  await clock.jump('1d');
  await clock.advance('10s');
  t.deepEqual(noticed, [-(3 * 3_600_000 - 1000), -(2 * 60_000 - 1000), 86_400_000 - 1000]);
});

test('started with the clock set back, mail that waits is tried, and webhooks', async (t) => {
  const { world, endpoint } = await startWebhookWorld(t, {
    exchangers: [{ script: { rcpt: ({ attempt }) => (attempt === 1 ? '451 4.3.0 later' : undefined) } }],
    settings: { POSTERN_MTA_RETRY: '30m' },
  });
  const { receiver } = await endpoint(['email.deferred']);
  receiver.answer = (_request, response) => response.writeHead(503, { 'retry-after': '3600' }).end();
  const { emailId } = (await world.send({ to: 'ann@there.invalid' })).body;
  await world.when(emailId, ({ status }) => status === 'deferred');
  const minutes = async (condition: () => Promise<boolean>) => {
    const from = world.clock.now();
    await until(async () => {
      if (await condition()) return true;
      if (world.clock.now() < from + 600_000) await world.clock.advance('1s');
      return false;
    });
  };
  await minutes(async () => (await world.db('webhook_attempts')).length === 1);
  receiver.answer = (_request, response) => response.writeHead(204).end();

  world.clock.setBack('3h');
  await world.restart();
  await minutes(async () => (await world.get(emailId)).status === 'delivered');
  await minutes(async () => receiver.requests.some(({ status }) => status === 204));
  t.is(world.mx[0]!.messages.length, 1);
  t.is((await world.db('webhooks').first()).status, 'active');
});

test('started again with a clock that is right, what waits goes on waiting', async (t) => {
  const world = await startWorld(t, {
    exchangers: [{ script: { rcpt: () => '451 4.3.0 later' } }],
    settings: { POSTERN_MTA_RETRY: '30m' },
  });
  const { emailId } = (await world.send({ to: 'ann@there.invalid' })).body;
  await world.when(emailId, ({ status }) => status === 'deferred');
  const due = async () => (await world.db('deliveries').first()).due_at;
  const before = await due();
  world.clock.setBack('30s');
  await world.restart();
  await world.stop();
  t.is(await due(), before);
});

test('what lies in the future at a start is now: nothing fails, is paused or was seen since a time to come', async (t) => {
  const { world, add } = await startWebhookWorld(t);
  const { db, clock, orgId } = world;
  await add('https://app.invalid/');
  const ahead = clock.now() + 7_200_000;
  await db('webhooks').update({ failing_since: ahead });
  await db('domains').update({ check_at: clock.now() + 365 * 86_400_000, failing_since: ahead });
  await db('organizations').update({ paused_at: ahead, paused_reason: 'x' });
  await db('certificates').insert({
    host: 'mail.there.invalid',
    purpose: 'server',
    attempt_at: clock.now() + 365 * 86_400_000,
    failures: 3,
    failing_since: ahead,
    wanted_at: clock.now(),
    updated_at: ahead,
  });
  await world.restart();
  const now = clock.now();
  t.is((await db('webhooks').first()).failing_since, now);
  t.is((await db('organizations').where({ id: orgId }).first()).paused_at, now);
  t.true((await db('domains').first()).failing_since <= now);
  t.true((await db('domains').first()).check_at <= now + 86_400_000);
  const [certificate] = await db('certificates');
  t.deepEqual([certificate.attempt_at, certificate.failing_since, certificate.updated_at], [now, now, now]);
});

test('rights that a clock has given while it was ahead last as long as if it had been right', async (t) => {
  const world = await startWorld(t);
  const { db, clock, orgId } = world;
  const hour = 3_600_000;
  await world.clock.jump('30d');
  const ahead = clock.now();
  const { userId } = await invite(
    db,
    { email: 'ann@there.invalid', name: 'Ann', isOperator: false, member: null },
    ahead,
  );
  await inviteMember(
    db,
    { orgId, email: 'ben@there.invalid', name: 'Ben', role: 'owner' },
    { now: ahead, byOperator: false },
  );
  const session = { hash: 'x', userId, address: '', agent: '', expiresAt: ahead + 30 * 24 * hour };
  await insertSession(db, session, ahead);
  const [old] = await listKeys(db, orgId);
  await rotateKey(db, old!, ahead, hour);
  world.clock.setBack('30d');
  await world.restart();
  const now = clock.now();
  const endsIn = async (table: string, column = 'expires_at') =>
    (await db(table).whereNotNull(column).pluck(column)).map((end) => Math.round((end - now) / hour)).sort();
  t.deepEqual(await endsIn('sessions'), [30 * 24]);
  t.deepEqual(await endsIn('invitations'), [7 * 24]);
  t.deepEqual(
    [...new Set(await endsIn('one_time_tokens'))].sort(),
    [24, 7 * 24].sort(),
    'to set up; an invitation',
  );
  t.deepEqual(await endsIn('api_keys', 'ends_at'), [1]);
});

test('a quota that a clock has renewed while it was ahead is renewed in time again', async (t) => {
  const world = await startWorld(t, { tenant: { quota: 1 } });
  const { clock } = world;
  const send = async () => (await world.send({ to: 'ann@there.invalid', subject: newId() })).status;
  t.is(await send(), 200);
  t.is(await send(), 402);
  await clock.jump('365d');
  t.is(await send(), 200);
  clock.setBack('365d');
  await world.restart();
  t.is(await send(), 402);
  await clock.jump('32d');
  t.is(await send(), 200);
});

test('what has become old by a leap is deleted an hour later: the clock may be set right by then', async (t) => {
  const { db, clock, orgId, ...world } = await startWorld(t);
  const { emailId } = (await world.send({ to: 'ann@there.invalid', idempotencyKey: 'once' })).body;
  await world.when(emailId, ({ status }) => status === 'delivered');
  const bounce = { id: emailId, org_id: orgId, address_key: 'ann@there.invalid', email_id: emailId };
  await db('soft_bounces').insert({ ...bounce, created_at: clock.now(), bounced_at: clock.now() });
  const tables = ['idempotency', 'one_time_tokens', 'events', 'soft_bounces'];
  const kept = async () => Promise.all(tables.map((table) => db(table).select(db.raw('1'))));
  const before = (await kept()).map(({ length }) => length);
  await clock.jump('3650d');
  await world.noteLeap(3650 * 86_400_000);
  await clock.advance('50m');
  t.deepEqual(
    (await kept()).map(({ length }) => length),
    before,
  );
  await clock.passUntil(async () => (await kept()).every(({ length }) => length === 0));
});

test('a machine that sleeps for minutes deletes what is old all the same', async (t) => {
  const { db, clock, ...world } = await startWorld(t);
  const { emailId } = (await world.send({ to: 'ann@there.invalid' })).body;
  await world.when(emailId, ({ status }) => status === 'delivered');
  await clock.jump('3650d');
  await world.noteLeap(61_000);
  const until = clock.now() + 3_600_000;
  await clock.passUntil(async () => (await db('events').first('id')) === undefined);
  t.true(clock.now() < until, 'before an hour is over');
});

test('a leap forward is logged, and no webhook has failed or waited for longer by that', async (t) => {
  const { log, text } = memoryLog();
  const { world, endpoint } = await startWebhookWorld(t, { overrides: { log } });
  const { clock, db } = world;
  const { receiver } = await endpoint();
  receiver.answer = (_request, response) => response.writeHead(503).end();
  await world.send({ to: 'ann@there.invalid' });
  const failingSince = async () => Number((await db('webhooks').first()).failing_since);
  await until(async () => (await failingSince()) > 0);
  const since = await failingSince();
  const begun = clock.now();
  watchClock(clock, (byMs) => void world.noteLeap(byMs));
  await clock.jump('5h');
  await until(async () => (await failingSince()) > since);
  t.true(clock.now() - (await failingSince()) < clock.now() - begun - 4 * 3_600_000);
  t.regex(text(), /the clock has leapt forward by 5 hours/);
  const { needs } = await readStatus({ db, config: world.config, now: clock.now(), served: true });
  t.is(needs.find(({ cause }) => cause === 'webhook_failing')?.severity, 'watch');
  const metrics = await (await fetch(`${world.url()}/metrics`)).text();
  const lag = Number(/^postern_webhook_lag_seconds (\S+)$/m.exec(metrics)![1]);
  t.true(lag < 3600, `${lag} s`);
  t.is((await db('webhooks').first()).status, 'active');
});

/** Sets the clock of a process back by an hour when it is told to. */
const turnable = `
  const { now } = Date;
  let backMs = 0;
  Date.now = () => now() - backMs;
  process.on('SIGUSR2', () => { backMs = 3_600_000; });
`;

test('the process starts anew by itself, and goes on serving', async (t) => {
  const { config, stop } = await startWorld(t);
  await stop();
  const settings = { POSTERN_DATA_DIR: config.dataDir };
  const preload = ['--import', `data:text/javascript,${encodeURIComponent(turnable)}`];
  const postern = await startProcess(settings, preload);
  t.teardown(() => postern.end('SIGKILL'));
  process.kill(postern.pid, 'SIGUSR2');
  const again = await until(
    () => postern.lines.map((line) => /serves again at (http:[^\s"]+)/.exec(line)?.[1]).find(Boolean),
    { what: () => postern.lines.join('\n') },
  );
  t.true(postern.lines.some((line) => line.includes('the clock was set back by 60 minutes')));
  t.is((await fetch(`${again}/health/ready`)).status, 200);
  t.is(await postern.end('SIGTERM'), 0);
});
