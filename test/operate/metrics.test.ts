/** Who may read the metrics, what a scrape asks of the database, and that what is shipped to look at them fits them. */
import { readFileSync } from 'node:fs';
import http from 'node:http';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import test from 'ava';
import { manualClock } from '#lab/clock.ts';
import { oneKind } from '#lab/database/databases.ts';
import { minute, now, openQueue } from '#lab/database/queue-rows.ts';
import { readExposition } from '#lab/exposition.ts';
import { startWorld } from '#lab/scenes/world.ts';
import { until } from '#lab/until.ts';
import { oldestDue, queueDepth, webhookBacklog } from '#mail/queue/rows/queue-counts.ts';
import { createMetrics } from '#operate/metrics/metrics.ts';
import { accessOf } from '#operate/metrics/metrics-access.ts';
import { watchProcess } from '#operate/metrics/process-metrics.ts';
import { createReadings } from '#operate/metrics/readings.ts';

const token = 'a-token-that-is-long-enough';

/** A request as it stands there; `from` is the address it comes from. */
function requested(from: string, headers: Record<string, string>) {
  return { headers: { host: '127.0.0.1:8080', ...headers }, socket: { remoteAddress: from } } as never;
}

test('without a token metrics are for this machine, and not for what its proxy passes on', (t) => {
  const access = (from: string, headers = {}) => accessOf(requested(from, headers), null);
  for (const from of ['127.0.0.1', '127.9.9.9', '::1', '::ffff:127.0.0.1'])
    t.is(access(from), 'granted', from);
  for (const host of ['localhost', 'LOCALHOST:80', '[::1]:8080', '127.0.0.1'])
    t.is(access('127.0.0.1', { host }), 'granted', host);
  for (const from of ['192.0.2.1', '10.0.0.1', '::ffff:192.0.2.1', '2001:db8::1', '128.0.0.1'])
    t.is(access(from), 'hidden', from);
  for (const name of [
    'x-forwarded-for',
    'forwarded',
    'via',
    'x-real-ip',
    'x-forwarded-proto',
    'x-forwarded-host',
  ])
    t.is(access('127.0.0.1', { [name]: '127.0.0.1' }), 'hidden', name);
  for (const host of ['mail.example.org', '127.0.0.1.example.org', 'localhost.example.org', '', '192.0.2.1'])
    t.is(access('127.0.0.1', { host }), 'hidden', host);
  t.is(access('127.0.0.1', { authorization: `Bearer ${token}` }), 'granted', 'which nobody asked for');
});

test('with a token metrics are for any client that has it, and no other', (t) => {
  const access = (from: string, headers = {}) => accessOf(requested(from, headers), token);
  for (const from of ['192.0.2.1', '127.0.0.1']) {
    t.is(access(from, { authorization: `Bearer ${token}` }), 'granted');
    t.is(access(from, { authorization: `bearer ${token}`, 'x-forwarded-for': '192.0.2.9' }), 'granted');
    for (const authorization of [
      '',
      'Bearer',
      `Bearer ${token}x`,
      `Basic ${token}`,
      `Bearer ${token} x`,
      token,
    ])
      t.is(access(from, { authorization }), 'unauthorized', authorization);
    t.is(access(from), 'unauthorized');
  }
});

test('/metrics is 404 for a proxy without a token, and 401 where the token is missing', async (t) => {
  const [open, closed] = await Promise.all([
    startWorld(t),
    startWorld(t, { settings: { POSTERN_METRICS_TOKEN: token } }),
  ]);
  const get = async (url: string, headers: Record<string, string> = {}, method = 'GET') => {
    const { promise, resolve, reject } = Promise.withResolvers<http.IncomingMessage>();
    http.request(`${url}/metrics`, { headers, method }, resolve).on('error', reject).end();
    const response = await promise;
    return { status: response.statusCode, headers: response.headers, body: await text(response) };
  };
  const plain = await get(open.url());
  t.is(plain.status, 200);
  t.is(plain.headers['content-type'], 'text/plain; version=0.0.4; charset=utf-8');
  t.is((await get(open.url(), {}, 'POST')).status, 405);
  for (const headers of [{ 'X-Forwarded-For': '192.0.2.1' }, { Host: 'mail.example.org' }] as Record<
    string,
    string
  >[]) {
    const { status, body } = await get(open.url(), headers);
    t.is(status, 404);
    t.is(JSON.parse(body).error, 'NOT_FOUND', 'as at any path where there is nothing');
  }
  const asked = await get(closed.url());
  t.is(asked.status, 401);
  t.is(asked.headers['www-authenticate'], 'Bearer realm="metrics"');
  t.false(asked.body.includes('postern_sends'));
  const forwarded = {
    Authorization: `Bearer ${token}`,
    'X-Forwarded-For': '192.0.2.1',
    Host: 'mail.example.org',
  };
  t.is((await get(closed.url(), forwarded)).status, 200);
});

