/** When the disk cannot follow or is nearly full, a send is refused before it costs anything, and later taken again. */
import { copyFile, rename } from 'node:fs/promises';
import { join } from 'node:path';
import test from 'ava';
import { newKey } from '#accounts/api-keys.ts';
import { setLimits } from '#accounts/rows/organizations.ts';
import { type Answer, startWorld, type World } from '#lab/scenes/world.ts';
import { until } from '#lab/until.ts';

/** A disk that does not answer: nobody else commits until the returned function is called. */
async function stall({ db }: World): Promise<() => Promise<void>> {
  const trx = await db.transaction();
  await trx('organizations').update({ name: 'Tenant' });
  return async () => {
    await trx.commit();
  };
}

/** The clock has to go on for it to look again. */
async function isReady(world: World): Promise<boolean> {
  return (await fetch(`${world.url()}/health/ready`)).status === 200;
}

/** Not on SQLite: its connection waits for the lock, and so would the look-up of the key of a send that comes a second later. */
test('while commits hang a bounded number of sends wait, and the next is refused with 429', async (t) => {
  const settings = { POSTERN_HTTP_CONCURRENCY: '8' };
  const world = await startWorld(t, { database: 'postgres', settings });
  t.is((await world.send({ to: 'first@there.invalid' })).status, 200);
  const goOn = await stall(world);
  const answers: Answer[] = [];
  // One organization has half of the places, and as many of its sends wait for one.
  const calls = Array.from({ length: 9 }, async (_, n) => {
    answers.push(await world.send({ to: `n${n}@there.invalid` }));
  });
  await until(() => answers.length === 1);
  const [refused] = answers;
  t.is(refused!.status, 429);
  t.is(refused!.body.error, 'RATE_LIMIT_EXCEEDED');
  t.is(refused!.headers.get('retry-after'), '1');
  t.is(refused!.headers.get('x-ratelimit-remaining'), '0');
  await goOn();
  await Promise.all(calls);
  t.deepEqual(
    answers.map(({ status }) => status),
    [429, ...Array(8).fill(200)],
  );
  t.is((await world.send({ to: 'late@there.invalid' })).status, 200, 'there is room again');
  await world.mx[0]!.received(10);
  t.is((await world.db('organizations').first()).ledger_total, -10);
});

test('while the database hangs, calls do not pile up at their keys', async (t) => {
  const settings = { POSTERN_HTTP_CONCURRENCY: '2' };
  const world = await startWorld(t, { database: 'postgres', settings });
  const trx = await world.db.transaction();
  await trx.raw('lock table api_keys in access exclusive mode');
  const statuses: number[] = [];
  const calls = Array.from({ length: 10 }, async () => {
    const headers = { authorization: `Bearer ${newKey().key}` };
    statuses.push((await world.call('GET', '/api/public/email/1', { headers })).status);
  });
  await until(() => statuses.length === 4);
  t.deepEqual(statuses, [429, 429, 429, 429]);
  await trx.commit();
  await Promise.all(calls);
  t.deepEqual(statuses.slice(4), [401, 401, 401, 401, 401, 401]);
});

test('a disk that is nearly full refuses new mail, delivers what was taken, and opens by itself', async (t) => {
  let free = 200 * 1024 * 1024;
  const world = await startWorld(t, {
    overrides: { freeBytes: async () => free },
    exchangers: [{ script: { rcpt: ({ attempt }) => (attempt === 1 ? '451 4.3.0 later' : undefined) } }],
  });
  const { id } = await world.db('organizations').first();
  const limits = { requestsPerSecond: 100, requestsPerDay: 1000, emailsPerDay: 1000 };
  await world.db.transaction((trx) => setLimits(trx, id, limits));
  await world.restart();
  const { emailId } = (await world.send({ to: 'early@there.invalid' })).body;
  await world.when(emailId, ({ status }) => status === 'deferred');
  const counted = async () => (await world.db('daily_usage').first()).requests;
  const before = await counted();

  free = 99 * 1024 * 1024;
  await world.clock.passUntil(async () => !(await isReady(world)));
  const { status, headers, body } = await world.send({ to: 'late@there.invalid' });
  t.is(status, 429);
  t.is(body.error, 'RATE_LIMIT_EXCEEDED');
  t.is(headers.get('retry-after'), '30');
  t.regex(body.message, /low on disk space/);
  t.is(await counted(), before, 'it counts in no window');
  await world.clock.advance('1m');
  await world.clock.passUntil(() => world.mx[0]!.messages.length === 1);

  free = 100 * 1024 * 1024;
  await world.clock.passUntil(() => isReady(world));
  t.is((await world.send({ to: 'late@there.invalid' })).status, 200);
});

test('no mail is taken into a database whose file is gone; it is taken again into the file that is back', async (t) => {
  const world = await startWorld(t, { database: 'sqlite' });
  const file = join(world.config.dataDir, 'postern.sqlite');
  await rename(file, `${file}.away`);
  await world.clock.passUntil(async () => !(await isReady(world)));
  t.is((await world.send({ to: 'late@there.invalid' })).status, 429);
  // Another in its place is not the one that is written into.
  await copyFile(`${file}.away`, file);
  await world.clock.advance('1s');
  t.is((await world.send({ to: 'late@there.invalid' })).status, 429);

  await rename(`${file}.away`, file);
  await world.clock.passUntil(() => isReady(world));
  const { status, body } = await world.send({ to: 'late@there.invalid' });
  t.is(status, 200);
  await world.when(body.emailId, ({ status }) => status === 'delivered');
});
