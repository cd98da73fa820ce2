/** What /metrics says is what happened, in the format that Prometheus reads, at no cost to who did not ask. */
import test from 'ava';
import { newKey } from '#accounts/api-keys.ts';
import { type Exposition, readExposition } from '#lab/exposition.ts';
import { goldenMail, startReturns } from '#lab/scenes/returns.ts';
import { loggedIn, startSubmission, tenantOf } from '#lab/scenes/submission.ts';
import { startWebhookWorld } from '#lab/scenes/webhook-world.ts';
import { startWorld, type World } from '#lab/scenes/world.ts';
import { until } from '#lab/until.ts';
import { watchProcess } from '#operate/metrics/process-metrics.ts';

async function scrape(world: Pick<World, 'url'>): Promise<Exposition> {
  const response = await fetch(`${world.url()}/metrics`);
  if (response.status !== 200) throw new Error(`/metrics answered ${response.status}`);
  return readExposition(await response.text());
}

/** Asks until this is there, and answers all that there is then. */
function scrapeUntil(world: World, name: string, labels: Record<string, string>, value: number) {
  let last: number | null = null;
  return until(
    async () => {
      const all = await scrape(world);
      last = all.value(name, labels);
      return last === value && all;
    },
    { what: () => `${name} ${JSON.stringify(labels)} to be ${value}; last: ${last}` },
  );
}

const outcomes = 'postern_outcomes_total';

test('after three sends, two delivered and one bounced, the counters say exactly that', async (t) => {
  const world = await startWorld(t);
  const before = await scrape(world);
  t.is(before.value('postern_sends_accepted_total'), 0);
  t.is(before.value(outcomes), 0, 'there from the start, or a rate would miss the first');
  await world.send({ to: 'ann@there.invalid' });
  await world.send({ to: ['bob@there.invalid'], idempotencyKey: 'once' });
  await world.send({ to: ['bob@there.invalid'], idempotencyKey: 'once' });
  await world.send({ to: 'unknown@there.invalid' });
  const after = await scrapeUntil(world, outcomes, {}, 3);
  const is = (name: string, labels: Record<string, string>, value: number | null) =>
    t.is(after.value(name, labels), value, `${name} ${JSON.stringify(labels)}`);
  is('postern_sends_accepted_total', {}, 3);
  is('postern_sends_replayed_total', {}, 1);
  is('postern_recipients_accepted_total', {}, 3);
  is(outcomes, { outcome: 'delivered', category: 'none' }, 2);
  is(outcomes, { outcome: 'bounced', category: 'unknown_user' }, 1);
  is('postern_attempt_duration_seconds_count', { outcome: 'delivered' }, 2);
  is('postern_attempt_duration_seconds_count', { outcome: 'bounced' }, 1);
  is('postern_delivery_latency_seconds_count', {}, 2);
  is('postern_commit_items_total', { kind: 'accept' }, 4);
  is('postern_commit_items_total', { kind: 'outcomes' }, 3);
  is('postern_commit_failures_total', {}, 0);
  const sends = { method: 'POST', route: '/api/public/email/send' };
  is('postern_http_request_duration_seconds_count', { ...sends, status: '2xx' }, 4);
  is('postern_http_request_duration_seconds_count', { ...sends, status: '4xx' }, null);
  is('postern_sends_refused_total', {}, null);
  is('postern_smtp_connections', { state: 'busy' }, 0);
  is('postern_deliveries_in_flight', {}, 0);
  is('postern_disk_reserve_bytes', {}, world.config.minFreeSpace);
  t.true(after.value('postern_disk_free_bytes')! > 0);
  is('postern_build_info', { node: process.version }, 1);
});

test('what is refused is counted by code, requests by route, and no label is of a caller’s making', async (t) => {
  const world = await startWorld(t, { tenant: { quota: 1 } });
  const bad = { headers: { authorization: `Bearer ${newKey().key}` } };
  await world.call('POST', '/api/public/email/send', bad);
  await world.send({ to: 'nobody' });
  await world.send({ to: 'ann@there.invalid', from: 'App <app@elsewhere.invalid>' });
  await world.send({ to: ['ann@there.invalid', 'bob@there.invalid'] });
  await world.send({ to: 'eve@there.invalid' });
  await world.call('GET', '/api/public/email/00000000-0000-0000-0000-000000000000');
  await world.call('GET', '/secret-path?with=words');
  await world.call('PURGE', '/api/public/emails');
  const all = await scrapeUntil(world, outcomes, {}, 1);
  const refused = (code: string) => all.value('postern_sends_refused_total', { via: 'api', code });
  for (const code of ['UNAUTHORIZED', 'VALIDATION_ERROR', 'DOMAIN_NOT_FOUND', 'INSUFFICIENT_CREDITS'])
    t.is(refused(code), 1, code);
  t.is(all.value('postern_sends_refused_total'), 4);
  t.is(all.value('postern_recipients_skipped_total', { reason: 'insufficient_credit' }), 1);
  const requests = (labels: object) =>
    all.value('postern_http_request_duration_seconds_count', { ...labels });
  t.is(requests({ route: '/api/public/email/:id', status: '4xx' }), 1);
  t.is(requests({ route: 'other', method: 'other', status: '4xx' }), 2);
  for (const { samples } of all.metrics.values())
    for (const { labels } of samples) t.notRegex(JSON.stringify(labels), /invalid|secret|PURGE|0000-/);
});

