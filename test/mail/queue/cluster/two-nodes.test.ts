/** Two nodes on one PostgreSQL answer as one: keys, limits and credits are exact whichever of them is asked. */
import test from 'ava';
import { setLimits } from '#accounts/rows/organizations.ts';
import { contextOfFile } from '#lab/context-of-file.ts';
import { sharedSecret, startNode } from '#lab/scenes/nodes.ts';
import { asNewTenant, startWorld, type World } from '#lab/scenes/world.ts';
import { until } from '#lab/until.ts';

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
  const own = await asNewTenant(world, { quota });
  const { db, orgId } = own;
  const node = (n: number) => own.at(urls[n % 2]!);
  const send = (n: number, fields: object = {}) => node(n).send({ to: 'ann@there.invalid', ...fields });
  /** Of each answer what it says. */
  const sendMany = (count: number, fields: object = {}) =>
    Promise.all(
      Array.from({ length: count }, async (_, n) => {
        const { status, body } = await send(n, { subject: `${n}`, ...fields });
        return { status, body };
      }),
    );
  const delivered = (emailId: string) => own.when(emailId, ({ status }) => status === 'delivered');
  const changes = () => db('credit_entries').where({ org_id: orgId, reason: 'send' }).pluck('change');
  return { orgId, node, send, sendMany, delivered, changes };
}

const receivedBy = (address: string) => world.mx[0]!.messages.filter(({ to }) => to[0] === address).length;

test('twenty sends with one key, over both nodes: one mail, one debit, twenty equal answers', async (t) => {
  const { sendMany, delivered, changes } = await addTenant(100);
  const to = 'twenty@there.invalid';
  const answers = await sendMany(20, { to, subject: 'Once', idempotencyKey: 'k' });
  for (const answer of answers) t.deepEqual(answer, answers[0]!);
  await delivered(answers[0]!.body.emailId);
  t.is(receivedBy(to), 1);
  t.deepEqual(await changes(), [-1]);
});

test('credits are spent once, whichever node spends them', async (t) => {
  const answers = await (await addTenant(15)).sendMany(40);
  t.is(answers.filter(({ status }) => status === 200).length, 15);
  t.is(answers.filter(({ status }) => status === 402).length, 25);
});

test('a limit holds over both nodes together', async (t) => {
  const { orgId, node } = await addTenant();
  await setLimits(world.db, orgId, { requestsPerSecond: 7, requestsPerDay: null });
  const ask = (n: number) => node(n).call('GET', '/api/public/email/00000000-0000-7000-8000-000000000000');
  const answers = await Promise.all(Array.from({ length: 40 }, (_, n) => ask(n)));
  t.is(answers.filter(({ status }) => status === 404).length, 7);
});

test('the day’s emails hold over both nodes together', async (t) => {
  const { orgId, sendMany } = await addTenant();
  await setLimits(world.db, orgId, { emailsPerDay: 11 });
  const answers = await sendMany(40);
  t.is(answers.filter(({ status }) => status === 200).length, 11);
  t.is(answers.filter(({ status }) => status === 429).length, 29);
});

// Serial, because it turns the clock.
test.serial('the same mail twenty times within two seconds, over both nodes, is one', async (t) => {
  const { send, sendMany, delivered, changes } = await addTenant(100);
  const answers = await sendMany(20, { subject: 'Once' });
  for (const answer of answers) t.deepEqual(answer, answers[0]!);
  await delivered(answers[0]!.body.emailId);
  await world.clock.advance('3s');
  const later = [await send(0, { subject: 'Once' }), await send(1, { subject: 'Once' })];
  t.not(later[0]!.body.emailId, answers[0]!.body.emailId, 'and another one after them');
  t.is(later[1]!.body.emailId, later[0]!.body.emailId);
  t.deepEqual(await changes(), [-1, -1]);
});

test('each mail is delivered by one of the nodes', async (t) => {
  const { sendMany, orgId } = await addTenant();
  const to = 'each@there.invalid';
  await sendMany(60, { to });
  const rows = () => world.db('deliveries').where({ org_id: orgId, status: 'delivered' }).select('attempts');
  await until(async () => (await rows()).length === 60, { what: 'all to be delivered' });
  t.true((await rows()).every(({ attempts }) => attempts === 1));
  t.is(receivedBy(to), 60);
});
