/**
 * The OpenAPI document describes the real management endpoints: its example requests get the documented responses, and
 * each documented error is provoked.
 */
import test from 'ava';
import { createSeal } from '../../src/accounts/seal.ts';
import { managementTags } from '../../src/api/openapi/description.ts';
import type { Method } from '../../src/api/openapi/openapi-types.ts';
import { loadSecrets } from '../../src/base/secrets.ts';
import { setQuota } from '../../src/db/accept/credit-ledger.ts';
import { findDomain } from '../../src/db/accounts/domains-table.ts';
import { listKeys } from '../../src/db/accounts/keys.ts';
import { insertOrganization, setLimits } from '../../src/db/accounts/organizations.ts';
import { addWebhook } from '../../src/webhooks/endpoints.ts';
import { operationsOf } from '../lab/openapi.ts';
import { errorExamples, keyWith, masked, provoker } from '../lab/provoke.ts';
import { exampleWorld, rename, suppress } from '../lab/scenes/example-world.ts';
import { startReceiver } from '../lab/scenes/webhook-receiver.ts';
import type { Answer, World } from '../lab/scenes/world.ts';

const tags = managementTags.map(({ name }) => name);

test('every example of the management endpoints gets the response of its example', async (t) => {
  const { world, contract } = await exampleWorld(t, { POSTERN_WEBHOOK_ALLOW_PRIVATE: 'true' });
  const { document } = contract;
  const orgId = await insertOrganization(world.db, 'New', world.clock.now());
  await setLimits(world.db, orgId, { requestsPerSecond: null, requestsPerDay: null, emailsPerDay: null });
  const headers = await keyWith(world, orgId, 'full_access');
  const seen = new Set<string>();

  /** Sends the example of the document's, holds the answer against the document's. */
  async function tell(method: Method, path: string, { query = '', tidy = asItIs, ...filled }: Filled = {}) {
    const { requestBody, responses } = document.paths[`/api/public${path}`]![method]!;
    const { 'application/json': json, 'text/csv': csv } = requestBody?.content ?? {};
    const value = (json ?? csv)?.examples?.example?.value;
    const name = path.replace(/\{(\w+)\}/, (_, key) => filled[key as keyof typeof filled]!);
    const response = await fetch(`${world.url()}/api/public${name}${query}`, {
      method: method.toUpperCase(),
      headers: { ...headers, 'content-type': json ? 'application/json' : 'text/csv' },
      body: value === undefined ? null : json ? JSON.stringify(value) : String(value),
    });
    const text = await response.text();
    const { 'application/json': told, 'text/csv': table } = responses[200]!.content;
    const [body, tidied] = [text, tidy(text)].map((each) => (told ? JSON.parse(each) : each));
    const example = (told ?? table)!.examples!.example!.value;
    t.deepEqual(masked(tidied), masked(example), `${method} ${path}`);
    const { status } = response;
    if (told) contract.check(t, method, `/api/public${path}`, { status, headers: response.headers, body });
    seen.add(`${method} /api/public${path}`);
    return body;
  }

  const name = 'example.com';
  await tell('post', '/domains');
  await tell('get', '/domains');
  await tell('get', '/domains/{name}', { name });
  const { dkimSelector, dkimPublicKey } = (await findDomain(world.db, orgId, name))!;
  world.dns.set({
    [`${dkimSelector}._domainkey.${name}`]: { TXT: [`v=DKIM1; k=rsa; p=${dkimPublicKey}`] },
  });
  await tell('post', '/domains/{name}/verify', { name });
  await world.db('domains').update({ status: 'pending', verified_at: null, checked_at: null });
  await tell('patch', '/domains/{name}', { name });
  await tell('delete', '/domains/{name}', { name });

  const [own] = await listKeys(world.db, orgId);
  const made = await tell('post', '/keys');
  const later = await tell('post', '/keys');
  await tell('get', '/keys', { query: `?limit=1&after=${own!.id}` });
  await tell('post', '/keys/{id}/rotate', { id: made.id });
  await tell('delete', '/keys/{id}', { id: later.id });

  const address = 'dora@example.org';
  await tell('post', '/suppressions');
  await tell('get', '/suppressions', { query: '?search=@EXAMPLE.org' });
  await tell('get', '/suppressions/{address}', { address });
  await tell('get', '/suppressions.csv');
  await tell('post', '/suppressions.csv');
  await tell('delete', '/suppressions/{address}', { address });

  const { webhook } = await tell('post', '/webhooks');
  const { id, url } = webhook;
  await tell('get', '/webhooks');
  await tell('get', '/webhooks/{id}', { id });
  const receiver = await startReceiver(t);
  receiver.answer = (_, response) => response.end('thank you');
  receiver.secret = (await tell('post', '/webhooks/{id}/rotate', { id })).secret;
  await world.db('webhooks').where({ id }).update({ url: receiver.url });
  const tidy = (text: string) => text.replaceAll(receiver.url, url);
  await tell('post', '/webhooks/{id}/test', { id, tidy });
  t.is(receiver.requests[0]!.fault, null);
  await tell('get', '/webhooks/{id}/attempts', { id, tidy });
  await world.db('webhooks').where({ id }).update({ url });
  await tell('post', '/webhooks/{id}/replay', { id });
  await tell('patch', '/webhooks/{id}', { id });
  await tell('delete', '/webhooks/{id}', { id });

  for (const limit of [0, 10_000])
    await world.db.transaction((trx) => setQuota(trx, orgId, limit, world.clock.now()));
  await tell('get', '/credits', { query: '?limit=1' });

  const all = operationsOf(document).filter(({ operation }) => tags.includes(operation.tags[0]!));
  t.deepEqual(
    [...seen].sort(),
    all.map(({ method, path }) => `${method} ${path}`).sort(),
    'none is left out',
  );
});

const asItIs = (text: string) => text;

interface Filled {
  /** In the path. */
  id?: string;
  name?: string;
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
  'post /suppressions': '{"address":"anna"}',
  'post /suppressions.csv': 'ann@example.org\nnobody',
  'post /webhooks': '{}',
  'patch /webhooks/{id}': '{"enabled":"true"}',
  'post /webhooks/{id}/replay': '{}',
};

test('every documented error of the management endpoints can be provoked and matches its example', async (t) => {
  const { world, orgId, contract } = await exampleWorld(t);
  const provoked = new Set<string>();
  const provoke = await provoker(t, contract, provoked);
  const sendOnly = await keyWith(world, orgId, 'email:send');
  await addWebhook(world.db, { orgId, url: 'https://app.example.com/', types: [] }, termsOf(world));
  await rename(world, 'example.com');
  const [{ id }] = await world.db('webhooks').select('id');
  const known = { id, name: 'example.com', address: 'dora@example.org' };
  await suppress(world, orgId, known.address);
  const nobody = {
    id: '00000000-0000-7000-8000-000000000000',
    name: 'example.net',
    address: 'emil@example.net',
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
      await provokeIt(400, 'VALIDATION_ERROR', () => call(body ? at : `${at}?limit=0`, type, body));
    }
    if (isSaid(404, 'NOT_FOUND')) {
      await provokeIt(404, 'NOT_FOUND', () => call(elsewhere, type, refused[`${method} ${short}`] && '{}'));
    }
    if (isSaid(400, 'BAD_REQUEST')) {
      const isNamed = path.includes('{');
      const again = '{"name":"example.com"}';
      await provokeIt(400, 'BAD_REQUEST', () =>
        isNamed
          ? call(path.replace(/\{\w+\}/, '4711'), type)
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
