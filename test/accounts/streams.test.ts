/** Streams: a part of an organization's mail with its own suppressions, tracking, limit, IP pool and statistics. */
import test, { type ExecutionContext } from 'ava';
import { alterStream, makeStream } from '#accounts/manage-streams.ts';
import { findStream } from '#accounts/rows/streams.ts';
import { cliOf } from '#lab/cli.ts';
import { worldOfFile } from '#lab/scenes/shared-world.ts';
import { asNewTenant, startWorld } from '#lab/scenes/world.ts';
import { createPoolAssignment } from '#mail/queue/cluster/pool-assignment.ts';
import { countAssigned, poolOf, readAssigned } from '#mail/queue/rows/ip-pools.ts';
import { figuresBy } from '#mail/record/figures-by-group.ts';
import { sumUp } from '#mail/record/rows/statistics.ts';

const shared = worldOfFile();

async function start(t: ExecutionContext) {
  const world = await asNewTenant(shared());
  const call = async (line: string, body?: object) => {
    const [method, path] = line.split(' ') as [string, string];
    return world.call(method, `/api/public${path}`, body && { body: JSON.stringify(body) });
  };
  const must = async (line: string, body?: object) => {
    const { status, body: answer } = await call(line, body);
    t.is(status, 200, `${line}: ${JSON.stringify(answer)}`);
    return answer;
  };
  const refusal = async (line: string, body?: object) => {
    const { status, body: answer } = await call(line, body);
    return `${status} ${answer.message}`;
  };
  return { world, orgId: world.orgId, must, refusal };
}

test('an organization has up to ten streams, named once, and none of them is `transactional`', async (t) => {
  const { must, refusal } = await start(t);
  const { stream } = await must('POST /streams', { name: 'news', title: 'Our news', kind: 'subscribed' });
  t.like(stream, { name: 'news', title: 'Our news', kind: 'subscribed', emailsPerDay: null, pool: null });
  t.regex(await refusal('POST /streams', { name: 'news' }), /^400 .* named news already/);
  t.regex(await refusal('POST /streams', { name: 'transactional' }), /^400 .* from the start/);
  t.regex(await refusal('POST /streams', { name: 'No Name' }), /^400 .*name: must be a name of 1 to 30/);
  for (let count = 2; count <= 10; count += 1) await must('POST /streams', { name: `s${count}` });
  t.regex(await refusal('POST /streams', { name: 's11' }), /^400 .* can have 10 streams/);
  const changes = { title: 'News', tracking: { openTracking: true }, emailsPerDay: 5, color: '#1a73e8' };
  await must('PATCH /streams/news', changes);
  t.like((await must('GET /streams/news')).stream, {
    ...changes,
    kind: 'subscribed',
    tracking: { openTracking: true, clickTracking: null },
  });
  t.is((await must('GET /streams')).streams.length, 10);
  await must('DELETE /streams/s10');
  t.regex(await refusal('GET /streams/s10'), /^404/);
});

test('a send is in the stream that it names, or in that of its key', async (t) => {
  const { world, orgId, must } = await start(t);
  await must('POST /streams', { name: 'news', tracking: { openTracking: true } });
  const streamOf = async (fields: object, key?: string) => {
    const { body } = await world.call('POST', '/api/public/email/send', {
      ...(key && { headers: { authorization: `Bearer ${key}` } }),
      body: JSON.stringify({ from: 'app@sender.invalid', to: 'ann@there.invalid', text: 'Hi', ...fields }),
    });
    const email = await world.get(body.emailId);
    return [email.stream, email.tracking?.openTracking];
  };
  t.deepEqual(await streamOf({ subject: '1' }), [undefined, false]);
  t.deepEqual(await streamOf({ subject: '2', stream: 'news' }), ['news', true]);
  const off = { tracking: { openTracking: false } };
  t.deepEqual(await streamOf({ subject: '3', stream: 'news', ...off }), ['news', false]);
  t.deepEqual(await streamOf({ subject: '4', stream: 'transactional' }), [undefined, false]);
  const { id, key, stream } = await must('POST /keys', {
    label: 'n',
    scopes: ['full_access'],
    stream: 'news',
  });
  t.is(stream, 'news');
  t.deepEqual(await streamOf({ subject: '5' }, key), ['news', true]);
  t.deepEqual(await streamOf({ subject: '6', stream: 'transactional' }, key), [undefined, false]);
  const unknown = await world.send({ to: 'ann@there.invalid', stream: 'none-such' });
  t.like(unknown, { status: 400, body: { error: 'VALIDATION_ERROR' } });
  t.regex(unknown.body.message, /no stream "none-such"/);
  t.is((await world.call('POST', '/api/public/keys', keyBody('none-such'))).status, 400);
  const removed = await world.call('DELETE', '/api/public/streams/news');
  t.regex(removed.body.message, /stream news is that of the key n/);
  await must(`DELETE /keys/${id}`);
  await must('DELETE /streams/news');
  t.is(await findStream(world.db, orgId, 'news'), null);
});

