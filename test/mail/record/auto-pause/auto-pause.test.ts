/**
 * Auto-pause over real sockets: the mail of one key, stream or tag is held within a minute of the threshold, with the evidence,
 * while all other mail goes on; and it is released without losing or doubling one.
 */
import test, { type ExecutionContext } from 'ava';
import { makeKey } from '#accounts/create-key.ts';
import { makeStream } from '#accounts/manage-streams.ts';
import { lockOrganization } from '#accounts/rows/organizations.ts';
import { cliOf } from '#lab/cli.ts';
import { journeyKinds, oneKind } from '#lab/database/databases.ts';
import type { Script } from '#lab/mx/mx-script.ts';
import { goldenMail, startReturns } from '#lab/scenes/returns.ts';
import { asNewTenant, startWorld, type World } from '#lab/scenes/world.ts';
import { countHeld } from '#mail/queue/rows/held-of-group.ts';
import { beginPause, pausesOf, releasePause } from '#mail/record/auto-pause/rows/auto-pauses.ts';

const minuteMs = 60_000;
const fulls = ['full_access'];

/** The exchanger of a world; a recipient's local part says what becomes of the mail (test/lab/mx/mx-script.ts). */
const replies: Script = {
  rcpt: ({ address }) => (address?.startsWith('trap') ? '550 5.7.1 spamtrap hit' : undefined),
  dot: ({ message }) =>
    message!.to.some((to) => to.startsWith('listed')) ? '550 Blacklisted URL in message.' : undefined,
};

async function start(t: ExecutionContext, mode: 'off' | 'warn' | 'hold', database = oneKind) {
  const world = await startWorld(t, {
    database,
    exchangers: [{ script: replies }],
    settings: { POSTERN_AUTO_PAUSE: mode, POSTERN_MTA_RETRY: '1h' },
  });
  const { db, orgId } = world;
  const keyOf = async (label: string, test = false, stream: string | null = null) =>
    makeKey(db, { orgId, label, scopes: fulls, test, strict: false, stream }, world.clock.now());
  const sendBy = (key: string, fields: object) =>
    world.call('POST', '/api/public/email/send', {
      headers: { authorization: `Bearer ${key}` },
      body: JSON.stringify({ from: 'app@sender.invalid', subject: 'Hi', text: 'Hi', ...fields }),
    });
  return { world, keyOf, sendBy };
}

let made = 0;

/** Ten recipients, of whom `failing` do not exist. */
function tenPeople(failing: number): string[] {
  made += 1;
  return Array.from(
    { length: 10 },
    (_, at) => `${at < failing ? 'unknown' : 'ok'}+${made}-${at}@there.invalid`,
  );
}

/** Mail that has been sent, or returned, as far as it will be; the clock stands still. */
const idle = ({ db, clock }: World) =>
  clock.passUntil(async () => !(await db('deliveries').whereIn('status', ['queued', 'sending']).first()), {
    step: 10,
  });

/** Twenty-one emails of ten recipients each: one of ten bounces hard. */
async function sendBadly(
  world: World,
  send: (fields: object) => ReturnType<World['call']>,
  more: object = {},
) {
  for (let n = 0; n < 21; n += 1) await send({ to: tenPeople(1), ...more });
  await idle(world);
}

const pauseNow = async (world: World) => (await pausesOf(world.db, world.orgId))[0];

/** Resolves with the pause, and how long it took on the world's clock. */
async function untilPaused(world: World) {
  const begun = world.clock.now();
  // Small steps: maintenance takes real time, and must not be late by a clock that runs ahead of it.
  const pause = await world.clock.passUntil(() => pauseNow(world), { step: 200 });
  return { pause, tookMs: pause.since - begun };
}

const messagesTo = (world: World, address: string) =>
  world.mx[0]!.messages.filter(({ to }) => to.includes(address)).length;

