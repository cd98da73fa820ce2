/** What a batch leaves to the databases and the node: one commit, a restart, bodies that arrive at the same time. */
import { request } from 'node:http';
import { json } from 'node:stream/consumers';
import test from 'ava';
import { journeyKinds } from '#lab/database/databases.ts';
import { readExposition } from '#lab/exposition.ts';
import { startWorld, type World } from '#lab/scenes/world.ts';
import { until } from '#lab/until.ts';

const batchPath = '/api/public/email/batch';
const attachments = [{ filename: 'a.bin', content: Buffer.alloc(40_000, 'a').toString('base64') }];
const mail = (n: number) => ({
  from: 'App <app@sender.invalid>',
  to: `r${n}@there.invalid`,
  subject: 'Hello',
  text: 'Hi',
  attachments,
  idempotencyKey: `receipt-${n}`,
});

async function commitsOf(world: World): Promise<number> {
  const response = await fetch(`${world.url()}/metrics`);
  const labels = { kind: 'accept' };
  return readExposition(await response.text()).value('postern_commit_duration_seconds_count', labels) ?? 0;
}

for (const database of journeyKinds) {
  test(`${database}: a hundred sends with attachments are one commit, are all delivered, and are known after a restart`, async (t) => {
    const world = await startWorld(t, { database, tenant: { quota: 100 } });
    const body = JSON.stringify(Array.from({ length: 100 }, (_, n) => mail(n)));
    const before = await commitsOf(world);
    const { status, body: first } = await world.call('POST', batchPath, { body });
    t.is(status, 200);
    t.true(first.results.every((one: { status: number }) => one.status === 200));
    t.is((await commitsOf(world)) - before, 1);
    t.is((await world.db('credit_entries').where({ reason: 'send' })).length, 100);
    await until(() => world.mx[0]!.messages.length === 100, { what: 'a hundred mails' });
    await world.restart();
    const again = (await world.call('POST', batchPath, { body })).body;
    t.deepEqual(
      again.results,
      first.results.map((one: object) => ({ ...one, replayed: true })),
    );
  });
}

test('one batch above 20 MiB at a time, within a minute; smaller ones are received beside it', async (t) => {
  const world = await startWorld(t);
  const start = () => {
    const headers = { authorization: `Bearer ${world.key}`, 'content-type': 'application/json' };
    const call = request(world.url() + batchPath, { method: 'POST', headers });
    const answer = new Promise<{ status: number; body: { message: string } }>((resolve, reject) => {
      call.on('response', async (response) =>
        resolve({ status: response.statusCode!, body: (await json(response)) as { message: string } }),
      );
      call.on('error', reject);
    });
    return { call, answer };
  };
  const send = (part: string, { call }: ReturnType<typeof start>) =>
    new Promise((resolve) => call.write(part, resolve));
  const part = 'x'.repeat(22 * 1024 * 1024);
  const first = start();
  // So much that more than 20 MiB have been read when all is written, whatever the buffers between here and there hold.
  await send(`["${'x'.repeat(40 * 1024 * 1024)}`, first);
  const isRefused = async () => {
    const second = start();
    second.call.end(`["${part}"]`);
    return (await second.answer).status === 429;
  };
  await until(isRefused, { what: 'the second to be refused' });
  t.is((await world.call('POST', batchPath, { body: JSON.stringify([mail(1)]) })).status, 200);
  await world.clock.advance('61s');
  first.call.write('more');
  const { status, body } = await first.answer;
  t.is(status, 400);
  t.regex(body.message, /too slowly/);
  const third = start();
  third.call.end(`["${part}"]`);
  t.is((await third.answer).status, 200);
});
