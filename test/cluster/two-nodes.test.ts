/** Two nodes on one PostgreSQL answer as one: keys, limits and credits are exact whichever of them is asked. */
import test, { type ExecutionContext } from 'ava';
import { setLimits } from '../../src/db/accounts/organizations.ts';
import { sharedSecret, startNode } from '../lab/scenes/nodes.ts';
import { startWorld } from '../lab/scenes/world.ts';

async function twoNodes(t: ExecutionContext, tenant = {}) {
  const world = await startWorld(t, { database: 'postgres', settings: sharedSecret, tenant });
  const second = await startNode(t, world);
  const urls = [world.url(), second.url];
  const call = async (n: number, path: string, body?: object) => {
    const response = await fetch(`${urls[n % 2]}${path}`, {
      method: body ? 'POST' : 'GET',
      headers: { authorization: `Bearer ${world.key}`, 'content-type': 'application/json' },
      body: body && JSON.stringify(body),
    });
    // biome-ignore lint/suspicious/noExplicitAny: what the API says is what the test looks at
    return { status: response.status, body: (await response.json()) as any };
  };
  return { world, call };
}

const mail = { from: 'app@sender.invalid', to: 'ann@there.invalid', subject: 'Once', text: 'Once' };

test('twenty sends with one key, over both nodes: one mail, one debit, twenty equal answers', async (t) => {
  const { world, call } = await twoNodes(t, { quota: 100 });
  const send = (n: number) => call(n, '/api/public/email/send', { ...mail, idempotencyKey: 'k' });
  const answers = await Promise.all(Array.from({ length: 20 }, (_, n) => send(n)));
  for (const answer of answers) t.deepEqual(answer, answers[0]!);
  await world.when(answers[0]!.body.emailId, ({ status }) => status === 'delivered');
  t.is(world.mx[0]!.messages.length, 1);
  t.deepEqual(await world.db('credit_entries').where({ reason: 'send' }).pluck('change'), [-1]);
});

test('credits are spent once, whichever node spends them', async (t) => {
  const { call } = await twoNodes(t, { quota: 15 });
  const answers = await Promise.all(
    Array.from({ length: 40 }, (_, n) => call(n, '/api/public/email/send', { ...mail, subject: `${n}` })),
  );
  t.is(answers.filter(({ status }) => status === 200).length, 15);
  t.is(answers.filter(({ status }) => status === 402).length, 25);
});

test('a limit holds over both nodes together', async (t) => {
  const { world, call } = await twoNodes(t);
  const [{ id: orgId }] = await world.db('organizations').select('id');
  await setLimits(world.db, orgId, { requestsPerSecond: 7, requestsPerDay: null });
  const ask = (n: number) => call(n, '/api/public/email/00000000-0000-7000-8000-000000000000');
  const answers = await Promise.all(Array.from({ length: 40 }, (_, n) => ask(n)));
  t.is(answers.filter(({ status }) => status === 404).length, 7);
});

test('the day’s emails hold over both nodes together', async (t) => {
  const { world, call } = await twoNodes(t);
  const [{ id: orgId }] = await world.db('organizations').select('id');
  await setLimits(world.db, orgId, { emailsPerDay: 11 });
  const answers = await Promise.all(
    Array.from({ length: 40 }, (_, n) => call(n, '/api/public/email/send', { ...mail, subject: `${n}` })),
  );
  t.is(answers.filter(({ status }) => status === 200).length, 11);
  t.is(answers.filter(({ status }) => status === 429).length, 29);
});

test('the same mail twenty times within two seconds, over both nodes, is one', async (t) => {
  const { world, call } = await twoNodes(t, { quota: 100 });
  const send = (n: number) => call(n, '/api/public/email/send', mail);
  const answers = await Promise.all(Array.from({ length: 20 }, (_, n) => send(n)));
  for (const answer of answers) t.deepEqual(answer, answers[0]!);
  await world.when(answers[0]!.body.emailId, ({ status }) => status === 'delivered');
  await world.clock.advance('3s');
  const later = [await send(0), await send(1)];
  t.not(later[0]!.body.emailId, answers[0]!.body.emailId, 'and another one after them');
  t.is(later[1]!.body.emailId, later[0]!.body.emailId);
  t.deepEqual(await world.db('credit_entries').where({ reason: 'send' }).pluck('change'), [-1, -1]);
});

test('each mail is delivered by one of the nodes', async (t) => {
  const { world, call } = await twoNodes(t);
  await Promise.all(
    Array.from({ length: 60 }, (_, n) => call(n, '/api/public/email/send', { ...mail, subject: `${n}` })),
  );
  await world.mx[0]!.received(60);
  await world.mx[0]!.close();
  t.is(world.mx[0]!.messages.length, 60);
});
