/**
 * The OpenAPI document describes the real management endpoints: its example requests get the documented responses, and
 * each documented error is provoked.
 */
import test from 'ava';
import { makeStream } from '#accounts/manage-streams.ts';
import { setQuota } from '#accounts/rows/credit-ledger.ts';
import { findDomain } from '#accounts/rows/domains-table.ts';
import { listKeys } from '#accounts/rows/keys.ts';
import { insertOrganization, setLimits } from '#accounts/rows/organizations.ts';
import { createSeal } from '#accounts/seal.ts';
import { managementTags } from '#front/api/openapi/description.ts';
import type { Method } from '#front/api/openapi/openapi-types.ts';
import { operationsOf } from '#lab/openapi.ts';
import { errorExamples, keyWith, provoker } from '#lab/provoke.ts';
import { holdExamples } from '#lab/recorded-examples.ts';
import { exampleWorld, rename, suppress } from '#lab/scenes/example-world.ts';
import { startReceiver } from '#lab/scenes/webhook-receiver.ts';
import type { Answer, World } from '#lab/scenes/world.ts';
import { addRoute } from '#mail/received/define-route.ts';
import { sumNames } from '#mail/record/counts.ts';
import { addWebhook } from '#mail/webhooks/endpoints.ts';
import { loadSecrets } from '#platform/base/secrets.ts';

const hold = holdExamples(test, 'management-examples.json');

const tags = managementTags.map(({ name }) => name);

