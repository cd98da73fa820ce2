/**
 * Scheduled mail and kill -9, with two processes that share one PostgreSQL (one process on SQLite: test/slow/simulation.test.ts).
 * While mail falls due it is moved and canceled, and a process is killed. Promised: what was not canceled is sent, no earlier than
 * its time; what was canceled without an attempt is refunded and never sent; the ledger adds up.
 */
import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import test from 'ava';
import { createCrashScene, recipientsOf, sendWithKey } from '#lab/crash-scene.ts';
import { sharedSecret } from '#lab/scenes/nodes.ts';
import { type PosternProcess, startProcess } from '#lab/scenes/process.ts';
import { until } from '#lab/until.ts';

const count = 60;
/** All mails are accepted by then, however slow the machine is. */
const firstMs = 20_000;
const gapMs = 100;
/** The last that are canceled are due so late that they are canceled in time, however slow the machine is. */
const dueMs = (n: number) => firstMs + (n % 3 === 0 && n > 50 ? 60_000 : n * gapMs);

test('scheduled mail survives kill -9, a lost node, moves and cancellations', async (t) => {
  t.timeout(300_000);
  const scene = await createCrashScene(t, 'postgres', sharedSecret);
  const { mx, db, key, settings } = scene;
  const dataDir = settings.POSTERN_DATA_DIR!;
  let running: PosternProcess[] = [];
  t.teardown(() => Promise.all(running.map((one) => one.end('SIGKILL'))));
  const node = async (name: string) => {
    const POSTERN_DATA_DIR = join(dataDir, name);
    await mkdir(POSTERN_DATA_DIR, { recursive: true });
    return startProcess({ ...settings, POSTERN_DATA_DIR });
  };
  running = [await node('one'), await node('two')];

  const start = Date.now();
  const times = new Map<string, number>();
  const ids: string[] = [];
  for (let n = 0; n < count; n++) {
    const [to, at] = [`n${n}@there.invalid`, start + dueMs(n)];
    const response = await sendWithKey(running[0]!.url, key, to, {
      scheduledAt: new Date(at).toISOString(),
    });
    t.is(response.status, 200);
    times.set(to, at);
    ids.push((await db('deliveries').where({ recipient: to }).first('email_id')).email_id);
  }
  const call = (method: string, path: string, body = '{}') =>
    fetch(`${running.at(-1)!.url}/api/public/email/${path}`, {
      method,
      body,
      headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
    }).then(
      async (response) => ({
        status: response.status,
        body: (await response.json()) as { scheduledAt: string },
      }),
      () => null,
    );

  const killed = (async () => {
    await until(() => mx.messages.length >= 5);
    await running[0]!.end('SIGKILL');
    running[0] = await node('one');
  })();
  for (const [n, id] of ids.entries()) {
    if (n % 3 === 0) await until(() => call('POST', `${id}/cancel`));
    const [to, at] = [`n${n}@there.invalid`, Date.now() + 3000];
    if (n % 3 !== 1) continue;
    const moved = await call('PATCH', id, JSON.stringify({ scheduledAt: new Date(at).toISOString() }));
    if (moved?.status === 200) times.set(to, Date.parse(moved.body.scheduledAt));
    // It may have been moved although the answer was lost.
    else if (moved === null) times.set(to, 0);
  }
  await killed;
  const final = ['delivered', 'canceled'];
  await until(async () => (await db('deliveries').whereNotIn('status', final)).length === 0, {
    timeout: 240_000,
    what: 'all mail to end',
  });
  const deliveries: { recipient: string; status: string; attempts: number }[] = await db('deliveries');
  const arrived = recipientsOf(mx);
  for (const { recipient, status, attempts } of deliveries) {
    // The process may have been killed between the message and its record: then an interrupted attempt is recorded.
    if (attempts === 0) t.false(arrived.has(recipient), `${recipient} is canceled`);
    if (status === 'delivered') t.true(arrived.has(recipient), `${recipient} is delivered`);
  }
  for (const { to, at } of mx.messages) t.true(at >= times.get(to[0]!)!, `${to} came before its time`);
  const [org] = await db('organizations');
  const charged = deliveries.filter(({ status, attempts }) => status === 'delivered' || attempts > 0).length;
  t.is(Number(org.quota_used), charged, 'one credit for each that was not refunded');
  const entries: number[] = await db('credit_entries').where({ org_id: org.id }).pluck('change');
  t.is(
    entries.reduce((sum, change) => sum + Number(change), 0),
    Number(org.ledger_total),
  );
  const emails: number[] = await db('emails').pluck('credits');
  t.is(
    emails.reduce((sum, credits) => sum + credits, 0),
    charged,
  );
  t.true(charged < count, 'some were canceled in time');
  for (const one of running) t.is(await one.end('SIGTERM'), 0);
});