const keyBody = (stream: string) => ({
  body: JSON.stringify({ label: 'x', scopes: ['email:send'], stream }),
});

test('a suppression of a stream stops its mail alone; one of the organization stops all', async (t) => {
  const { world, must, refusal } = await start(t);
  await must('POST /streams', { name: 'news' });
  await must('POST /streams', { name: 'tips' });
  const { suppression } = await must('POST /suppressions', { address: 'Ann@there.invalid', stream: 'news' });
  t.is(suppression.stream, 'news');
  await must('POST /suppressions', { address: 'bob@there.invalid' });
  const accepted = async (subject: string, stream?: string) => {
    const to = ['ann@there.invalid', 'bob@there.invalid', 'cleo@there.invalid'];
    return (await world.send({ to, subject, stream })).body.accepted;
  };
  t.deepEqual(await accepted('1'), ['ann@there.invalid', 'cleo@there.invalid']);
  t.deepEqual(await accepted('2', 'tips'), ['ann@there.invalid', 'cleo@there.invalid']);
  t.deepEqual(await accepted('3', 'news'), ['cleo@there.invalid']);
  const listed = async (query = '') =>
    (await must(`GET /suppressions${query}`)).suppressions.map((one: { address: string }) => one.address);
  t.deepEqual(await listed(), ['bob@there.invalid']);
  t.deepEqual(await listed('?stream=transactional'), ['bob@there.invalid']);
  t.deepEqual(await listed('?stream=news'), ['Ann@there.invalid']);
  t.deepEqual(await listed('?stream=tips'), []);
  t.regex(await refusal('GET /suppressions/ann@there.invalid'), /^404/);
  await must('GET /suppressions/ann@there.invalid?stream=news');
  await must('DELETE /suppressions/ann@there.invalid?stream=news');
  t.deepEqual(await accepted('4', 'news'), ['ann@there.invalid', 'cleo@there.invalid']);
  t.regex(
    await refusal('POST /suppressions', { address: 'a@b.invalid', stream: 'x' }),
    /^400 .* no stream "x"/,
  );
});

test('a hard bounce suppresses for all mail, wherever it was sent', async (t) => {
  const { world, must } = await start(t);
  await must('POST /streams', { name: 'news' });
  const { emailId } = (await world.send({ to: 'unknown@there.invalid', stream: 'news' })).body;
  await world.when(emailId, ({ status }) => status === 'bounced');
  t.is((await world.send({ to: 'unknown@there.invalid', subject: 'Again' })).status, 422);
});

test('a stream that has had its recipients of the day takes no more; other mail goes on', async (t) => {
  const { world, must } = await start(t);
  await must('POST /streams', { name: 'news', emailsPerDay: 3 });
  const send = async (to: string[], stream?: string) => {
    const { status, body } = await world.send({ to, stream, subject: to.join() });
    return status === 200 ? body.accepted.length : `${status} ${body.message}`;
  };
  t.is(await send(['a@there.invalid', 'b@there.invalid'], 'news'), 2);
  t.regex(
    String(await send(['c@there.invalid', 'd@there.invalid'], 'news')),
    /^429 .*limit of the stream news, .*3/,
  );
  t.is(await send(['e@there.invalid'], 'news'), 1);
  t.regex(String(await send(['f@there.invalid'], 'news')), /^429/);
  t.is(await send(['f@there.invalid']), 1);
  await must('PATCH /streams/news', { emailsPerDay: null });
  // A change holds within a second.
  await world.clock.advance('2s');
  await new Promise((resolve) => setTimeout(resolve, 1100));
  t.is(await send(['g@there.invalid'], 'news'), 1);
});

