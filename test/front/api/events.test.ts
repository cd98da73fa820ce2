/** The feed: what happens to an organization, page by page and live, on both databases. */
import { randomUUID } from 'node:crypto';
import test, { type ExecutionContext } from 'ava';
import { newKey } from '#accounts/api-keys.ts';
import { insertKey, revokeKey } from '#accounts/rows/keys.ts';
import { insertOrganization } from '#accounts/rows/organizations.ts';
import { addSuppression } from '#accounts/rows/suppressions.ts';
import { journeyKinds } from '#lab/database/databases.ts';
import { readContract } from '#lab/openapi.ts';
import { startWorld, type World } from '#lab/scenes/world.ts';
import { until } from '#lab/until.ts';

const path = '/api/public/events';
const orgOf = async (world: World) => (await world.db('organizations').first('id')).id as string;
const nobody = { rcpt: ({ address = '' }) => (address.startsWith('bob') ? '550 5.1.1 unknown' : undefined) };

const list = async (world: World, query = '') => {
  const answer = await world.call('GET', `${path}${query}`);
  if (answer.status !== 200) throw new Error(JSON.stringify(answer.body));
  return answer.body;
};

interface Told {
  id: string;
  event: string;
  data: { type: string; recipient: string; data: Record<string, string> };
}

/** A live stream: the events so far, the last id, whether it has ended. */
async function listen(t: ExecutionContext, world: World, query = '', headers: Record<string, string> = {}) {
  const hangUp = new AbortController();
  t.teardown(() => hangUp.abort());
  const response = await fetch(`${world.url()}${path}${query}`, {
    headers: { authorization: `Bearer ${world.key}`, accept: 'text/event-stream', ...headers },
    signal: hangUp.signal,
  });
  const stream = { response, events: [] as Told[], id: '', comments: 0, ended: false, wasCut: false, hangUp };
  const read = async () => {
    let text = '';
    for await (const chunk of response.body!.pipeThrough(new TextDecoderStream())) {
      const blocks = (text + chunk).split('\n\n');
      text = blocks.pop()!;
      for (const block of blocks) take(block);
    }
  };
  const take = (block: string) => {
    const fields = Object.fromEntries(
      block.split('\n').map((line) => [line.split(': ', 1)[0]!, line.replace(/^\w*: /, '')]),
    );
    if (block.startsWith(':')) stream.comments += 1;
    if (fields.id) stream.id = fields.id;
    if (fields.data)
      stream.events.push({ id: fields.id!, event: fields.event!, data: JSON.parse(fields.data) });
  };
  read()
    .catch(() => {
      stream.wasCut = true;
    })
    .finally(() => {
      stream.ended = true;
    });
  return stream;
}

for (const database of journeyKinds) {
  test(`${database}: the feed tells what happened, in order, to this organization alone`, async (t) => {
    const world = await startWorld(t, { database, exchangers: [{ script: nobody }] });
    const contract = await readContract(world);
    t.deepEqual(await list(world), { success: true, events: [], next: null, hasMore: false });
    const tags = { order: '4711' };
    const { body } = await world.send({ to: ['ann@there.invalid', 'bob@there.invalid'], tags });
    await world.when(body.emailId, ({ status }) => status === 'partially_delivered');
    const other = await world.db.transaction((trx) => insertOrganization(trx, 'Other', Date.now()));
    const suppressed = { orgId: other, address: 'x@y.invalid', addressKey: 'x@y.invalid', reason: 'test' };
    await addSuppression(world.db, suppressed, Date.now());

    const answer = await world.call('GET', path);
    contract.check(t, 'get', path, answer);
    const { events, next, hasMore } = answer.body;
    t.false(hasMore);
    t.deepEqual(events.map(({ type, recipient }: Told['data']) => `${type} ${recipient?.[0]}`).sort(), [
      'email.bounced b',
      'email.delivered a',
      'email.queued a',
      'email.queued b',
      'suppression.added undefined',
    ]);
    const told = events.find(({ type }: Told['data']) => type === 'email.bounced');
    t.like(told.data, {
      emailId: body.emailId,
      id: body.id,
      recipient: 'bob@there.invalid',
      subject: 'Hello',
      tags,
    });
    t.like(told.data, { from: 'App <app@sender.invalid>', bounce: { category: 'unknown_user' } });
    const { events: own } = await world.get(body.emailId);
    t.is(told.id, own.find(({ type }: Told['data']) => type === 'email.bounced').id);
    t.deepEqual(await list(world, `?after=${next}`), { success: true, events: [], next, hasMore: false });

    const paged: string[] = [];
    for (
      let page = await list(world, '?limit=2');
      ;
      page = await list(world, `?limit=2&after=${page.next}`)
    ) {
      paged.push(...page.events.map(({ id }: Told) => id));
      if (!page.hasMore) break;
    }
    t.deepEqual(
      paged,
      events.map(({ id }: Told) => id),
    );

    const types = async (query: string) =>
      (await list(world, query)).events.map(({ type }: Told['data']) => type);
    const some = await types('?type=email.bounced,email.delivered&type=suppression.added');
    t.deepEqual(some.sort(), ['email.bounced', 'email.delivered', 'suppression.added']);
    t.is((await types(`?emailId=${body.emailId.toUpperCase()}`)).length, 4);
    t.deepEqual(await types(`?emailId=${body.emailId}&type=email.bounced`), ['email.bounced']);
    t.deepEqual(await types(`?emailId=${randomUUID()}`), []);
  });

  test(`${database}: live, events come as they happen, and a client that was cut off misses none`, async (t) => {
    const world = await startWorld(t, { database });
    await world.send({ to: 'before@there.invalid' });
    await until(async () => (await list(world)).events.length === 2);
    const stream = await listen(t, world);
    t.is(stream.response.headers.get('content-type'), 'text/event-stream; charset=utf-8');
    await until(() => stream.id !== '');
    const first = stream.id;
    const one = (await world.send({ to: 'one@there.invalid' })).body;
    await until(() => stream.events.length === 2, { what: () => JSON.stringify(stream.events) });
    t.deepEqual(
      stream.events.map(({ event }) => event),
      ['email.queued', 'email.delivered'],
    );
    t.like(stream.events[0]!.data, { type: 'email.queued', recipient: 'one@there.invalid' });
    t.is(stream.events[0]!.data.data.emailId, one.emailId);
    stream.hangUp.abort();
    await world.send({ to: 'two@there.invalid' });
    const again = await listen(t, world, '', { 'last-event-id': stream.events[0]!.id });
    await until(() => again.events.length === 3);
    t.deepEqual(again.events[0], stream.events[1]);
    const all = await listen(t, world, `?after=${first}&type=email.delivered`);
    await until(() => all.events.length === 2);
    t.deepEqual(
      all.events.map(({ data }) => data.recipient),
      ['one@there.invalid', 'two@there.invalid'],
    );
    // The ids of the stream and the cursors of the pages are the same.
    t.is((await list(world, `?after=${again.events[0]!.id}`)).events.length, 2);
  });

  test(`${database}: what another process writes comes within a second`, async (t) => {
    const world = await startWorld(t, { database });
    const stream = await listen(t, world);
    await until(() => stream.id !== '');
    const suppressed = {
      orgId: await orgOf(world),
      address: 'x@y.invalid',
      addressKey: 'x@y.invalid',
      reason: 'test',
    };
    // world.db is a connection of its own.
    await addSuppression(world.db, suppressed, Date.now());
    await world.clock.passUntil(() => stream.events.length === 1);
    t.is(stream.events[0]!.event, 'suppression.added');
  });
}

