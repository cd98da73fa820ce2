/** Two nodes on one PostgreSQL answer as one: keys, limits and credits are exact whichever of them is asked. */
import test from 'ava';
import { setLimits } from '../../src/db/accounts/organizations.ts';
import { contextOfFile } from '../lab/context-of-file.ts';
import { sharedSecret, startNode } from '../lab/scenes/nodes.ts';
import { insertTenant, startWorld, type World } from '../lab/scenes/world.ts';
import { until } from '../lab/until.ts';

/** The nodes are started once; each test has an organization of its own. */
let world: World;
let urls: string[];
const context = contextOfFile();

test.before(async () => {
  world = await startWorld(context, { database: 'postgres', settings: sharedSecret });
  const second = await startNode(context, world);
  urls = [world.url(), second.url];
});

async function addTenant(quota: number | null = null) {
  const { db, config, dns } = world;
  const { key, orgId } = await insertTenant(db, config, dns, { quota });
  const headers = { authorization: `Bearer ${key}`, 'content-type': 'application/json' };
  const call = async (n: number, path: string, body?: object) => {
    const response = await fetch(`${urls[n % 2]}${path}`, {
      method: body ? 'POST' : 'GET',
      headers,
      body: body && JSON.stringify(body),
    });
    // biome-ignore lint/suspicious/noExplicitAny: what the API says is what the test looks at
    return { status: response.status, body: (await response.json()) as any };
  };
  const delivered = (emailId: string) =>
    until(async () => (await call(0, `/api/public/email/${emailId}`)).body.status === 'delivered', {
      what: 'the delivery',
    });
  const changes = () => db('credit_entries').where({ org_id: orgId, reason: 'send' }).pluck('change');
  return { orgId, call, delivered, changes };
}

const receivedBy = (address: string) => world.mx[0]!.messages.filter(({ to }) => to[0] === address).length;

const mail = { from: 'app@sender.invalid', to: 'ann@there.invalid', subject: 'Once', text: 'Once' };

test('twenty sends with one key, over both nodes: one mail, one debit, twenty equal answers', async (t) => {
  const { call, delivered, changes } = await addTenant(100);
  const to = 'twenty@there.invalid';
  const send = (n: number) => call(n, '/api/public/email/send', { ...mail, to, idempotencyKey: 'k' });
  const answers = await Promise.all(Array.from({ length: 20 }, (_, n) => send(n)));
  for (const answer of answers) t.deepEqual(answer, answers[0]!);
  await delivered(answers[0]!.body.emailId);
  t.is(receivedBy(to), 1);
  t.deepEqual(await changes(), [-1]);
});

test('credits are spent once, whichever node spends them', async (t) => {
  const { call } = await addTenant(15);
  const answers = await Promise.all(
    Array.from({ length: 40 }, (_, n) => call(n, '/api/public/email/send', { ...mail, subject: `${n}` })),
  );
  t.is(answers.filter(({ status }) => status === 200).length, 15);
  t.is(answers.filter(({ status }) => status === 402).length, 25);
});

test('a limit holds over both nodes together', async (t) => {
  const { orgId, call } = await addTenant();
  await setLimits(world.db, orgId, { requestsPerSecond: 7, requestsPerDay: null });
  const ask = (n: number) => call(n, '/api/public/email/00000000-0000-7000-8000-000000000000');
  const answers = await Promise.all(Array.from({ length: 40 }, (_, n) => ask(n)));
  t.is(answers.filter(({ status }) => status === 404).length, 7);
});

test('the day’s emails hold over both nodes together', async (t) => {
  const { orgId, call } = await addTenant();
  await setLimits(world.db, orgId, { emailsPerDay: 11 });
  const answers = await Promise.all(
    Array.from({ length: 40 }, (_, n) => call(n, '/api/public/email/send', { ...mail, subject: `${n}` })),
  );
  t.is(answers.filter(({ status }) => status === 200).length, 11);
  t.is(answers.filter(({ status }) => status === 429).length, 29);
});

// Serial, because it turns the clock.
test.serial('the same mail twenty times within two seconds, over both nodes, is one', async (t) => {
  const { call, delivered, changes } = await addTenant(100);
  const send = (n: number) => call(n, '/api/public/email/send', mail);
  const answers = await Promise.all(Array.from({ length: 20 }, (_, n) => send(n)));
  for (const answer of answers) t.deepEqual(answer, answers[0]!);
  await delivered(answers[0]!.body.emailId);
  await world.clock.advance('3s');
  const later = [await send(0), await send(1)];
  t.not(later[0]!.body.emailId, answers[0]!.body.emailId, 'and another one after them');
  t.is(later[1]!.body.emailId, later[0]!.body.emailId);
  t.deepEqual(await changes(), [-1, -1]);
});

test('each mail is delivered by one of the nodes', async (t) => {
  const { call, orgId } = await addTenant();
  const to = 'each@there.invalid';
  await Promise.all(
    Array.from({ length: 60 }, (_, n) => call(n, '/api/public/email/send', { ...mail, to, subject: `${n}` })),
  );
  const rows = () => world.db('deliveries').where({ org_id: orgId, status: 'delivered' }).select('attempts');
  await until(async () => (await rows()).length === 60, { what: 'all to be delivered' });
  t.true((await rows()).every(({ attempts }) => attempts === 1));
  t.is(receivedBy(to), 60);
});