test('the limit of a day is over at midnight', async (t) => {
  const world = await startWorld(t);
  const must = (method: string, path: string, body?: object) =>
    world.call(method, `/api/public${path}`, body && { body: JSON.stringify(body) });
  await must('POST', '/streams', { name: 'news', emailsPerDay: 1 });
  const send = async (subject: string) =>
    (await world.send({ to: 'ann@there.invalid', stream: 'news', subject })).status;
  t.deepEqual([await send('1'), await send('2')], [200, 429]);
  await world.clock.advance('24h');
  t.is(await send('3'), 200);
});

test('the mail of a stream leaves from its pool', async (t) => {
  const { world, orgId, must } = await start(t);
  await must('POST /streams', { name: 'news' });
  await alterStream(world.db, { orgId, name: 'news' }, { pool: 'bulk' });
  t.is(await poolOf(world.db, orgId, 'news'), 'bulk');
  t.is(await poolOf(world.db, orgId, null), 'default');
  t.is((await countAssigned(world.db)).get('bulk'), 1);
  const assignment = createPoolAssignment({
    sources: [{ pool: 'default' }, { pool: 'bulk' }],
    read: (now) => readAssigned(world.db, 'one', now),
    publish: async () => {},
    publishIntervalMs: 1,
  });
  await assignment.refresh(0);
  t.deepEqual(
    [assignment.poolOf(orgId, 'news'), assignment.poolOf(orgId, 'tips'), assignment.poolOf(orgId)],
    ['bulk', 'default', 'default'],
  );
  t.is((await world.call('PATCH', '/api/public/streams/news', { body: '{"pool":"default"}' })).status, 200);
  t.is(await poolOf(world.db, orgId, 'news'), 'bulk', "the operator's to set");
});

test('statistics by stream count what has none as transactional', async (t) => {
  const { world, orgId, must } = await start(t);
  await must('POST /streams', { name: 'news' });
  for (const [subject, stream] of [['1'], ['2', 'news'], ['3', 'news']] as const)
    await world.when(
      (await world.send({ to: 'ann@there.invalid', subject, stream })).body.emailId,
      ({ status }) => status === 'delivered',
    );
  while ((await sumUp(world.db)) > 0);
  const day = world.clock.now() - (world.clock.now() % 86_400_000);
  const figures = await figuresBy(world.db, orgId, 'stream', { since: day, until: day + 86_400_000 });
  t.deepEqual(
    figures.map(({ name, sent, delivered }) => [name, sent, delivered]),
    [
      ['news', 2, 2],
      ['transactional', 1, 1],
    ],
  );
});

test('mail without a stream looks none up, and mail with one is unknown to another organization', async (t) => {
  const world = await startWorld(t);
  await makeStream(world.db, { orgId: world.orgId, name: 'news' }, world.clock.now());
  const other = await asNewTenant(world);
  t.is((await other.send({ to: 'ann@there.invalid', stream: 'news' })).status, 400);
  await world.db.schema.renameTable('streams', 'streams_away');
  t.is((await other.send({ to: 'ann@there.invalid' })).status, 200);
  await world.db.schema.renameTable('streams_away', 'streams');
});

test('the command line manages streams and their lists', async (t) => {
  const world = await startWorld(t);
  const { json, cli, refusal } = cliOf(t, world);
  const settings = '--kind subscribed --pool bulk --opens on --emails-per-day 9';
  await json(`stream create news ${settings}`, '--title', 'Our news');
  t.like(await json('stream set news --clicks off --pool default'), {
    name: 'news',
    title: 'Our news',
    kind: 'subscribed',
    pool: null,
    tracking: { openTracking: true, clickTracking: false },
    emailsPerDay: 9,
  });
  t.like(await json('stream list'), [{ name: 'news' }]);
  await json('suppression add ann@there.invalid --stream news');
  t.like(await json('suppression list --stream news'), [{ address: 'ann@there.invalid' }]);
  t.deepEqual(await json('suppression list'), []);
  const made = await cli('key create --label n --scope email:send --stream news --json');
  t.is(JSON.parse(made.stdout.toString()).stream, 'news');
  t.regex(await refusal(1, 'stream remove news --yes'), /stream news is that of the key n/);
  t.regex(await refusal(1, 'stream set none'), /There is no such stream/);
  t.regex(await refusal(2, 'stream create No'), /name of a stream/);
});