test('a stream shows that it is alive, and ends with its key', async (t) => {
  const world = await startWorld(t);
  const { key, hash, hint } = newKey();
  const orgId = await orgOf(world);
  const keyId = await insertKey(
    world.db,
    { orgId, label: 'live', hash, hint, scopes: ['email:read'] },
    Date.now(),
  );
  const stream = await listen(t, world, '', { authorization: `Bearer ${key}` });
  await until(() => stream.id !== '');
  await world.clock.passUntil(() => stream.comments >= 2, { step: '15s' });
  t.false(stream.ended);
  await revokeKey(world.db, keyId, Date.now());
  await until(async () => {
    await world.send({ to: 'ann@there.invalid' });
    await world.clock.advance('15s');
    return stream.ended;
  });
});

test('streams end when the service stops, and are not cut', async (t) => {
  const world = await startWorld(t);
  const streams = [await listen(t, world), await listen(t, world)];
  await until(() => streams.every(({ id }) => id !== ''));
  await world.stop();
  await until(() => streams.every(({ ended }) => ended));
  t.false(streams.some(({ wasCut }) => wasCut));
});

test('an organization has ten streams at once; the eleventh is told to come later, another organization is not', async (t) => {
  const world = await startWorld(t);
  const contract = await readContract(world);
  const many = await Promise.all(Array.from({ length: 12 }, () => listen(t, world)));
  const refused = many.filter(({ response }) => response.status === 429);
  t.is(refused.length, 2);
  const answer = await world.call('GET', path, { headers: { accept: 'text/event-stream' } });
  t.is(answer.status, 429);
  contract.check(t, 'get', path, answer);
  t.is((await world.call('GET', path)).status, 200, 'pages are not streams');
  const other = await world.db.transaction((trx) => insertOrganization(trx, 'Other', Date.now()));
  const { key, hash, hint } = newKey();
  await insertKey(world.db, { orgId: other, label: 'other', hash, hint, scopes: ['email:read'] }, Date.now());
  t.is((await listen(t, world, '', { authorization: `Bearer ${key}` })).response.status, 200);
  many.find(({ response }) => response.status === 200)!.hangUp.abort();
  await until(async () => (await listen(t, world)).response.status === 200);
});

test('what is no cursor, type, id or limit is refused by its name', async (t) => {
  const world = await startWorld(t);
  const contract = await readContract(world);
  const other = await startWorld(t);
  await other.send({ to: 'ann@there.invalid' });
  const { next: foreign } = await list(other);
  const wrong: [query: string, field: string][] = [
    ['after=4711', 'after'],
    [`after=${foreign}`, 'after'],
    ['after=a&after=b', 'after'],
    ['type=email.bounce', 'type'],
    ['emailId=4711', 'emailId'],
    ['limit=0', 'limit'],
    ['limit=1001', 'limit'],
    ['limit=ten', 'limit'],
  ];
  for (const [query, field] of wrong) {
    for (const accept of ['application/json', 'text/event-stream']) {
      const answer = await world.call('GET', `${path}?${query}`, { headers: { accept } });
      t.is(answer.status, 400, query);
      t.is(answer.body.error, 'VALIDATION_ERROR');
      t.is(answer.body.issues[0].path[0], field, query);
      contract.check(t, 'get', path, answer);
    }
  }
  t.is((await world.call('GET', `${path}?unknown=1`)).status, 200);
});
