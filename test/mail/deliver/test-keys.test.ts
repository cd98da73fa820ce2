/** Test keys: what they send has the answers, events and webhooks of real mail, and no other effect. */
import test from 'ava';
import { cliOf } from '#lab/cli.ts';
import { startWebhookWorld } from '#lab/scenes/webhook-world.ts';
import { asNewTenant, type World } from '#lab/scenes/world.ts';
import { until } from '#lab/until.ts';
import { sumUp } from '#mail/record/rows/statistics.ts';

const typesOf = ({ events }: { events: { type: string }[] }) => events.map(({ type }) => type);

/** The same whatever the ids and the times are. */
function plain(value: unknown): unknown {
  const text = JSON.stringify(value)
    .replace(/[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}/g, 'UUID')
    .replace(/\d{4}-\d\d-\d\dT[\d:.]+Z/g, 'TIME')
    .replace(/"(id|next)":"[^"]*"/g, '"$1":"ID"');
  return JSON.parse(text);
}

/** Calls of all kinds; returns each with its answer. */
async function calls({ call, send, clock }: World) {
  const answers: unknown[] = [];
  const note = async (what: string, answer: ReturnType<typeof send>) => {
    const { status, headers, body } = await answer;
    const names = [...headers.keys()].filter((name) => !['content-length', 'connection'].includes(name));
    answers.push({ what, status, names: names.sort(), body: plain(body) });
    return body;
  };
  const post = (path: string, body: unknown) => call('POST', path, { body: JSON.stringify(body) });
  const to = 'ann@there.invalid';
  await note('a send', send({ to }));
  await note('a duplicate', send({ to }));
  const { emailId } = await note('with a key', send({ to, subject: 'Two', idempotencyKey: 'two' }));
  await note('its repeat', send({ to, subject: 'Two', idempotencyKey: 'two' }));
  await note('its key for another', send({ to, subject: 'Three', idempotencyKey: 'two' }));
  await note('three recipients', send({ to: [to, 'bob@there.invalid'], bcc: 'eve@there.invalid' }));
  await note('nothing', send({ to: 'nobody', subject: '' }));
  await note('a wrong sender', send({ to, from: 'nobody' }));
  await note('a foreign domain', send({ to, from: 'app@nobodys.invalid' }));
  await note('not JSON', call('POST', '/api/public/email/send', { body: '{' }));
  await note('a suppression', post('/api/public/suppressions', { address: 'gone@there.invalid' }));
  await note('to it', send({ to: 'gone@there.invalid' }));
  await note('to it as well', send({ to: [to, 'gone@there.invalid'], subject: 'Four' }));
  await note(
    'a dry run',
    call('POST', '/api/public/email/send?dryRun=true', { body: JSON.stringify({ to }) }),
  );
  const scheduledAt = new Date(clock.now() + 3_600_000).toISOString();
  const later = await note('later', send({ to, subject: 'Five', scheduledAt }));
  await note('canceled', call('POST', `/api/public/email/${later.emailId}/cancel`));
  const from = 'app@sender.invalid';
  const one = { from, to, subject: 'Six', text: 'Six' };
  await note('a batch', post('/api/public/email/batch', [one, { ...one, to: 'gone@there.invalid' }, {}]));
  await note('no such email', call('GET', '/api/public/email/00000000-0000-7000-8000-000000000000'));
  return { answers, emailId };
}

test('a test key gets the answers of a live key, and its mail reaches nothing', async (t) => {
  const { world } = await startWebhookWorld(t, { tenant: { quota: 100 } });
  const tests = await asNewTenant(world, { quota: 100, isTest: true });
  t.regex(tests.key, /^em_test_[\w-]{43}$/);
  const live = await calls(world);
  const reached = () => world.mx[0]!.messages.length;
  const settled = async ({ orgId }: World) => {
    const rows = await world.db('deliveries').where({ org_id: orgId }).select('status');
    return rows.every(({ status }) => !['queued', 'sending', 'deferred'].includes(status));
  };
  await until(() => settled(world));
  const before = reached();
  const own = await calls(tests);
  t.deepEqual(own.answers, live.answers);
  await until(() => settled(tests));
  t.is(reached(), before, 'no host was contacted');

  const [real, tried] = await Promise.all([world.get(live.emailId), tests.get(own.emailId)]);
  // The repeat of a send may come before or after its delivery.
  t.deepEqual(typesOf(tried).sort(), typesOf(real).sort());
  t.deepEqual(Object.keys(tried.recipients[0]), Object.keys(real.recipients[0]));
  t.true(tried.test);
  t.false('test' in real);
  t.is(tried.credits, 0);
  t.is(real.credits, 1);

  const credits = async (side: World) => (await side.call('GET', '/api/public/credits')).body.quota.used;
  t.is(await credits(tests), 0, 'test mail costs nothing');
  t.true((await credits(world)) > 0);
  while ((await sumUp(world.db)) > 0);
  const figures = await world.db('statistics').select('org_id', 'sent', 'delivered');
  t.deepEqual([...new Set(figures.map(({ org_id }) => org_id))], [world.orgId], 'nor does it count');
  const usages = await world.db('daily_usage').where({ org_id: tests.orgId });
  t.deepEqual(
    usages.map(({ emails }) => emails),
    [0],
    'nor for the day',
  );
});