test('a send over SMTP counts, and so does a refusal there', async (t) => {
  const world = await startSubmission(t);
  const talk = await loggedIn(await tenantOf(world));
  await talk.says('MAIL FROM:<app@sender.invalid>\r\n', '250');
  const open = await scrape(world);
  t.is(open.value('postern_inbound_connections'), 1);
  await talk.says('RCPT TO:<ann@there.invalid>\r\n', '250');
  await talk.says('DATA\r\n', '354');
  await talk.says('From: app@elsewhere.invalid\r\nSubject: Hello\r\n\r\nHello\r\n.\r\n', '550');
  await talk.begins('<app@sender.invalid>', '<ann@there.invalid>');
  await talk.says('From: app@sender.invalid\r\nSubject: Hello\r\n\r\nHello\r\n.\r\n', '250');
  const all = await scrapeUntil(world, outcomes, { outcome: 'delivered' }, 1);
  t.is(all.value('postern_sends_refused_total', { via: 'smtp', code: 'DOMAIN_NOT_FOUND' }), 1);
  t.is(all.value('postern_sends_accepted_total'), 1);
});

test('what waits shows as the queue', async (t) => {
  const world = await startWorld(t);
  const { body } = await world.send({ to: 'tempfail@there.invalid' });
  await world.when(body.emailId, ({ status }) => status === 'deferred');
  const all = await scrapeUntil(world, 'postern_queue_deliveries', { state: 'later' }, 1);
  for (const state of ['due', 'sending', 'held'])
    t.is(all.value('postern_queue_deliveries', { state }), 0, state);
  t.is(all.value('postern_queue_oldest_due_age_seconds'), 0);
  t.is(all.value(outcomes, { outcome: 'deferred', category: 'unavailable' }), 1);
  t.is(all.value('postern_queue_measured_age_seconds'), 0);
});

test('posts to webhooks by result, and the age of what an endpoint has not taken', async (t) => {
  const { world, endpoint } = await startWebhookWorld(t);
  const { receiver } = await endpoint(['email.delivered']);
  receiver.answer = (_request, response) => response.writeHead(500).end();
  await world.send({ to: 'ann@there.invalid' });
  await until(async () => (await world.db('webhook_attempts')).length === 1);
  await scrapeUntil(world, 'postern_webhook_posts_total', { result: 'again' }, 1);
  const all = await scrapeUntil(world, 'postern_webhook_messages_open', {}, 1);
  t.is(all.value('postern_webhook_post_duration_seconds_count'), 1);
  t.is(all.value('postern_webhook_posts_total', { result: 'delivered' }), 0);
});

test('mail that comes back is counted by what it is', async (t) => {
  const world = await startReturns(t);
  const { path } = await world.delivered();
  t.is((await scrape(world)).value('postern_inbound_mails_total', { kind: 'failed' }), 0);
  await world.comesBack(path, goldenMail('postfix-unknown-user', path));
  const all = await scrape(world);
  t.is(all.value('postern_inbound_mails_total', { kind: 'failed' }), 1);
  t.is(all.value('postern_commit_items_total', { kind: 'returned' }), 1);
});

test('the metrics of the process are there, and have possible values', async (t) => {
  const world = await startWorld(t, { overrides: { watchProcess } });
  const { names, value } = await scrape(world);
  for (const name of [
    'process_cpu_seconds_total',
    'process_resident_memory_bytes',
    'process_open_fds',
    'nodejs_eventloop_lag_p99_seconds',
  ])
    t.true(names.has(name), name);
  t.true(value('process_resident_memory_bytes')! > 1e6);
  t.deepEqual(
    [...names].filter((name) => /active_|heap_space/.test(name)),
    [],
  );
});
