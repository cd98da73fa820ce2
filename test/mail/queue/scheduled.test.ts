/** Mail that is sent later: accepted and charged now, started at its time, moved and canceled until then. */
import test, { type ExecutionContext } from 'ava';
import { quotaState } from '#accounts/rows/credit-ledger.ts';
import { untilSent } from '#accounts/rows/dkim-keys.ts';
import { findOrganization } from '#accounts/rows/organizations.ts';
import { cliOf } from '#lab/cli.ts';
import { journeyKinds } from '#lab/database/databases.ts';
import { startWorld, type World } from '#lab/scenes/world.ts';
import { until } from '#lab/until.ts';

const hour = 3_600_000;
const day = 24 * hour;
const iso = (time: number) => new Date(time).toISOString();
const later = { rcpt: () => '451 4.3.0 try again later' };
const to = 'ann@there.invalid';
const typesOf = ({ events }: { events: { type: string }[] }) => events.map(({ type }) => type);
const hasStatus =
  (wanted: string) =>
  ({ status }: { status: string }) =>
    status === wanted;

const cancel = ({ call }: World, emailId: string) => call('POST', `/api/public/email/${emailId}/cancel`);
const move = ({ call }: World, emailId: string, scheduledAt: unknown) =>
  call('PATCH', `/api/public/email/${emailId}`, { body: JSON.stringify({ scheduledAt }) });

async function scheduled(world: World, aheadMs: number, fields: object = {}): Promise<string> {
  const { status, body } = await world.send({ to, scheduledAt: iso(world.clock.now() + aheadMs), ...fields });
  if (status !== 200) throw new Error(JSON.stringify(body));
  return body.emailId;
}

/** Used and left credits; the ledger adds up to them. */
async function credits(t: ExecutionContext, { db, orgId, clock }: World) {
  const org = (await findOrganization(db, orgId))!;
  const { used, remaining } = quotaState(org, clock.now());
  const entries: number[] = await db('credit_entries').where({ org_id: orgId }).pluck('change');
  const sum = entries.reduce((total, change) => total + Number(change), 0);
  t.is(sum, Number(org.ledgerTotal), 'the ledger adds up');
  t.is(sum, remaining! + Number(org.wallet), 'to the balance');
  return { used: Number(used), wallet: Number(org.wallet) };
}