for (const kind of journeyKinds)
  test(`${kind}: the bad key is held within a minute, all others are not, and it is released`, async (t) => {
    const { world, keyOf, sendBy } = await start(t, 'hold', kind);
    const { db, orgId, clock } = world;
    const good = await asNewTenant(world);
    const [bad, receipts] = [await keyOf('newsletter'), await keyOf('receipts')];
    const sendBad = (fields: object) => sendBy(bad.key, { tags: { campaign: 'spring' }, ...fields });

    const { emailId: waiting } = (await sendBad({ to: 'greylist@there.invalid' })).body;
    const scheduledAt = new Date(clock.now() + 3_600_000).toISOString();
    const { emailId: scheduled } = (await sendBad({ to: 'later@there.invalid', scheduledAt })).body;
    await world.when(waiting, ({ status }) => status === 'deferred');
    for (let n = 0; n < 19; n += 1) await sendBad({ to: tenPeople(1) });
    await good.send({ to: tenPeople(0) });
    await idle(world);
    await clock.advance('1m');
    t.is(await pauseNow(world), undefined, 'below the threshold');

    await sendBad({ to: tenPeople(1) });
    await idle(world);
    const { pause, tookMs } = await untilPaused(world);
    t.true(tookMs <= minuteMs, `${tookMs} ms`);
    t.log(`held ${tookMs / 1000} s after the threshold`);
    t.like(pause, { kind: 'key', name: bad.id, state: 'held', rule: 'hard_bounces' });
    t.deepEqual(pause.figures, { count: 20, of: 200 });
    t.is(pause.mails.length, 10);
    for (const { emailId, recipient, reply } of pause.mails) {
      t.regex(recipient, /^unknown\+/);
      t.regex(reply!, /550 5\.1\.1 no such mailbox/);
      t.is((await db('emails').where({ id: emailId }).first()).key_id, bad.id);
    }
    t.is((await pausesOf(db, good.orgId)).length, 0);

    await clock.passUntil(async () => (await world.get(waiting)).status === 'held', { step: '1s' });
    await clock.passUntil(async () => (await world.get(scheduled)).status === 'held', { step: '1s' });
    const answer = await sendBad({ to: 'new@there.invalid' });
    t.is(answer.status, 200);
    t.is(answer.headers.get('x-postern-held'), pause.id);
    t.deepEqual(answer.body.accepted, ['new@there.invalid']);
    const held = await world.get(answer.body.emailId);
    t.is(held.status, 'held');
    t.deepEqual(
      held.events.map(({ type }: { type: string }) => type),
      ['email.queued', 'email.held'],
    );
    t.like(held.events[1], { data: { pauseId: pause.id } });

    for (const [sender, one] of [
      [good.send, good],
      [(fields: object) => sendBy(receipts.key, fields), world],
    ] as const) {
      const sent = await sender({ to: 'fine@there.invalid' });
      t.is(sent.headers.get('x-postern-held'), null);
      await one.passUntil(sent.body.emailId, ({ status }) => status === 'delivered');
    }
    await clock.advance('3d');
    t.is((await world.get(answer.body.emailId)).status, 'held', 'held mail does not age');
    t.is((await world.get(waiting)).recipients[0].attempts, 1, 'nothing tries it');
    t.is(messagesTo(world, 'new@there.invalid'), 0);

    const { body: listed } = await world.call('GET', '/api/public/pauses');
    t.like(listed.pauses[0], { id: pause.id, label: 'newsletter', count: 20, of: 200 });
    t.is((await good.call('POST', `/api/public/pauses/${pause.id}/release`)).status, 404);
    const { json } = cliOf(t, world);
    t.like(await json(`pause show ${pause.id}`), { id: pause.id, held: { count: 3, pastDeadline: 0 } });
    t.deepEqual(await countHeld(db, orgId, [pause, { kind: 'key', name: receipts.id }], clock.now(), 2), [
      { count: 2, pastDeadline: 0, isCut: true },
      { count: 0, pastDeadline: 0, isCut: true },
    ]);
    const [why] = (await json(`email why ${answer.body.emailId}`)).recipients;
    t.regex(why.why, /^It has been held by a rule since .* \(`postern pause release [0-9a-f-]+`\)/);

    const released = await world.call('POST', `/api/public/pauses/${pause.id}/release`);
    t.like(released.body, { success: true, pause: { state: 'released' } });
    t.is((await world.call('POST', `/api/public/pauses/${pause.id}/release`)).status, 404);
    for (const emailId of [waiting, scheduled, answer.body.emailId])
      await world.passUntil(emailId, ({ status }) => status === 'delivered');
    for (const to of ['greylist', 'later', 'new']) t.is(messagesTo(world, `${to}@there.invalid`), 1, to);
    await clock.advance('5m');
    t.is((await pauseNow(world))!.state, 'released', 'not again for the same evidence');
    t.is((await db('organizations').where({ id: orgId }).first()).held_groups, null);
    const types = await db('events')
      .where({ org_id: orgId })
      .where('type', 'like', 'pause.%')
      .orderBy('position');
    t.deepEqual(
      types.map(({ type }) => type),
      ['pause.started', 'pause.ended'],
    );
  });

test('after a release, only what happens since counts', async (t) => {
  const { world, keyOf, sendBy } = await start(t, 'hold');
  const { key } = await keyOf('newsletter');
  const send = (fields: object) => sendBy(key, fields);
  await sendBadly(world, send);
  const { pause } = await untilPaused(world);
  const { json } = cliOf(t, world);
  t.like(await json(`pause release ${pause.id}`), { state: 'released', held: { count: 0 } });
  await send({ to: tenPeople(5) });
  await idle(world);
  await world.clock.advance('1m');
  t.is((await pauseNow(world))!.state, 'released');
  await sendBadly(world, send);
  await world.clock.passUntil(async () => (await pauseNow(world))!.state === 'held', { step: '1s' });
});

