/**
 * The OpenAPI document describes the real server: its examples are sent and get the documented responses, and real
 * responses of every status match its schemas.
 */
import { randomUUID } from 'node:crypto';
import test from 'ava';
import { setQuota } from '#accounts/rows/credit-ledger.ts';
import { findOrganization, setLimits } from '#accounts/rows/organizations.ts';
import { errorExamples, keyWith, provoker } from '#lab/provoke.ts';
import { holdExamples } from '#lab/recorded-examples.ts';
import {
  emailPath,
  exampleOptions,
  exampleWorld,
  rename,
  sendPath,
  suppress,
  withContract,
} from '#lab/scenes/example-world.ts';
import { worldOfFile } from '#lab/scenes/shared-world.ts';
import type { Answer } from '#lab/scenes/world.ts';
import { asNewTenant } from '#lab/scenes/world.ts';
import { until } from '#lab/until.ts';
import { applyQueueAction, type QueueAction } from '#mail/queue/rows/apply-queue-action.ts';

const shared = worldOfFile(exampleOptions());
const batchPath = '/api/public/email/batch';
const hold = holdExamples(test, 'email-examples.json');

/** Deliveries run in parallel, so the events of several recipients come in any order. */
function inOrder(answer: Answer['body']) {
  const place = ({ recipient, type }: { recipient: string; type: string }) =>
    `${type === 'email.queued' ? 0 : 1} ${recipient}`;
  return {
    ...answer,
    events: [...answer.events].sort((a, b) => place(a).localeCompare(place(b))),
  };
}

const plain = {
  from: 'Acme Billing <billing@example.com>',
  to: 'ann@example.org',
  subject: 'Your receipt',
  text: 'Thank you for your order. The total is 42.00 EUR.',
};

const everything = {
  from: 'Acme Billing <billing@example.com>',
  to: ['ann@example.org', 'carl@example.org'],
  subject: 'Your receipt for order 4711',
  html: '<p>Thank you for your order.</p><p><a href="https://shop.example.com/orders/4711">See it</a></p>',
  text: 'Thank you for your order. See it at https://shop.example.com/orders/4711',
  replyTo: 'support@example.com',
  attachments: [{ filename: 'receipt.txt', content: 'VG90YWw6IDQyLjAwIEVVUgo=', contentType: 'text/plain' }],
  headers: { 'X-Campaign': 'receipts' },
  tags: { order: '4711', kind: 'receipt' },
  tracking: { openTracking: true, clickTracking: false },
  idempotencyKey: 'receipt-4711',
};

const partial = {
  ...plain,
  to: ['ann@example.org', 'dora@example.org', 'emil@example.org'],
  subject: 'Our office is closed on Friday',
};

/** The examples of a send, with what the request and the response show. */
const sends = {
  plain: [plain, 'Plain text to one recipient', 'Accepted'],
  everything: [everything, 'Every field', 'Accepted for both'],
  partial: [
    partial,
    'To three recipients: one is suppressed, and there are credits for one',
    'Accepted for one of three',
  ],
} as const;

test('every example of a send gets the response of its example', async (t) => {
  const { world, orgId, contract, post } = await withContract(await asNewTenant(shared()));
  await rename(world, 'example.com');
  await suppress(world, orgId, 'dora@example.org');
  for (const [name, [request, shown, answered]] of Object.entries(sends)) {
    if (name === 'partial') {
      const { quotaUsed } = (await findOrganization(world.db, orgId))!;
      await world.db.transaction((trx) => setQuota(trx, orgId, quotaUsed + 1, Date.now()));
    }
    const answer = await post(request);
    hold(t, `sendEmail request application/json ${name}`, request, shown);
    hold(t, `sendEmail 200 application/json ${name}`, answer.body, answered);
    contract.check(t, 'post', sendPath, answer);
  }
  const tried = await world.call('POST', `${sendPath}?dryRun=true`, { body: JSON.stringify(plain) });
  hold(t, 'sendEmail 200 application/json dryRun', tried.body, 'With `dryRun=true`');
  contract.check(t, 'post', sendPath, tried);
  await world.db.transaction((trx) => setQuota(trx, orgId, null, Date.now()));
  const batch = [{ ...plain, to: 'carl@example.org' }, everything, { ...plain, from: 'billing@example.net' }];
  const many = await world.call('POST', batchPath, { body: JSON.stringify(batch) });
  hold(t, 'sendBatch request application/json batch', batch, 'Three emails');
  const handled = 'The first is accepted, the second repeats an earlier send, the third is refused';
  hold(t, 'sendBatch 200 application/json batch', many.body, handled);
  contract.check(t, 'post', batchPath, many);
  const replay = await post(everything);
  t.is(replay.headers.get('idempotent-replayed'), 'true');
  contract.check(t, 'post', sendPath, replay);
});