for (const database of journeyKinds) {
  test(`${database}: scheduled mail is charged now and sent at its time, across a restart and a clock set back`, async (t) => {
    const world = await startWorld(t, { database, tenant: { quota: 10 } });
    const { clock, mx } = world;
    const emailId = await scheduled(world, 2 * hour, { to: [to, 'bob@there.invalid'] });
    const at = clock.now() + 2 * hour;
    const before = await world.get(emailId);
    t.like(before, { status: 'scheduled', credits: 2, scheduledAt: iso(at), expiresAt: iso(at + 48 * hour) });
    t.is(before.recipients[0].nextAttemptAt, iso(at));
    t.deepEqual(typesOf(before), ['email.scheduled', 'email.scheduled']);
    t.is(before.events[0].data.scheduledAt, iso(at));
    t.like(await credits(t, world), { used: 2 });

    await clock.jump(hour);
    await world.restart();
    clock.setBack(hour / 2);
    await world.restart();
    await clock.jump(hour * 1.5 - 1000);
    t.is((await world.get(emailId)).status, 'scheduled', 'a second before its time');
    t.is(mx[0]!.messages.length, 0);
    await until(async () => {
      // Real time passes in the database; this clock only passes if no timer is due.
      if (clock.now() < at) await clock.advance(at - clock.now());
      else await clock.advance(100);
      return (await world.get(emailId)).status === 'delivered';
    });
    t.true(clock.now() - at < 30_000);
    const after = await world.get(emailId);
    const expected = ['delivered', 'delivered', 'queued', 'queued', 'scheduled', 'scheduled'];
    t.deepEqual(
      typesOf(after).sort(),
      expected.map((type) => `email.${type}`),
    );
    const queued = after.events.filter(({ type }: { type: string }) => type === 'email.queued');
    for (const { timestamp } of queued) t.true(Date.parse(timestamp) - at < 1000, 'started within a second');
    t.is(mx[0]!.messages.flatMap((message) => message.to).length, 2, 'sent once');
    const date = /^Date: (.*)\r$/m.exec(mx[0]!.messages[0]!.raw.toString())![1]!;
    t.is(Date.parse(date), at - (at % 1000), 'dated when it was to be sent');
    t.like(await credits(t, world), { used: 2 });
  });

  test(`${database}: a cancellation refunds what was never attempted, in every state`, async (t) => {
    const world = await startWorld(t, { database, exchangers: [{ script: later }], tenant: { quota: 3 } });
    await world.db('organizations').where({ id: world.orgId }).update({ wallet: 4, ledger_total: 7 });
    await world.db('credit_entries').insert({
      id: crypto.randomUUID(),
      org_id: world.orgId,
      at: 0,
      change: 4,
      reason: 'wallet',
      balance: 7,
    });
    const waiting = await scheduled(world, hour, {
      to: ['a', 'b', 'c', 'd'].map((one) => `${one}@there.invalid`),
    });
    t.deepEqual(await credits(t, world), { used: 3, wallet: 3 });
    const first = await cancel(world, waiting);
    t.deepEqual(first.body, {
      success: true,
      emailId: waiting,
      canceled: ['a@there.invalid', 'b@there.invalid', 'c@there.invalid', 'd@there.invalid'],
      tooLate: [],
      credits: 0,
    });
    t.deepEqual(
      (await cancel(world, waiting)).body,
      first.body,
      'again: the same, and nothing more is refunded',
    );
    t.deepEqual(await credits(t, world), { used: 0, wallet: 4 });
    const canceled = await world.get(waiting);
    t.like(canceled, { status: 'canceled', credits: 0 });
    t.like(canceled.events.at(-1), { data: { reason: 'canceled through the API', bySender: true } });

    const { emailId: tried } = (await world.send({ to })).body;
    await world.when(tried, hasStatus('deferred'));
    t.like((await cancel(world, tried)).body, { canceled: [to], tooLate: [], credits: 1 });
    t.deepEqual(await credits(t, world), { used: 1, wallet: 4 }, 'an attempt was made');

    world.mx[0]!.script = {};
    const { emailId: sent } = (await world.send({ to, subject: 'Sent' })).body;
    await world.when(sent, hasStatus('delivered'));
    t.like((await cancel(world, sent)).body, { canceled: [], tooLate: [to], credits: 1 });
    t.deepEqual(await credits(t, world), { used: 2, wallet: 4 });

    const held = Promise.withResolvers<undefined>();
    world.mx[0]!.script = { dot: () => held.promise };
    const { emailId: sending } = (await world.send({ to, subject: 'Sending' })).body;
    await world.when(sending, ({ recipients }) => recipients[0].status === 'sending');
    t.like((await cancel(world, sending)).body, { canceled: [], tooLate: [to] });
    held.resolve(undefined);
    await world.when(sending, hasStatus('delivered'));
    t.is(world.mx[0]!.messages.length, 2);
    await world.clock.jump('2h');
    t.is((await world.get(waiting)).status, 'canceled');
  });

  test(`${database}: many cancel while mail starts: each recipient is either sent or refunded`, async (t) => {
    const world = await startWorld(t, { database, tenant: { quota: 100 } });
    const addressOf = (n: number) => `n${n}@there.invalid`;
    const sends = Array.from({ length: 40 }, (_, n) => scheduled(world, 60_000, { to: addressOf(n) }));
    const ids = await Promise.all(sends);
    const [early, late] = [ids.slice(0, 20), ids.slice(20)];
    await Promise.all([...early.map((id) => cancel(world, id)), world.clock.jump(60_000)]);
    await Promise.all(late.flatMap((id) => [cancel(world, id), cancel(world, id)]));
    await world.clock.jump(1000);
    const emails = await world.clock.passUntil(async () => {
      const all = await Promise.all(ids.map((id) => world.get(id)));
      return all.every(({ status }) => ['canceled', 'delivered'].includes(status)) && all;
    });
    const delivered = emails.filter(hasStatus('delivered')).length;
    t.is(world.mx[0]!.messages.length, delivered);
    t.like(await credits(t, world), { used: delivered });
    t.is(
      emails.reduce((sum, email) => sum + email.credits, 0),
      delivered,
    );
  });

  test(`${database}: scheduled mail moves until its time, with its expiry`, async (t) => {
    const world = await startWorld(t, { database, exchangers: [{ script: later }] });
    const { clock } = world;
    const emailId = await scheduled(world, hour, { expiresAfter: 60, to: [to, 'bob@there.invalid'] });
    const at = clock.now() + 3 * hour;
    t.deepEqual((await move(world, emailId, iso(at))).body, {
      success: true,
      emailId,
      scheduledAt: iso(at),
      expiresAt: iso(at + 60_000),
    });
    for (const wrong of [
      iso(clock.now() - 1),
      iso(clock.now() + 31 * day),
      '2026-01-01T00:00:00',
      'soon',
      7,
    ]) {
      const { status, body } = await move(world, emailId, wrong);
      t.is(status, 400, String(wrong));
      t.is(body.error, 'VALIDATION_ERROR');
      t.deepEqual(body.issues[0].path, ['scheduledAt']);
    }
    await clock.jump(2 * hour);
    t.is((await world.get(emailId)).status, 'scheduled', 'the old time has passed');
    await move(world, emailId, iso(clock.now() + 500));
    await clock.advance(2000);
    await world.passUntil(emailId, hasStatus('deferred'));
    t.like((await move(world, emailId, iso(at))).body, { error: 'BAD_REQUEST' });
    const { emailId: plain } = (await world.send({ to })).body;
    t.like((await move(world, plain, iso(at))).body, { error: 'BAD_REQUEST' });
    const unknown = '0198c9a4-6f1e-7d52-b3a4-5f0c8b1d9e27';
    t.is((await move(world, unknown, iso(at))).status, 404);
    t.is((await cancel(world, unknown)).status, 404);
    t.is((await cancel(world, 'x')).status, 400);
  });
}