test('every example of the management endpoints gets the response of its example', async (t) => {
  const { world, contract } = await exampleWorld(t, { POSTERN_WEBHOOK_ALLOW_PRIVATE: 'true' });
  const { document } = contract;
  const orgId = await insertOrganization(world.db, 'New', world.clock.now());
  await setLimits(world.db, orgId, { requestsPerSecond: null, requestsPerDay: null, emailsPerDay: null });
  const headers = await keyWith(world, orgId, 'full_access');
  const seen = new Set<string>();

  /** Calls an endpoint and holds request and response against their examples. `summary` is that of the response. */
  async function tell(method: Method, path: string, summary: string, options: Call = {}) {
    const { query = '', tidy = asItIs, request, ...filled } = options;
    const { operationId, responses } = document.paths[`/api/public${path}`]![method]!;
    const name = path.replace(/\{(\w+)\}/, (_, key) => filled[key as keyof typeof filled]!);
    const type = typeof request?.[1] === 'string' ? 'text/csv' : 'application/json';
    if (request) hold(t, `${operationId} request ${type} example`, request[1], request[0]);
    const response = await fetch(`${world.url()}/api/public${name}${query}`, {
      method: method.toUpperCase(),
      headers: { ...headers, 'content-type': type },
      body: request ? (typeof request[1] === 'string' ? request[1] : JSON.stringify(request[1])) : null,
    });
    const text = await response.text();
    const isJson = 'application/json' in responses[200]!.content;
    const [body, tidied] = [text, tidy(text)].map((each) => (isJson ? JSON.parse(each) : each));
    hold(t, `${operationId} 200 ${isJson ? 'application/json' : 'text/csv'} example`, tidied, summary);
    const { status } = response;
    if (isJson) contract.check(t, method, `/api/public${path}`, { status, headers: response.headers, body });
    seen.add(`${method} /api/public${path}`);
    return body;
  }

  const name = 'example.com';
  await tell('post', '/domains', 'Registered', { request: ['A domain', { name }] });
  await tell('get', '/domains', 'One domain');
  await tell('get', '/domains/{name}', 'Not verified yet', { name });
  const { dkimSelector, dkimPublicKey } = (await findDomain(world.db, orgId, name))!;
  world.dns.set({
    [`${dkimSelector}._domainkey.${name}`]: { TXT: [`v=DKIM1; k=rsa; p=${dkimPublicKey}`] },
  });
  await tell('post', '/domains/{name}/verify', 'DKIM was found', { name });
  await world.db('domains').update({ status: 'pending', verified_at: null, checked_at: null });
  const tracking = { openTracking: true, clickTracking: false, host: 'link.example.com' };
  await tell('patch', '/domains/{name}', 'Changed', {
    name,
    request: ['Track opens and require TLS', { tracking, tls: 'encrypted' }],
  });
  const added = await tell('post', '/routes', 'Added', {
    request: ['Mail to some addresses of a domain', { pattern: 'orders+*@example.com', action: 'store' }],
  });
  await tell('get', '/routes', 'One route');
  await tell('get', '/routes/check', 'The domain does not receive', {
    query: '?address=orders%2B17@example.com',
  });
  const { id: route } = added.route;
  await tell('get', '/routes/{id}', 'A route', { id: route });
  const change = { action: 'reject', reply: '550 5.7.1 No replies here' };
  await tell('patch', '/routes/{id}', 'Changed', { id: route, request: ['Reject the mail', change] });
  await tell('delete', '/routes/{id}', 'Done', { id: route });
  await tell('delete', '/domains/{name}', 'Done', { name });

  const [own] = await listKeys(world.db, orgId);
  const shop = { label: 'shop', scopes: ['email:send', 'domain_scope:example.com'] };
  const create = () =>
    tell('post', '/keys', 'Created', { request: ['For a shop that sends from one domain', shop] });
  const made = await create();
  const later = await create();
  await tell('get', '/keys', 'One key', { query: `?limit=1&after=${own!.id}` });
  await tell('post', '/keys/{id}/rotate', 'Replaced', { id: made.id });
  await tell('delete', '/keys/{id}', 'Done', { id: later.id });

  const stream = 'newsletter';
  await tell('post', '/streams', 'Created', {
    request: [
      'A newsletter',
      { name: stream, title: 'Our newsletter', kind: 'subscribed', color: '#1a73e8' },
    ],
  });
  await tell('get', '/streams', 'One stream');
  await tell('get', '/streams/{stream}', 'A newsletter', { stream });
  await tell('patch', '/streams/{stream}', 'Changed', {
    stream,
    request: ['A limit, and what is tracked', { emailsPerDay: 20_000, tracking: { openTracking: false } }],
  });
  await tell('delete', '/streams/{stream}', 'Done', { stream });

  const address = 'dora@example.org';
  await tell('post', '/suppressions', 'Added', {
    request: ['An address', { address, reason: 'asked by phone' }],
  });
  await tell('get', '/suppressions', 'One address', { query: '?search=@EXAMPLE.org' });
  await tell('get', '/suppressions/{address}', 'A suppressed address', { address });
  await tell('get', '/suppressions.csv', 'One address');
  await tell('post', '/suppressions.csv', 'One address was on the list before', {
    request: [
      'A list with headings',
      'email,why\r\ndora@example.org,asked by phone\r\nemil@example.org,\r\n',
    ],
  });
  await tell('delete', '/suppressions/{address}', 'Done', { address });

  const { webhook } = await tell('post', '/webhooks', 'Added', {
    request: [
      'For bounces and complaints',
      { url: 'https://app.example.com/webhooks', events: ['email.bounced', 'email.complained'] },
    ],
  });
  const { id, url } = webhook;
  await tell('get', '/webhooks', 'One webhook');
  await tell('get', '/webhooks/{id}', 'Everything was posted', { id });
  const receiver = await startReceiver(t);
  receiver.answer = (_, response) => response.end('thank you');
  receiver.secret = (await tell('post', '/webhooks/{id}/rotate', 'Created', { id })).secret;
  await world.db('webhooks').where({ id }).update({ url: receiver.url });
  const tidy = (text: string) => text.replaceAll(receiver.url, url);
  await tell('post', '/webhooks/{id}/test', 'The webhook accepted it', { id, tidy });
  t.is(receiver.requests[0]!.fault, null);
  await tell('get', '/webhooks/{id}/attempts', 'A test', { id, tidy });
  await world.db('webhooks').where({ id }).update({ url });
  await tell('post', '/webhooks/{id}/replay', 'Nothing happened since then', {
    id,
    request: ['Everything since a time', { since: '2026-03-02T08:00:00Z' }],
  });
  await tell('patch', '/webhooks/{id}', 'Disabled', {
    id,
    request: ['All events; disabled', { events: [], enabled: false }],
  });
  await tell('delete', '/webhooks/{id}', 'Done', { id });

  for (const limit of [0, 10_000])
    await world.db.transaction((trx) => setQuota(trx, orgId, limit, world.clock.now()));
  await tell('get', '/credits', 'A quota of ten thousand', { query: '?limit=1' });

  const none = Object.fromEntries(sumNames.map((column) => [column, 0]));
  const named = { org_id: orgId, day: Date.parse('2026-03-02'), kind: 'domain', name: 'example.org' };
  const counts = {
    sent: 2000,
    delivered: 1960,
    deferred: 31,
    bounced: 40,
    hard: 30,
    complained: 1,
    opened: 800,
    clicked: 90,
  };
  await world.db('group_statistics').insert({ ...named, ...none, ...counts, took_3: 1900, took_9: 60 });
  await tell('get', '/stats', 'One domain', { query: '?since=2026-03-01&until=2026-03-08' });

  const all = operationsOf(document).filter(({ operation }) => tags.includes(operation.tags[0]!));
  t.deepEqual(
    [...seen].sort(),
    all.map(({ method, path }) => `${method} ${path}`).sort(),
    'none is left out',
  );
});

const asItIs = (text: string) => text;

interface Call {
  /** The summary and the body of the request. */
  request?: [summary: string, body: object | string];
  /** In the path. */
  id?: string;
  name?: string;
  stream?: string;
  address?: string;
  query?: string;
  /** What differs for this test alone. */
  tidy?: (text: string) => string;
}

