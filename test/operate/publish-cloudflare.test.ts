/** Publishing at Cloudflare, against a server that holds the requests to what the published schema of its API says. */
import { once } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import test, { type ExecutionContext } from 'ava';
import { z } from 'zod';
import { Cloudflare } from '#operate/publish/cloudflare.ts';
import { type Change, planChanges } from '#operate/publish/plan-changes.ts';

const token = 'a-token-that-nobody-sees';
const zone = 'shop.invalid';
const id = '023e105f4ecef8ad9ca31a8372d0c353';

/** The bodies of POST and PATCH /zones/{zone_id}/dns_records. */
const common = {
  name: z.string().min(1).max(255),
  ttl: z.union([z.literal(1), z.number().int().min(60).max(86_400)]),
  comment: z.string().max(100).optional(),
};
const proxied = z.boolean().optional();
const body = z.discriminatedUnion('type', [
  z.strictObject({ ...common, type: z.literal('TXT'), content: z.string().regex(/^"/) }),
  z.strictObject({ ...common, type: z.literal('CNAME'), content: z.string(), proxied }),
  z.strictObject({
    ...common,
    type: z.literal('MX'),
    content: z.string(),
    priority: z.int().min(0).max(65_535),
  }),
  z.strictObject({ ...common, type: z.literal('A'), content: z.ipv4(), proxied }),
]);

interface Row {
  id: string;
  type: string;
  name: string;
  content: string;
  priority?: number;
}

type Reply = { status: number; headers?: Record<string, string>; body: string } | null;

async function startCloudflare(t: ExecutionContext, rows: Row[] = []) {
  const requests: string[] = [];
  const state = { rows, requests, reply: null as ((path: string, asked: number) => Reply) | null };
  const send = (response: ServerResponse, status: number, result: unknown, more: object = {}) =>
    response
      .writeHead(status, { 'content-type': 'application/json' })
      .end(JSON.stringify({ success: status < 400, errors: [], messages: [], result, ...more }));

  function answerList(url: URL, response: ServerResponse) {
    const { page, per_page: perPage, ...rest } = Object.fromEntries(url.searchParams);
    t.true(Number(page) >= 1 && Number(perPage) >= 5 && Number(perPage) <= 5_000_000);
    if (url.pathname === '/zones') {
      t.deepEqual(Object.keys(rest), ['name']);
      return send(response, 200, rest.name === zone ? [{ id, name: zone, status: 'active' }] : []);
    }
    t.is(url.pathname, `/zones/${id}/dns_records`);
    t.deepEqual(Object.keys(rest), ['name.exact']);
    const all = state.rows.filter(({ name }) => name === rest['name.exact']);
    // One a page, whatever is asked for.
    const counts = { count: 1, total_count: all.length, total_pages: all.length };
    const info = { page: Number(page), per_page: 1, ...counts };
    return send(response, 200, all.slice(Number(page) - 1, Number(page)), { result_info: info });
  }

  async function answer(request: IncomingMessage, response: ServerResponse) {
    const url = new URL(request.url!, 'http://x');
    requests.push(`${request.method} ${url.pathname}`);
    if (request.headers.authorization !== `Bearer ${token}`) return send(response, 403, null);
    const other = state.reply?.(url.pathname, requests.length);
    if (other) return response.writeHead(other.status, other.headers).end(other.body);
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk);
    const given = chunks.length > 0 ? JSON.parse(Buffer.concat(chunks).toString()) : null;
    if (request.method === 'GET') return answerList(url, response);
    const row = body.parse(given);
    if (request.method === 'POST') {
      t.is(url.pathname, `/zones/${id}/dns_records`);
      state.rows.push({ ...row, id: `id${state.rows.length}` });
      return send(response, 200, state.rows.at(-1));
    }
    t.is(request.method, 'PATCH');
    const at = state.rows.findIndex((one) => url.pathname === `/zones/${id}/dns_records/${one.id}`);
    state.rows[at] = { ...state.rows[at]!, ...row };
    return send(response, 200, state.rows[at]);
  }

  const server = createServer((request, response) => {
    answer(request, response).catch((error) => {
      response
        .writeHead(400)
        .end(JSON.stringify({ success: false, errors: [{ code: 9000, message: String(error) }] }));
    });
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  t.teardown(() => {
    server.closeAllConnections();
    server.close();
  });
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  return { state, url, dns: new Cloudflare({ token, url, timeoutMs: 300_000 }) };
}

const dkim = {
  type: 'TXT',
  name: `pstn0a1b2c3d._domainkey.${zone}`,
  value: `v=DKIM1; k=rsa; p=${'A'.repeat(400)}`,
};
const cname = { type: 'CNAME', name: `bounces.${zone}`, value: 'mail.postern.invalid' };
const mx = { type: 'MX', name: `in.${zone}`, value: '10 mail.postern.invalid' };

const isChange = (plan: { action: string }): plan is Change =>
  plan.action === 'add' || plan.action === 'replace';

test('records are created and changed as the schema says; those of others are left', async (t) => {
  const links = { type: 'CNAME', name: `links.${zone}`, value: 'mail.postern.invalid' };
  const there = [
    { id: 'old', type: 'TXT', name: dkim.name, content: '"v=DKIM1; " "p=OLD"' },
    { id: 'theirs', type: 'CNAME', name: links.name, content: 'elsewhere.invalid' },
    { id: 'one', type: 'A', name: `two.${zone}`, content: '192.0.2.1' },
    { id: 'two', type: 'A', name: `two.${zone}`, content: '192.0.2.2' },
  ];
  const { state, url, dns } = await startCloudflare(t, structuredClone(there));
  const wanted = [dkim, cname, mx, links, { type: 'A', name: `two.${zone}`, value: '192.0.2.3' }];
  const foreign = { type: 'TXT', name: 'x.example', value: 'v=DMARC1' };
  const planned = await planChanges(dns, [...wanted, foreign]);
  t.deepEqual(
    planned.map(({ action }) => action),
    ['replace', 'add', 'add', 'leave', 'leave', 'leave'],
  );
  for (const plan of planned.filter(isChange)) await dns.write(plan);
  const [old, ...rest] = state.rows;
  t.like(old, { id: 'old', content: `"${dkim.value.slice(0, 255)}" "${dkim.value.slice(255)}"`, ttl: 1 });
  t.deepEqual(rest.slice(0, 3), there.slice(1));
  t.like(rest[3], { type: 'CNAME', content: 'mail.postern.invalid', proxied: false });
  t.like(rest[4], { type: 'MX', content: 'mail.postern.invalid', priority: 10 });
  const again = await planChanges(new Cloudflare({ token, url }), wanted.slice(0, 3));
  t.deepEqual(
    again.map(({ action }) => action),
    ['keep', 'keep', 'keep'],
  );
  const stale: Change = { action: 'add', record: cname, present: [] };
  await t.throwsAsync(dns.write(stale), { message: /have changed since they were read/ });
});

test('a limit is waited for as long as Retry-After says, three times at most', async (t) => {
  const { state, dns } = await startCloudflare(t);
  const limit = (seconds: string): Reply => ({
    status: 429,
    headers: { 'retry-after': seconds },
    body: '{}',
  });
  state.reply = (_, asked) => (asked === 1 ? limit('1') : null);
  t.deepEqual(await dns.read(cname.name), []);
  state.reply = () => limit('0');
  state.requests.length = 0;
  await t.throwsAsync(dns.read(cname.name), { message: /asked too often \(429\)/ });
  t.is(state.requests.length, 3);
  state.reply = () => limit('86400');
  await t.throwsAsync(dns.read(cname.name), { message: /asked too often \(429\)/ });
  state.reply = () => limit('Thu, 26 Nov 2026 12:00:00 GMT');
  await t.throwsAsync(dns.read(cname.name), { message: /asked too often \(429\)/ });
});

test('an answer that is an error, too large, without end or in another form is one sentence, without the token', async (t) => {
  const { state, dns, url } = await startCloudflare(t);
  const refused = async (reply: Reply, message: RegExp) => {
    state.reply = () => reply;
    const error = await t.throwsAsync(dns.read(cname.name), { message });
    t.false(error!.message.includes(token));
  };
  const errors = [{ code: 7003, message: 'Could not route' }];
  await refused(
    { status: 400, body: JSON.stringify({ success: false, errors }) },
    /answered 400: Could not route \(7003\)$/,
  );
  await refused({ status: 403, body: '{}' }, /refused the token; it needs the rights Zone:Read and DNS:Edit/);
  await refused({ status: 200, body: 'hello' }, /^Cloudflare answered 200$/);
  await refused({ status: 200, body: '{"success":true,"result":[{}]}' }, /in a form that is not known/);
  await refused({ status: 200, body: ' '.repeat(2 ** 21) }, /could not be read: more than 1 MiB/);
  await refused({ status: 302, headers: { location: url }, body: '' }, /could not be asked/);
  const pages = { success: true, result: [], result_info: { total_pages: 1e9 } };
  await refused({ status: 200, body: JSON.stringify(pages) }, /more than 10 pages/);
  await refused(
    { status: 200, headers: { 'content-length': '100' }, body: '{' },
    /could not be (read|asked)/,
  );
  const none = new Cloudflare({ token, url: 'http://127.0.0.1:1' });
  await t.throwsAsync(none.read(cname.name), { message: /^Cloudflare could not be asked: / });
  const wrong = new Cloudflare({ token: 'wrong', url });
  await t.throwsAsync(wrong.read(cname.name), { message: /refused the token/ });
});