test('a key of the same organization does not answer for the other', async (t) => {
  const { world } = await startWebhookWorld(t);
  const made = await world.call('POST', '/api/public/keys', {
    body: JSON.stringify({ label: 'CI', scopes: ['email:send'], test: true }),
  });
  t.like(made.body, { test: true, strict: true });
  const authorization = `Bearer ${made.body.key}`;
  const body = JSON.stringify({
    from: 'app@sender.invalid',
    to: 'ann@there.invalid',
    subject: 'Hello',
    text: 'Hello',
    idempotencyKey: 'order-1',
  });
  const asTest = await world.call('POST', '/api/public/email/send', { body, headers: { authorization } });
  const asLive = await world.call('POST', '/api/public/email/send', { body });
  t.not(asLive.body.emailId, asTest.body.emailId, 'a test never answers for a real send');
  await world.when(asLive.body.emailId, ({ status }) => status === 'delivered');
  t.is(world.mx[0]!.messages.length, 1);
  const rotated = await world.call('POST', `/api/public/keys/${made.body.id}/rotate`);
  t.regex(rotated.body.key, /^em_test_/);
});

test('recipients at postern.test decide how test mail ends; nobody is suppressed', async (t) => {
  const { world, endpoint } = await startWebhookWorld(t, { tenant: { isTest: true } });
  const { receiver } = await endpoint();
  const sent = async (to: string) => (await world.send({ to, subject: to })).body.emailId as string;
  const ends = async (id: string, status: string) => world.when(id, (email) => email.status === status);

  const bounced = await ends(await sent('bounced@postern.test'), 'bounced');
  t.like(bounced.recipients[0].bounce, { type: 'hard', category: 'unknown_user', fault: 'recipient' });
  const complained = await ends(await sent('Complained+a@Postern.TEST'), 'complained');
  t.deepEqual(typesOf(complained), ['email.queued', 'email.delivered', 'email.complained']);
  const full = await ends(await sent('full@postern.test'), 'bounced');
  t.like(full.recipients[0].bounce, { type: 'soft', category: 'mailbox_full' });
  await ends(await sent('delivered+welcome@postern.test'), 'delivered');
  const arrived = await ends(await sent('bounced@there.invalid'), 'delivered');
  const { stdout } = await cliOf(t, world).cli(`email why ${arrived.emailId}`);
  t.regex(stdout.toString(), /This is test mail, which is sent to nobody\. .* It is in the test inbox/);

  const deferred = await ends(await sent('deferred@postern.test'), 'deferred');
  const greylisted = await ends(await sent('greylist@postern.test'), 'deferred');
  t.is(Date.parse(deferred.expiresAt) - Date.parse(deferred.createdAt), 60_000, '48 hours take a minute');
  const passed = await world.passUntil(greylisted.emailId, ({ status }) => status === 'delivered');
  t.is(passed.recipients[0].attempts, 2);
  const expired = await world.passUntil(deferred.emailId, ({ status }) => status === 'expired');
  t.true(expired.recipients[0].attempts > 5, `${expired.recipients[0].attempts} attempts`);

  t.deepEqual(await world.db('suppressions'), []);
  t.deepEqual(await world.db('soft_bounces'), []);
  t.deepEqual(await world.db('learned'), []);
  t.is(world.mx[0]!.sessions.length, 0);
  for (const { body } of await receiver.received(12)) t.true(body.data.test);
});