test('held scheduled mail still waits for its time, and a retry does not start it', async (t) => {
  const { applyQueueAction } = await import('#mail/queue/rows/apply-queue-action.ts');
  const world = await startWorld(t);
  const { clock, db } = world;
  const emailId = await scheduled(world, 2 * hour);
  const act = (action: 'hold' | 'release' | 'retry') =>
    applyQueueAction(db, { emailId }, { action, reason: 'r', now: clock.now() });
  t.deepEqual(await act('retry'), { changed: 0, sending: 0, left: { scheduled: 1 } });
  t.like(await act('hold'), { changed: 1 });
  const at = clock.now() + 3 * hour;
  t.is((await move(world, emailId, iso(at))).status, 200, 'moved while it is held');
  await act('release');
  t.like((await world.get(emailId)).recipients[0], { status: 'scheduled', nextAttemptAt: iso(at) });
  await act('hold');
  await clock.jump(4 * hour);
  t.is((await world.get(emailId)).status, 'held');
  t.is((await move(world, emailId, iso(at + 2 * hour))).status, 400, 'its time has passed');
  await act('release');
  await clock.advance(1000);
  await world.passUntil(emailId, hasStatus('delivered'));
});

test('the command line lists, moves and cancels scheduled mail', async (t) => {
  const world = await startWorld(t);
  const { json, refusal } = cliOf(t, world);
  const [second, first] = [
    await scheduled(world, 3 * hour),
    await scheduled(world, hour, { subject: 'First' }),
  ];
  const list = async (filter: string) =>
    (await json(`queue list ${filter}`)).map(({ emailId }: { emailId: string }) => emailId);
  t.deepEqual(await list('--status scheduled'), [first, second], 'the next to start first');
  t.deepEqual(await list(''), [], 'it is not in the queue yet');
  const at = new Date(Date.now() + 5 * hour).toISOString();
  t.deepEqual(await json(`email reschedule ${first} ${at}`), { emailId: first, scheduledAt: at });
  t.deepEqual(await list('--status scheduled'), [second, first]);
  t.regex(await refusal(1, `email reschedule ${first} 2020-01-01T00:00:00Z`), /must be in the future/);
  t.regex(await refusal(2, `email reschedule ${first} tomorrow`), /ISO 8601 with an offset/);
  const [why] = (await json(`email why ${first}`)).recipients;
  t.regex(why.why, /^It is scheduled for 2\S+, and waits for that time\. It expires 2/);
  const canceled = { canceled: [to], tooLate: [], credits: 0 };
  t.like(await json(`email cancel ${first} --reason typo`), { emailId: first, ...canceled });
  t.regex(
    (await json(`email why ${first}`)).recipients[0].why,
    /canceled by the operator at 2\S+ \("typo"\)/,
  );
  t.regex(await refusal(1, `email cancel ${first}`), /nothing of email .* could be canceled/);
  t.regex(await refusal(1, `email reschedule ${first} ${at}`), /is not scheduled, or its time has come/);
  t.like(await json('queue cancel --status scheduled --reason all'), { moved: 1 });
  t.is((await world.get(second)).credits, 0);
});