test('emails are shown as in the examples, in each state', async (t) => {
  const { world, contract, post } = await withContract(await asNewTenant(shared()));
  await rename(world, 'example.com');
  const show = async (to: string[], status: string, name: string, summary: string) => {
    const { emailId } = (await post({ ...plain, to })).body;
    await world.when(emailId, (email) => email.status === status);
    const answer = await world.call('GET', emailPath.replace('{id}', emailId));
    hold(t, `getEmail 200 application/json ${name}`, inOrder(answer.body), summary);
    contract.check(t, 'get', emailPath, answer);
    return emailId;
  };
  const emailId = await show(
    ['ann@example.org', 'bob@example.org'],
    'partially_delivered',
    'partlyDelivered',
    'To two recipients: one mail server accepted it, the other rejected an unknown mailbox',
  );
  const later = 'Deferred by greylisting; the next attempt follows in half a minute';
  await show(['greta@example.org'], 'deferred', 'deferred', later);

  const list = async (operationId: string, query: string, name: string, summary: string) => {
    const path = `/api/public/${operationId === 'listEmails' ? 'emails' : 'events'}`;
    const answer = await world.call('GET', `${path}?${query}`);
    contract.check(t, 'get', path, answer);
    const body = answer.body.events ? inOrder(answer.body) : answer.body;
    hold(t, `${operationId} 200 application/json ${name}`, body, summary);
    return answer.body;
  };
  await list('listEmails', 'to=bob@example.org', 'page', 'One email was found');
  const own = `emailId=${emailId}`;
  const mixed = 'An email to two recipients, one of them unknown';
  const { next } = await list('listEvents', own, 'page', mixed);
  await list('listEvents', `${own}&after=${next}`, 'none', 'No new events');
  const first = (await world.call('GET', `/api/public/events?${own}&limit=1`)).body;
  const live = await fetch(`${world.url()}/api/public/events?${own}`, {
    headers: {
      authorization: `Bearer ${world.key}`,
      accept: 'text/event-stream',
      'last-event-id': first.next,
    },
  });
  let text = '';
  for await (const chunk of live.body!.pipeThrough(new TextDecoderStream())) {
    text += chunk;
    if (/data: .*\n\n/.test(text)) break;
  }
  const upToFirst = /^.*?data: .*?\n\n/s.exec(text)![0];
  hold(t, 'listEvents 200 text/event-stream live', upToFirst, 'With `Accept: text/event-stream`, live');
});

test('opens, clicks, scans, holding, expiry and skipped recipients match the document', async (t) => {
  const { world, orgId, contract, post } = await exampleWorld(t);
  await rename(world, 'example.com');
  await suppress(world, orgId, 'dora@example.org');
  await world.db.transaction((trx) => setQuota(trx, orgId, 2, Date.now()));
  const { body } = await post({
    from: 'billing@example.com',
    to: ['ann@example.org', 'dora@example.org', 'greta@example.org', 'emil@example.org'],
    subject: 'Hello',
    html: '<p><a href="https://shop.example.com/">Shop</a></p>',
    tracking: { openTracking: true, clickTracking: true },
    replyTo: 'support@example.com',
    tags: { order: '4711' },
  });
  const [message] = await world.mx[0]!.received(1);
  const told = async (holds: (email: Answer['body']) => boolean, when = world.when) => {
    await when(body.emailId, holds);
    contract.check(t, 'get', emailPath, await world.call('GET', emailPath.replace('{id}', body.emailId)));
  };
  await told(({ recipients }) => recipients[0].status === 'delivered');
  const source = message!.raw.toString().replace(/=\r\n/g, '').replaceAll('=3D', '=');
  const links = [...source.matchAll(/https:\/\/mail\.example\.com(\/t\/[oc]\/[\w-]+)/g)].map(
    ([, path]) => path,
  );
  t.is(links.length, 2);
  await world.clock.advance('10s');
  const browser = { 'user-agent': 'Mozilla/5.0 (X11; Linux x86_64) Firefox/140.0' };
  for (const link of links) {
    await fetch(world.url() + link, { headers: browser, redirect: 'manual' });
    await fetch(world.url() + link, { method: 'HEAD', headers: browser, redirect: 'manual' });
  }
  await told(
    ({ events }) => events.filter(({ type }: { type: string }) => /opened|clicked/.test(type)).length === 4,
  );
  const act = (name: QueueAction) =>
    applyQueueAction(
      world.db,
      { emailId: body.emailId },
      { action: name, reason: 'test', now: world.clock.now() },
    );
  await told(({ recipients }) => recipients[2].status === 'deferred');
  await act('hold');
  await told(({ recipients }) => recipients[2].status === 'held');
  await act('release');
  await told(({ recipients }) => recipients[2].status === 'deferred');
  await world.clock.jump('3d');
  await told(({ recipients }) => recipients[2].status === 'expired', world.passUntil);
  const { events } = await world.get(body.emailId);
  const types = new Set(events.map(({ type }: { type: string }) => type));
  const expected = ['queued', 'suppressed', 'delivered', 'deferred', 'held', 'expired', 'opened', 'clicked'];
  for (const type of expected) t.true(types.has(`email.${type}`), type);
});

