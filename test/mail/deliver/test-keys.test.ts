/** Test keys: what they send has the answers, events and webhooks of real mail, and no other effect. */
import test, { type ExecutionContext } from 'ava';
import { addSuppression, suppressionOf } from '#accounts/rows/suppressions.ts';
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
async function calls({ call, send, clock, db, orgId }: World) {
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
  // A test key cannot add it.
  await addSuppression(db, suppressionOf(orgId, 'gone@there.invalid', 'manual'), clock.now());
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

  const credits = async ({ orgId: id }: World) =>
    (await world.db('organizations').where({ id }).first('quota_used')).quota_used;
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

/** A live key and a test key of one organization, with full access both, and calls with the test key. */
async function bothKeys(t: ExecutionContext) {
  const { world } = await startWebhookWorld(t);
  const post = (path: string, body: object) => world.call('POST', path, { body: JSON.stringify(body) });
  const made = await post('/api/public/keys', { label: 'CI', scopes: ['full_access'], test: true });
  const key: string = made.body.key;
  const basic = `Basic ${Buffer.from(`api:${key}`).toString('base64')}`;
  const headers = { authorization: `Bearer ${key}`, 'x-postmark-server-token': key };
  const asTest = (method: string, path: string, body?: object) =>
    world.call(method, path, {
      headers: path.includes('/compat/mailgun/') ? { authorization: basic } : headers,
      ...(body && { body: JSON.stringify(body) }),
    });
  return { world, post, asTest, liveId: (await world.call('GET', '/api/public/keys')).body.keys[0].id };
}

const mail = { from: 'app@sender.invalid', subject: 'Hello', text: 'Hello' };

test('a test key sees, moves and cancels test mail only, whichever way it comes', async (t) => {
  const { world, post, asTest } = await bothKeys(t);
  const { clock } = world;
  const later = (hours: number) => new Date(clock.now() + hours * 3_600_000).toISOString();
  const scheduledAt = later(1);
  const live = (await post('/api/public/email/send', { ...mail, to: 'live@there.invalid', scheduledAt }))
    .body;
  const own = (
    await asTest('POST', '/api/public/email/send', { ...mail, to: 'test@there.invalid', scheduledAt })
  ).body;
  const gone = (await post('/api/public/email/send', { ...mail, to: 'gone@there.invalid' })).body.emailId;
  await world.when(gone, ({ status }) => status === 'delivered');

  const each = (id: string): [string, string, object?][] => [
    ['GET', `/api/public/email/${id}`],
    ['PATCH', `/api/public/email/${id}`, { scheduledAt: later(2) }],
    ['GET', `/compat/resend/emails/${id}`],
    ['GET', `/compat/resend/emails/${id}/attachments`],
    ['PATCH', `/compat/resend/emails/${id}`, { scheduled_at: later(3) }],
    ['GET', `/compat/postmark/messages/outbound/${id}/details`],
    ['GET', `/compat/postmark/messages/outbound/${id}/dump`],
    ['POST', `/compat/resend/emails/${id}/cancel`],
    ['POST', `/api/public/email/${id}/cancel`],
  ];
  for (const [method, path, body] of each(live.emailId)) {
    const { status } = await asTest(method, path, body);
    t.true([404, 422].includes(status), `${method} ${path}: ${status}`);
  }
  t.like(await world.get(live.emailId), { status: 'scheduled', scheduledAt });
  for (const [method, path, body] of each(own.emailId))
    t.is((await asTest(method, path, body)).status, 200, `${method} ${path}`);

  for (const path of [
    '/api/public/emails',
    '/api/public/events',
    '/compat/resend/emails',
    '/compat/postmark/messages/outbound?count=50&offset=0',
    '/compat/postmark/bounces?count=50&offset=0',
    '/compat/mailgun/v3/sender.invalid/events',
    '/compat/mailgun/v3/sender.invalid/events?ascending=yes&begin=0',
    '/compat/postmark/deliverystats',
  ]) {
    const { status, body } = await asTest('GET', path);
    t.is(status, 200, path);
    t.notRegex(JSON.stringify(body), /live@|gone@/, path);
  }
  const { events } = (await asTest('GET', '/api/public/events')).body;
  t.true(events.length > 0);
  t.true(events.every((event: object) => JSON.stringify(event).includes(own.emailId)));
});

test('a test key makes test keys only, knows no live key, and manages nothing else', async (t) => {
  const { world, asTest, liveId } = await bothKeys(t);
  const keys = '/api/public/keys';
  const wanted = { label: 'x', scopes: ['full_access'] };
  for (const body of [wanted, { ...wanted, test: true }]) {
    const made = await asTest('POST', keys, body);
    t.like(made.body, { test: true });
    t.regex(made.body.key, /^em_test_/);
  }
  t.is((await asTest('POST', keys, { ...wanted, test: false })).status, 403);
  const dialect = await asTest('POST', '/compat/resend/api-keys', { name: 'x' });
  t.regex(dialect.body.token, /^em_test_/);
  t.is((await asTest('DELETE', `${keys}/${liveId}`)).status, 404);
  t.is((await asTest('POST', `${keys}/${liveId}/rotate`)).status, 404);
  t.is((await asTest('DELETE', `/compat/resend/api-keys/${liveId}`)).status, 404);
  const listed = (await asTest('GET', keys)).body.keys;
  t.true(listed.length === 4 && listed.every(({ test: isTest }: { test: boolean }) => isTest));
  t.false(JSON.stringify((await asTest('GET', '/compat/resend/api-keys')).body).includes(liveId));
  t.is((await world.call('GET', keys)).body.keys.length, 5);
  for (const path of ['/suppressions', '/webhooks', '/domains', '/credits'])
    t.is((await asTest('GET', `/api/public${path}`)).status, 403, path);
  t.is((await asTest('POST', '/api/public/suppressions', { address: 'ann@there.invalid' })).status, 403);
  const hook = { url: 'https://app.there.invalid/', events: [] };
  t.is((await asTest('POST', '/api/public/webhooks', hook)).status, 403);
  t.is((await world.db('suppressions')).length + (await world.db('webhooks')).length, 0);
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