/** An invalid body for each operation. */
const refused: Record<string, string> = {
  'post /domains': '{}',
  'patch /domains/{name}': '{"tracking":true}',
  'post /keys': '{"scopes":["email:send"]}',
  'post /streams': '{"name":"News letter"}',
  'patch /streams/{stream}': '{"emailsPerDay":"many"}',
  'post /suppressions': '{"address":"anna"}',
  'post /suppressions.csv': 'address\nnobody',
  'post /webhooks': '{}',
  'patch /webhooks/{id}': '{"enabled":"true"}',
  'post /webhooks/{id}/replay': '{}',
  'post /routes': '{}',
  'patch /routes/{id}': '{"action":"forward"}',
};

test('every documented error of the management endpoints can be provoked and matches its example', async (t) => {
  const { world, orgId, contract } = await exampleWorld(t);
  const provoked = new Set<string>();
  const provoke = await provoker(t, contract, provoked, hold);
  const sendOnly = await keyWith(world, orgId, 'email:send');
  await addWebhook(world.db, { orgId, url: 'https://app.example.com/', types: [] }, termsOf(world));
  await rename(world, 'example.com');
  const route = await addRoute(world.db, orgId, { pattern: 'example.com', action: 'store' }, 1);
  const [{ id }] = await world.db('webhooks').select('id');
  await world.db('receiving_routes').where({ id: route.id }).update({ id });
  const known = { id, name: 'example.com', address: 'dora@example.org', stream: 'newsletter' };
  await suppress(world, orgId, known.address);
  await makeStream(world.db, { orgId, name: known.stream }, world.clock.now());
  const nobody = {
    id: '00000000-0000-7000-8000-000000000000',
    name: 'example.net',
    address: 'emil@example.net',
    stream: 'updates',
  };
  const own = operationsOf(contract.document).filter(({ operation }) => tags.includes(operation.tags[0]!));
  const last: (() => Promise<void>)[] = [];
  for (const { method, path, operation } of own) {
    const short = path.replace('/api/public', '');
    const filledBy = (values: typeof known) => path.replace(/\{(\w+)\}/, (_, key) => values[key as 'id']);
    const call = (at: string, headers: Record<string, string> = {}, body?: string) =>
      world.call(method.toUpperCase(), at, { headers, ...(body !== undefined && { body }) });
    const provokeIt = (status: number, code: string, act: () => Promise<Answer>) =>
      provoke(method, path, status, code, act);
    const [at, elsewhere] = [filledBy(known), filledBy(nobody)];
    const type = { 'content-type': short.endsWith('.csv') ? 'text/csv' : 'application/json' };
    const isSaid = (status: number, code: string) =>
      operation.responses[status]?.content['application/json']?.examples?.[code] !== undefined;
    // Wrong keys have ten tries a minute.
    await world.clock.advance('1m');
    await provokeIt(401, 'UNAUTHORIZED', () => call(at, { authorization: '' }));
    await provokeIt(403, 'FORBIDDEN', () => call(at, sendOnly));
    await provokeIt(405, 'BAD_REQUEST', () => world.call('PUT', at));
    if (isSaid(400, 'VALIDATION_ERROR')) {
      const body = refused[`${method} ${short}`];
      await provokeIt(400, 'VALIDATION_ERROR', () =>
        call(body ? at : `${at}?limit=0&now=perhaps&by=hour&stream=No.`, type, body),
      );
    }
    if (isSaid(404, 'NOT_FOUND')) {
      await provokeIt(404, 'NOT_FOUND', () => call(elsewhere, type, refused[`${method} ${short}`] && '{}'));
    }
    if (isSaid(400, 'BAD_REQUEST')) {
      const isNamed = path.includes('{');
      const again = '{"name":"example.com"}';
      await provokeIt(400, 'BAD_REQUEST', () =>
        isNamed
          ? call(path.replace(/\{\w+\}/, path.includes('{stream}') ? 'a.b' : '4711'), type)
          : call(at, short === '/domains' ? type : { 'content-type': 'text/plain' }, again),
      );
    }
    last.push(async () => {
      await provokeIt(429, 'RATE_LIMIT_EXCEEDED', () => call(at));
    });
    last.unshift(async () => {
      await provokeIt(500, 'SEND_FAILED', () => call(at, type));
    });
  }
  await world.db.schema.renameTable('api_keys', 'api_keys_away');
  for (const act of last.slice(0, own.length)) await act();
  await world.db.schema.renameTable('api_keys_away', 'api_keys');
  await setLimits(world.db, orgId, { requestsPerSecond: 2, requestsPerDay: 5000 });
  for (const act of last.slice(own.length)) await act();
  t.deepEqual(
    [...provoked].sort(),
    errorExamples(contract, tags).sort(),
    'no example of an error is left out',
  );
});

function termsOf(world: World) {
  const seal = createSeal(loadSecrets(world.config));
  return { seal, allowPrivate: true, now: world.clock.now() };
}