test('a warning right after a release keeps nothing held', async (t) => {
  const { world, keyOf, sendBy } = await start(t, 'hold');
  const { db, orgId, clock } = world;
  const { key } = await keyOf('newsletter');
  await sendBadly(world, (fields) => sendBy(key, fields));
  const { id, kind, name } = (await untilPaused(world)).pause;
  const { emailId } = (await sendBy(key, { to: 'fine@there.invalid' })).body;
  t.is((await world.get(emailId)).status, 'held');
  await releasePause(db, { id, orgId }, clock.now());
  await db.transaction(async (trx) => {
    const breach = { group: { kind, name }, rule: 'spam_trap' as const, count: 1, of: 210 };
    const org = (await lockOrganization(trx, orgId))!;
    await beginPause(trx, org, breach, { isHeld: false, now: clock.now() });
  });
  t.is((await pauseNow(world))!.state, 'warned');
  await world.passUntil(emailId, ({ status }) => status === 'delivered');
});

test('warn: people are told once, and the mail goes on; off: nothing happens', async (t) => {
  const { world, keyOf, sendBy } = await start(t, 'warn');
  const { key } = await keyOf('newsletter');
  const send = (fields: object) => sendBy(key, fields);
  await sendBadly(world, send);
  const { pause } = await untilPaused(world);
  t.is(pause.state, 'warned');
  await sendBadly(world, send);
  await world.clock.advance('1m');
  const { emailId } = (await send({ to: 'fine@there.invalid' })).body;
  await world.passUntil(emailId, ({ status }) => status === 'delivered');
  const events = await world.db('events').where('type', 'like', 'pause.%').pluck('type');
  t.deepEqual(events, ['pause.warned']);
  const { json, cli } = cliOf(t, world);
  const status = await cli('status');
  t.is(status.code, 1);
  t.regex(status.stdout.toString(), /key newsletter of Tenant/);

  await json('org auto-pause Tenant hold');
  await send({ to: tenPeople(1) });
  await idle(world);
  await world.clock.passUntil(async () => (await pauseNow(world))!.state === 'held', { step: '1s' });
  await json('org auto-pause Tenant off');
  const other = await keyOf('other');
  await sendBadly(world, (fields) => sendBy(other.key, fields));
  await world.clock.advance('1m');
  t.is((await pausesOf(world.db, world.orgId)).length, 1);
});

test('a spam trap and a listed link are held at the first reply: the stream that the mail is in', async (t) => {
  const { world, keyOf, sendBy } = await start(t, 'hold');
  await makeStream(world.db, { orgId: world.orgId, name: 'news' }, world.clock.now());
  const { key } = await keyOf('all');
  await sendBy(key, { to: tenPeople(0) });
  await sendBy(key, { to: tenPeople(0) });
  await sendBy(key, { to: ['ok@there.invalid', 'trap@there.invalid'], stream: 'news' });
  await idle(world);
  const { pause, tookMs } = await untilPaused(world);
  t.true(tookMs <= minuteMs);
  t.like(pause, { kind: 'stream', name: 'news', rule: 'spam_trap', state: 'held' });
  t.like(pause.mails, [{ recipient: 'trap@there.invalid' }]);
  t.regex(pause.mails[0]!.reply!, /spamtrap hit/);
  t.is(
    (await sendBy(key, { to: 'a@there.invalid', stream: 'news' })).headers.get('x-postern-held'),
    pause.id,
  );
  t.is((await sendBy(key, { to: 'listed@there.invalid' })).headers.get('x-postern-held'), null);
  await idle(world);
  const listed = await world.clock.passUntil(
    async () => (await pausesOf(world.db, world.orgId)).find(({ kind }) => kind === 'key'),
    { step: '1s' },
  );
  t.like(listed, { rule: 'listed_content', state: 'held', mails: [{ recipient: 'listed@there.invalid' }] });
});

test('a mail that comes back names a spam trap: that is a bounce like any other, for anybody can send it', async (t) => {
  const world = await startReturns(t, { settings: { POSTERN_AUTO_PAUSE: 'hold' } });
  const { path, emailId } = await world.delivered();
  const said = goldenMail('postfix-spam-after-queue', path)
    .toString('latin1')
    .replaceAll(/554 5.7.0 Reject.*/g, '550 5.7.1 spamtrap hit');
  await world.comesBack(path, said);
  const { events } = await world.get(emailId);
  t.regex(events.at(-1).data.bounce.diagnostic, /spamtrap hit/);
  await world.clock.advance('1m');
  t.is(await pauseNow(world), undefined);
});

test('a test key is neither counted nor held, and sees nothing of it', async (t) => {
  const { world, keyOf, sendBy } = await start(t, 'hold');
  const { key } = await keyOf('tests', true);
  for (let n = 0; n < 21; n += 1)
    await sendBy(key, {
      from: 'a@postern.test',
      to: tenPeople(0)
        .map(() => `bounced+${made}@postern.test`)
        .slice(0, 1),
    });
  await idle(world);
  await world.clock.advance('1m');
  t.is(await pauseNow(world), undefined);
  const refused = await world.call('GET', '/api/public/pauses', {
    headers: { authorization: `Bearer ${key}` },
  });
  t.is(refused.status, 403);
});