test('an email that the operator canceled matches the document', async (t) => {
  const { world, contract, post } = await withContract(await asNewTenant(shared()));
  await rename(world, 'example.com');
  const { body } = await post({
    from: 'billing@example.com',
    to: 'greta@example.org',
    subject: 'Hello',
    text: 'Hi',
  });
  await world.when(body.emailId, ({ status }) => status === 'deferred');
  const cancel = { action: 'cancel', reason: 'a typo', now: world.clock.now() } as const;
  // By its id: other tests of this world write to the same address.
  await applyQueueAction(world.db, { emailId: body.emailId }, cancel);
  const answer = await world.call('GET', emailPath.replace('{id}', body.emailId));
  contract.check(t, 'get', emailPath, answer);
  t.like(answer.body, { status: 'canceled', recipients: [{ nextAttemptAt: null }] });
  t.like(answer.body.events.at(-1), { type: 'email.canceled', data: { reason: 'a typo' } });
});

test('a scheduled email is shown, moved and canceled as in the examples', async (t) => {
  const { world, contract, post } = await withContract(await asNewTenant(shared()));
  await rename(world, 'example.com');
  const at = (aheadMs: number) => new Date(world.clock.now() + aheadMs).toISOString();
  const to = ['ann@example.org', 'carl@example.org'];
  const { emailId } = (await post({ ...plain, to, scheduledAt: at(3_600_000), expiresAfter: 600 })).body;
  const path = emailPath.replace('{id}', emailId);
  const shown = await world.call('GET', path);
  contract.check(t, 'get', emailPath, shown);
  hold(t, 'getEmail 200 application/json scheduled', inOrder(shown.body), 'Scheduled for an hour later');
  const moved = await world.call('PATCH', path, { body: JSON.stringify({ scheduledAt: at(7_200_000) }) });
  contract.check(t, 'patch', emailPath, moved);
  hold(t, 'moveEmail 200 application/json moved', moved.body, 'Moved by an hour');
  const canceled = await world.call('POST', `${path}/cancel`);
  contract.check(t, 'post', `${emailPath}/cancel`, canceled);
  hold(t, 'cancelEmail 200 application/json canceled', canceled.body, 'Canceled before its time');
  contract.check(t, 'get', emailPath, await world.call('GET', path));
});