test('the queue is counted by what waits, the oldest by when it fell due', async (t) => {
  const { db, add } = await openQueue(t, oneKind);
  t.deepEqual(await queueDepth(db, now), { due: 0, later: 0, sending: 0, held: 0, scheduled: 0 });
  t.is(await oldestDue(db, now), null);
  await add({ due_at: now + minute }, { due_at: now + minute, status: 'queued' });
  t.is(await oldestDue(db, now), null);
  await add({ due_at: now - minute }, { due_at: now - 5 * minute, status: 'queued' }, { due_at: now });
  await add({ status: 'held', due_at: null }, { status: 'delivered', due_at: null });
  await add({ status: 'sending', due_at: now - 9 * minute, lease_owner: 'node' });
  t.deepEqual(await queueDepth(db, now), { due: 3, later: 2, sending: 1, held: 1, scheduled: 0 });
  t.is(await oldestDue(db, now), now - 5 * minute);
  t.deepEqual(await webhookBacklog(db), { open: 0, oldestAt: null });
});

/** What a scrape reads, with a database that answers when it is told to. */
function readings() {
  const { meters, registry } = createMetrics('1', () => {});
  const asked: PromiseWithResolvers<number | null>[] = [];
  const faults: string[] = [];
  const clock = manualClock();
  const { collect: take, stop } = createReadings({
    meters,
    oldestDue() {
      const one = Promise.withResolvers<number | null>();
      asked.push(one);
      return one.promise;
    },
    queueDepth: async () => ({ due: 7, later: 0, sending: 0, held: 0, scheduled: 0 }),
    webhookBacklog: async () => ({ open: 0, oldestAt: clock.now() - 90_000 }),
    certificates: async () => [],
    status: async (at) => ({
      at,
      isServed: true,
      setUp: null,
      needs: [],
      folded: [],
      more: 0,
      orders: [],
      warmUps: [],
    }),
    load: () => ({ connections: { busy: 3, idle: 1 }, inFlight: 2 }),
    clients: () => 0,
    lastBackupAt: () => null,
    freeSpace: () => null,
    onError: (what) => faults.push(what),
    clock,
  });
  const print = async () => readExposition(await registry.metrics());
  return { take, stop, asked, faults, clock, print };
}

test('a scrape does not wait for a database that is slow, and does not ask it twice at once', async (t) => {
  const { take, asked, print } = readings();
  await Promise.all([take(), take(), take()]);
  t.is(asked.length, 1);
  const first = await print();
  t.is(first.value('postern_smtp_connections', { state: 'busy' }), 3, 'what memory knows is there');
  t.is(first.value('postern_queue_deliveries'), null, 'what is not known is not made up');
  asked[0]!.resolve(null);
  await until(async () => (await print()).value('postern_queue_deliveries', { state: 'due' }) === 7);
  t.is((await print()).value('postern_webhook_lag_seconds'), 90);
  await take();
  t.is(asked.length, 1, 'it took long, so it rests long');
});

test('a database in trouble leaves the last counts, and a stop waits for the query under way', async (t) => {
  const { take, stop, asked, faults } = readings();
  const taking = take();
  await until(() => asked.length === 1);
  const stopped = stop();
  asked[0]!.reject(new Error('gone'));
  await Promise.all([taking, stopped]);
  t.deepEqual(faults, ['the queue could not be counted for the metrics']);
  await take();
  t.is(asked.length, 1);
});

test('a count that goes wrong never makes a commit that went right fail', async (t) => {
  const troubles: unknown[] = [];
  const { timed } = createMetrics('1', (_, error) => troubles.push(error));
  const commit = timed(
    'accept',
    async (items: number[]) => items.map((item) => item * 2),
    () => {
      throw new Error('a fault');
    },
  );
  t.deepEqual(await commit([1, 2]), [2, 4]);
  t.is(troubles.length, 1);
});

test('every metric that the dashboard and the alerts ask for is one that /metrics prints', async (t) => {
  const { registry } = createMetrics('1', () => {});
  watchProcess(registry);
  const { names } = readExposition(await registry.metrics());
  const config = (file: string) => readFileSync(join(import.meta.dirname, '../../config', file), 'utf8');
  const dashboard = JSON.parse(config('grafana.json'));
  const expressions: string[] = dashboard.panels.flatMap(({ targets = [] }) =>
    targets.map(({ expr }: { expr: string }) => expr),
  );
  t.true(expressions.length > 40);
  for (const source of [...expressions, config('alerts.yml')])
    for (const [name] of source.matchAll(/\b(postern|process|nodejs)_[a-z0-9_]+/g))
      t.true(names.has(name), name);
  const shown = expressions.join(' ');
  const hidden = [...names].filter(
    (name) => name.startsWith('postern_') && !/_(bucket|sum|count)$/.test(name),
  );
  t.deepEqual(
    hidden.filter((name) => !shown.includes(name)),
    [
      'postern_sends_accepted_total',
      'postern_sends_replayed_total',
      'postern_received_mails_total',
      'postern_last_backup_timestamp_seconds',
      'postern_build_info',
    ],
    'what the dashboard leaves out',
  );
});

test('each panel asks the data source that was chosen, and says what it shows', (t) => {
  const dashboard = JSON.parse(readFileSync(join(import.meta.dirname, '../../config/grafana.json'), 'utf8'));
  const variables = dashboard.templating.list.map(({ name }: { name: string }) => name);
  t.deepEqual(variables, ['datasource', 'job', 'instance']);
  const chosen = `\${${variables[0]}}`;
  const ids = new Set<number>();
  for (const panel of dashboard.panels) {
    ids.add(panel.id);
    if (panel.type === 'row') continue;
    t.is(panel.datasource.uid, chosen, panel.title);
    for (const target of panel.targets) t.is(target.datasource.uid, chosen, panel.title);
    t.truthy(panel.title);
  }
  t.is(ids.size, dashboard.panels.length);
});