test('times of scheduled mail are checked, and a retry with the same idempotency key gets its answer after its time', async (t) => {
  const world = await startWorld(t);
  const now = world.clock.now();
  const wrong: [object, string][] = [
    [{ scheduledAt: iso(now - 1) }, 'scheduledAt'],
    [{ scheduledAt: iso(now + 30 * day + 1000) }, 'scheduledAt'],
    [{ scheduledAt: '2026-12-24T18:00:00' }, 'scheduledAt'],
    [{ scheduledAt: '2026-02-30T18:00:00Z' }, 'scheduledAt'],
    [{ expiresAfter: 9 }, 'expiresAfter'],
    [{ expiresAfter: 10.5 }, 'expiresAfter'],
    [{ expiresAfter: 48 * 3600 + 1 }, 'expiresAfter'],
    [{ expiresAfter: '600' }, 'expiresAfter'],
  ];
  for (const [fields, name] of wrong) {
    const { status, body } = await world.send({ to, ...fields });
    t.is(status, 400, JSON.stringify(fields));
    t.is(body.error, 'VALIDATION_ERROR');
    t.deepEqual(body.issues[0].path, [name]);
    for (const member of ['code', 'expected', 'received', 'message'])
      t.is(typeof body.issues[0][member], 'string');
  }
  t.is((await world.db('emails')).length, 0);

  const fields = { to, scheduledAt: iso(now + 60_000).replace('Z', '+00:00'), idempotencyKey: 'k' };
  const first = await world.send(fields);
  await world.clock.jump(61_000);
  const again = await world.send(fields);
  t.is(again.headers.get('idempotent-replayed'), 'true');
  t.deepEqual(again.body, first.body);
  t.like((await world.send({ ...fields, idempotencyKey: 'other' })).body, { error: 'VALIDATION_ERROR' });
});

test('the DKIM key that signed scheduled mail stays published until the mail has expired, also after a move', async (t) => {
  const world = await startWorld(t);
  const { clock, db, orgId } = world;
  const [now, at] = [clock.now(), clock.now() + 10 * day];
  const emailId = await scheduled(world, 10 * day);
  const keepUntil = await db.transaction((trx) => untilSent(trx, orgId, now + 2 * day));
  t.is(keepUntil, at + 2 * day);
  const { id: domainId } = await db('domains').first('id');
  const key = { domain_id: domainId, algorithm: 'rsa', selector: 'old', public_key: '', created_at: now };
  await db('dkim_keys').insert({ ...key, id: domainId, status: 'retired', keep_until: keepUntil });
  t.is((await move(world, emailId, iso(at + 5 * day))).status, 200);
  t.is((await db('dkim_keys').first('keep_until')).keep_until, at + 7 * day);
  t.is((await move(world, emailId, iso(now + hour))).status, 200);
  t.is((await db('dkim_keys').first('keep_until')).keep_until, at + 7 * day, 'never sooner');
});

test('a key that is restricted to a domain changes only email from it', async (t) => {
  const world = await startWorld(t, { tenant: { scopes: ['email:send', 'domain_scope:sender.invalid'] } });
  const emailId = await scheduled(world, hour);
  t.is((await move(world, emailId, iso(world.clock.now() + 2 * hour))).status, 200);
  await world.db('emails').update({ sender: 'App <app@other.invalid>' });
  for (const { status, body } of [
    await cancel(world, emailId),
    await move(world, emailId, iso(Date.now())),
  ]) {
    t.is(status, 403);
    t.is(body.error, 'DOMAIN_NOT_ALLOWED');
  }
});