test('every documented error can be provoked and matches its example', async (t) => {
  const { world, orgId, contract, post } = await exampleWorld(t);
  const provoked = new Set<string>();
  const provoke = await provoker(t, contract, provoked, hold);
  const readOnly = await keyWith(world, orgId, 'email:read');
  const sendOnly = await keyWith(world, orgId, 'email:send');
  const elsewhere = await keyWith(world, orgId, 'email:send', 'domain_scope:example.net');
  const noKey = { authorization: '' };
  /** The same error, as that of the only element of an atomic batch. */
  const postBatch = (element: object, headers: Record<string, string> = {}) =>
    world.call('POST', `${batchPath}?atomic=true`, { body: JSON.stringify([element]), headers });
  const get = (id: string, headers: Record<string, string> = {}) =>
    world.call('GET', emailPath.replace('{id}', id), { headers });
  const { emailId } = (await world.send({ to: 'ann@example.org' })).body;

  const provokeSend = async (status: number, code: string, body: object, headers = {}) => {
    await provoke('post', sendPath, status, code, () => post(body, headers));
    await provoke('post', batchPath, status, code, () => postBatch(body, headers));
  };
  await provokeSend(401, 'UNAUTHORIZED', plain, noKey);
  await provokeSend(403, 'FORBIDDEN', plain, readOnly);
  await provokeSend(400, 'VALIDATION_ERROR', { ...plain, subject: undefined });
  await provokeSend(403, 'DOMAIN_NOT_ALLOWED', plain, elsewhere);
  await provokeSend(403, 'DOMAIN_NOT_FOUND', plain);
  await rename(world, 'example.com', 'pending');
  await provokeSend(403, 'DOMAIN_NOT_VERIFIED', plain);
  await rename(world, 'example.com');
  const idempotencyKey = 'receipt-4711';
  await until(async () => (await post({ ...plain, idempotencyKey })).status === 200);
  const other = { ...plain, idempotencyKey, text: 'Thank you for another order.' };
  await provokeSend(400, 'BAD_REQUEST', other);
  await provoke('post', sendPath, 405, 'BAD_REQUEST', () => world.call('PUT', sendPath));
  await provoke('post', batchPath, 405, 'BAD_REQUEST', () => world.call('PUT', batchPath));
  await suppress(world, orgId, 'dora@example.org');
  const toDora = { ...plain, to: 'dora@example.org' };
  await provokeSend(422, 'ALL_RECIPIENTS_SUPPRESSED', toDora);
  await world.db.transaction((trx) => setQuota(trx, orgId, 0, Date.now()));
  const toEmil = { ...plain, to: 'emil@example.org' };
  await provokeSend(402, 'INSUFFICIENT_CREDITS', toEmil);
  await world.db.transaction((trx) => setQuota(trx, orgId, null, Date.now()));
  await world.db('domains').update({ dkim_private_key: 'broken' });
  const broken = () => ({ ...toEmil, subject: randomUUID() });
  await provoke('post', sendPath, 500, 'SEND_FAILED', () => post(broken()));
  await provoke('post', batchPath, 500, 'SEND_FAILED', () => postBatch(broken()));

  await provoke('get', emailPath, 401, 'UNAUTHORIZED', () => get(emailId, noKey));
  await provoke('get', emailPath, 403, 'FORBIDDEN', () => get(emailId, sendOnly));
  await provoke('get', emailPath, 400, 'BAD_REQUEST', () => get('4711'));
  await provoke('get', emailPath, 404, 'NOT_FOUND', () => get('00000000-0000-7000-8000-000000000000'));
  await provoke('get', emailPath, 405, 'BAD_REQUEST', () =>
    world.call('DELETE', emailPath.replace('{id}', emailId)),
  );
  const changes = [
    ['patch', emailPath],
    ['post', `${emailPath}/cancel`],
  ] as const;
  const change = (method: 'patch' | 'post', path: string, id: string, headers: Record<string, string> = {}) =>
    world.call(method.toUpperCase(), path.replace('{id}', id), { headers, body: '{}' });
  for (const [method, path] of changes) {
    await provoke(method, path, 401, 'UNAUTHORIZED', () => change(method, path, emailId, noKey));
    await provoke(method, path, 403, 'FORBIDDEN', () => change(method, path, emailId, readOnly));
    await provoke(method, path, 403, 'DOMAIN_NOT_ALLOWED', () => change(method, path, emailId, elsewhere));
    await provoke(method, path, 400, 'BAD_REQUEST', () => change(method, path, '4711'));
    await provoke(method, path, 404, 'NOT_FOUND', () => change(method, path, randomUUID()));
    await provoke(method, path, 405, 'BAD_REQUEST', () => world.call('PUT', path.replace('{id}', emailId)));
  }
  await provoke('patch', emailPath, 400, 'VALIDATION_ERROR', () => change('patch', emailPath, emailId));
  for (const [path, parameter] of lists) {
    await provoke('get', path, 401, 'UNAUTHORIZED', () => world.call('GET', path, { headers: noKey }));
    await provoke('get', path, 403, 'FORBIDDEN', () => world.call('GET', path, { headers: sendOnly }));
    await provoke('get', path, 400, 'VALIDATION_ERROR', () => world.call('GET', `${path}?${parameter}=4711`));
    await provoke('get', path, 405, 'BAD_REQUEST', () => world.call('DELETE', path));
  }
  await world.db('emails').update({ tags: 'broken' });
  await provoke('get', emailPath, 500, 'SEND_FAILED', () => get(emailId));
  for (const [method, path] of changes)
    await provoke(method, path, 500, 'SEND_FAILED', () => change(method, path, emailId));
  for (const [path] of lists) await provoke('get', path, 500, 'SEND_FAILED', () => world.call('GET', path));

  await provoke('get', '/api/public/openapi.json', 405, 'BAD_REQUEST', () =>
    world.call('PUT', '/api/public/openapi.json'),
  );
  await setLimits(world.db, orgId, { requestsPerSecond: 2, requestsPerDay: 5000 });
  await provokeSend(429, 'RATE_LIMIT_EXCEEDED', plain);
  await provoke('get', emailPath, 429, 'RATE_LIMIT_EXCEEDED', () => get(emailId));
  for (const [method, path] of changes)
    await provoke(method, path, 429, 'RATE_LIMIT_EXCEEDED', () => change(method, path, emailId));
  for (const [path] of lists)
    await provoke('get', path, 429, 'RATE_LIMIT_EXCEEDED', () => world.call('GET', path));
  const own = errorExamples(contract, ['Email', 'Events', 'Reference']);
  t.deepEqual([...provoked].sort(), own.sort(), 'no example of an error is left out');
});

/** The lists, each with a parameter that can be invalid. */
const lists = [
  ['/api/public/events', 'after'],
  ['/api/public/emails', 'until'],
] as const;
