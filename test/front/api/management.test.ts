/** The management API: an organization is managed by its own keys with full access, and by nobody else. */
import { once } from 'node:events';
import http, { type ServerResponse } from 'node:http';
import { json } from 'node:stream/consumers';
import test, { type ExecutionContext } from 'ava';
import { makeKey } from '#accounts/create-key.ts';
import { grant, setQuota } from '#accounts/rows/credit-ledger.ts';
import { insertOrganization, setLimits } from '#accounts/rows/organizations.ts';
import { managementTags } from '#front/api/openapi/description.ts';
import { operationsOf, readContract } from '#lab/openapi.ts';
import { worldOfFile } from '#lab/scenes/shared-world.ts';
import { startReceiver } from '#lab/scenes/webhook-receiver.ts';
import { asNewTenant, startWorld, type World, type WorldOptions } from '#lab/scenes/world.ts';
import { until } from '#lab/until.ts';
import { newId } from '#platform/base/id.ts';

const api = '/api/public';

const shared = worldOfFile();

/** An organization of its own; a world of its own too for tests that have options. */
async function start(t: ExecutionContext, options?: WorldOptions) {
  const world = options ? await startWorld(t, options) : await asNewTenant(shared());
  const bearer = (key: string) => ({ authorization: `Bearer ${key}` });
  /** Calls with a body of JSON, or of text where it is one. */
  const call = (line: string, body?: unknown, headers: Record<string, string> = {}) => {
    const [method, path] = line.split(' ') as [string, string];
    const text = typeof body === 'string' ? body : JSON.stringify(body);
    return world.call(method, api + path, { headers, ...(text !== undefined && { body: text }) });
  };
  const must = async (line: string, body?: unknown, headers: Record<string, string> = {}) => {
    const { status, body: answer } = await call(line, body, headers);
    t.is(status, 200, `${line}: ${JSON.stringify(answer)}`);
    t.true(answer.success);
    return answer;
  };
  const refusal = async (line: string, body?: unknown, headers: Record<string, string> = {}) => {
    const { status, body: answer } = await call(line, body, headers);
    return `${status} ${answer.error}: ${answer.issues[0]?.message ?? answer.message}`;
  };
  const csv = { 'content-type': 'text/csv' };
  const exported = async (key = world.key) => {
    const response = await fetch(`${world.url()}${api}/suppressions.csv`, { headers: bearer(key) });
    t.is(response.headers.get('content-type'), 'text/csv; charset=utf-8');
    return response.text();
  };
  return { world, orgId: world.orgId, bearer, call, must, refusal, csv, exported };
}

type Started = Awaited<ReturnType<typeof start>>;

const tables = {
  domains: ['name', 'status', 'tls', 'open_tracking', 'tracking_host', 'checked_at'],
  api_keys: ['id', 'label', 'scopes', 'revoked_at'],
  streams: ['name', 'title'],
  suppressions: ['address', 'reason'],
  webhooks: ['id', 'types', 'status', 'secret'],
  receiving_routes: ['id', 'pattern', 'action'],
  credit_entries: ['id', 'change'],
};

/** All that managing could change of an organization. */
const rowsOf = ({ db }: World, orgId: string) =>
  Promise.all(
    Object.entries(tables).map(([table, columns]) =>
      db(table).where({ org_id: orgId }).orderBy(columns[0]!).select(columns),
    ),
  );

/** Another organization, with one of everything. */
async function another({ world: { db }, bearer, must }: Started) {
  const orgId = await insertOrganization(db, `Other ${newId()}`, Date.now());
  await setLimits(db, orgId, { requestsPerSecond: null, requestsPerDay: null, emailsPerDay: null });
  const { id: keyId, key } = await makeKey(
    db,
    { orgId, label: 'theirs', scopes: ['full_access'] },
    Date.now(),
  );
  await must('POST /domains', { name: 'other.invalid' }, bearer(key));
  await must('POST /streams', { name: 'their-news' }, bearer(key));
  await must('POST /suppressions', { address: 'their@there.invalid' }, bearer(key));
  const { webhook } = await must('POST /webhooks', { url: 'https://other.invalid/hook' }, bearer(key));
  const { route } = await must('POST /routes', { pattern: 'other.invalid', action: 'store' }, bearer(key));
  await db.transaction((trx) => setQuota(trx, orgId, 4711, Date.now()));
  return { orgId, key, keyId, webhookId: webhook.id as string, routeId: route.id as string };
}

/** A body that each operation takes. */
const bodies: Record<string, unknown> = {
  'post /domains': { name: 'new.invalid' },
  'patch /domains/{name}': { tls: 'verified', tracking: { openTracking: true } },
  'post /keys': { label: 'new', scopes: ['full_access'] },
  'post /streams': { name: 'new' },
  'patch /streams/{stream}': { title: 'New' },
  'post /suppressions': { address: 'new@there.invalid' },
  'post /suppressions.csv': 'new@there.invalid',
  'post /webhooks': { url: 'https://new.invalid/' },
  'patch /webhooks/{id}': { enabled: false, events: ['email.bounced'] },
  'post /webhooks/{id}/replay': { failed: true },
  'post /routes': { pattern: 'other.invalid', action: 'store' },
  'patch /routes/{id}': { action: 'drop' },
};

/** Every operation that manages, by the document: none can be forgotten here. */
async function operations(world: World) {
  const tags = managementTags.map(({ name }) => name);
  const { document } = await readContract(world);
  return operationsOf(document)
    .filter(({ operation }) => tags.includes(operation.tags[0]!))
    .map(({ method, path }) => {
      const short = path.replace(api, '');
      return { method, path: short, body: bodies[`${method} ${short}`] };
    });
}

const typeFor = (path: string): Record<string, string> =>
  path.endsWith('.csv') ? { 'content-type': 'text/csv' } : {};

test(`what is another organization's is not there, and not changed`, async (t) => {
  const started = await start(t);
  const { world, call, must, refusal, exported } = started;
  const other = await another(started);
  const before = await rowsOf(world, other.orgId);
  const all = await operations(world);
  t.true(all.length > 20);
  for (const { method, path, body } of all) {
    if (!path.includes('{')) continue;
    const ids: Record<string, string> = { keys: other.keyId, routes: other.routeId };
    const id = ids[path.split('/')[1]!] ?? other.webhookId;
    const theirs = { id, name: 'other.invalid', address: 'their@there.invalid', stream: 'their-news' };
    const at = path.replace(/\{(\w+)\}/, (_, name) => theirs[name as 'id']);
    const answer = await call(`${method.toUpperCase()} ${at}`, body);
    t.is(`${answer.status} ${answer.body.error}`, '404 NOT_FOUND', `${method} ${path}`);
  }
  for (const { method, path } of all) {
    if (method !== 'get' || path.includes('{')) continue;
    const query = path === '/routes/check' ? '?address=ann@sender.invalid' : '';
    const told = path.endsWith('.csv') ? await exported() : JSON.stringify(await must(`GET ${path}${query}`));
    // An id has any digits.
    t.notRegex(told, /other\.invalid|their|:4711\b/, path);
    for (const id of [other.keyId, other.webhookId, other.routeId]) t.false(told.includes(id), path);
  }
  const { webhook } = await must('POST /webhooks', { url: 'https://sender.invalid/' });
  const theirEvent = await world.db('events').where({ org_id: other.orgId }).first('id');
  const replay = `POST /webhooks/${webhook.id}/replay`;
  t.is(await refusal(replay, { eventId: theirEvent.id }), '404 NOT_FOUND: There is no such event.');
  t.is((await must(replay, { since: '2020-01-01' })).replayed, 0);
  // What two have by one name is two things.
  await must('POST /domains', { name: 'other.invalid' });
  await must('DELETE /domains/other.invalid');
  await must('POST /streams', { name: 'their-news', title: 'Ours' });
  await must('DELETE /streams/their-news');
  await must('POST /suppressions', { address: 'their@there.invalid' });
  await must('DELETE /suppressions/their@there.invalid');
  t.deepEqual(await rowsOf(world, other.orgId), before);
});

test('a key without full access, or restricted to a domain, manages nothing', async (t) => {
  const { world, orgId, bearer, call, must } = await start(t);
  const { webhook } = await must('POST /webhooks', { url: 'https://sender.invalid/' });
  await must('POST /suppressions', { address: 'ann@there.invalid' });
  const own = { id: webhook.id, name: 'sender.invalid', address: 'ann@there.invalid', stream: 'news' };
  const scopes = [
    ['email:send', 'email:read'],
    ['email:send', 'domain_scope:sender.invalid'],
    ['full_access', 'domain_scope:sender.invalid'],
    ['domain_scope:sender.invalid'],
  ];
  const keys = await Promise.all(
    scopes.map((each) => makeKey(world.db, { orgId, label: each.join(), scopes: each }, Date.now())),
  );
  const before = await rowsOf(world, orgId);
  for (const { method, path, body } of await operations(world)) {
    const at = path.replace(/\{(\w+)\}/, (_, name) => own[name as 'id']);
    for (const { key, scopes: granted } of keys) {
      const headers = { ...bearer(key), ...typeFor(path) };
      const { status, body: answer } = await call(`${method.toUpperCase()} ${at}`, body, headers);
      t.is(`${status} ${answer.error}`, '403 FORBIDDEN', `${method} ${path} ${granted}`);
    }
  }
  t.deepEqual(await rowsOf(world, orgId), before);
});

test('domains, from registering to sending', async (t) => {
  const { world, must, refusal } = await start(t);
  const { domain, records } = await must('POST /domains', { name: 'Müller.invalid.' });
  t.like(domain, { name: 'xn--mller-kva.invalid', status: 'pending', checkedAt: null });
  t.regex(await refusal('POST /domains', { name: 'müller.INVALID' }), /^400 BAD_REQUEST: .* already/);
  t.regex(await refusal('POST /domains', { name: 'localhost' }), /name: must be a domain name/);
  t.regex(await refusal('GET /domains/local_host'), /^400 BAD_REQUEST: .* not a domain name/);
  const name = encodeURIComponent('müller.invalid');
  t.deepEqual(await must(`GET /domains/${name}`), { success: true, domain, records });
  t.deepEqual(
    (await must('GET /domains')).domains.map((one: { name: string }) => one.name),
    ['sender.invalid', 'xn--mller-kva.invalid'],
  );
  const send = () => world.send({ from: 'a@müller.invalid', to: 'ann@there.invalid' });
  t.is((await send()).body.error, 'DOMAIN_NOT_VERIFIED');
  const verify = async () => (await must(`POST /domains/${name}/verify`)).domain.status;
  t.is(await verify(), 'pending');
  const dkim = records.find(({ purpose }: { purpose: string }) => purpose === 'dkim');
  world.dns.set({ [dkim.name]: { TXT: [dkim.value] } });
  t.is(await verify(), 'verified');
  t.is((await send()).status, 200);
  // No answer says nothing.
  world.dns.set({ [dkim.name]: 'SERVFAIL' });
  t.is(await verify(), 'verified');

  const change = async (body: object) => (await must(`PATCH /domains/${name}`, body)).domain;
  t.like(await change({ tracking: { host: 'link.müller.invalid', clickTracking: true } }), {
    tracking: { openTracking: false, clickTracking: true, host: 'link.xn--mller-kva.invalid' },
    tls: 'opportunistic',
  });
  t.like(await change({ tls: 'encrypted' }), {
    tracking: { openTracking: false, clickTracking: true, host: 'link.xn--mller-kva.invalid' },
    tls: 'encrypted',
    effectiveTls: 'encrypted',
  });
  t.is((await change({ tracking: { host: null } })).tracking.host, null);
  const same = await must(`GET /domains/${name}`);
  t.deepEqual(await change({}), same.domain);
  t.regex(await refusal(`PATCH /domains/${name}`, { tls: 'none' }), /^400 VALIDATION_ERROR: tls: /);
  t.deepEqual(await change({ tracking: null }), same.domain);

  await must(`DELETE /domains/${name}`);
  t.regex(await refusal(`GET /domains/${name}`), /^404 NOT_FOUND/);
  await until(async () => (await send()).body.error === 'DOMAIN_NOT_FOUND');
});

test("a host in another organization's domain is not that of one's links", async (t) => {
  const [one, two] = [await start(t), await start(t)];
  const tracking = { host: 'links.bank.invalid' };
  await one.must('PATCH /domains/sender.invalid', { tracking });
  const { records } = await two.must('POST /domains', { name: 'bank.invalid' });
  two.world.dns.set({ [records[0].name]: { TXT: [records[0].value] } });
  await two.must('POST /domains/bank.invalid/verify');
  t.is((await one.must('GET /domains/sender.invalid')).domain.tracking.host, null, 'it is taken back');
  t.regex(await one.refusal('PATCH /domains/sender.invalid', { tracking }), /^400 BAD_REQUEST: links\.bank/);
  await two.must('PATCH /domains/sender.invalid', { tracking });
});

test('keys are made, listed without themselves, rotated, revoked', async (t) => {
  const { world, bearer, call, must, refusal } = await start(t);
  const scopes = ['email:send', 'email:send', 'domain_scope:SENDER.invalid'];
  const made = await must('POST /keys', { label: 'shop', scopes });
  t.deepEqual(made.scopes, ['email:send', 'domain_scope:sender.invalid']);
  const send = (key: string) =>
    call(
      'POST /email/send',
      { from: 'a@sender.invalid', to: 'b@there.invalid', subject: key, text: '.' },
      bearer(key),
    );
  t.is((await send(made.key)).status, 200);
  t.regex(await refusal('POST /keys', { label: 'x', scopes: ['root'] }), /"root" is not a scope/);
  t.regex(await refusal('POST /keys', { label: 'x', scopes: [] }), /^400 VALIDATION_ERROR: scopes/);
  t.regex(await refusal('POST /keys', { label: 'a\nb', scopes }), /label: must be one line of text/);

  const rotated = await must(`POST /keys/${made.id.toUpperCase()}/rotate?now=true`);
  t.like(rotated, { label: 'shop', scopes: made.scopes, oldKeyUntil: null });
  t.not(rotated.key, made.key);
  t.is((await send(rotated.key)).status, 200);
  await until(async () => (await send(made.key)).status === 401);
  t.regex(await refusal(`POST /keys/${made.id}/rotate`), /^400 BAD_REQUEST: The key has been revoked\./);

  await must(`DELETE /keys/${made.id}`);
  const pages = [];
  for (let after = ''; ; ) {
    const page = await must(`GET /keys?limit=1${after}`);
    pages.push(...page.keys);
    if (page.next === null) break;
    after = `&after=${page.next}`;
  }
  t.deepEqual(pages, (await must('GET /keys')).keys);
  t.deepEqual(
    pages.map(({ label, revokedAt }) => [label, revokedAt === null]),
    [
      ['test', true],
      ['shop', false],
      ['shop', true],
    ],
  );
  for (const { key } of [made, rotated]) t.false(JSON.stringify(pages).includes(key));

  // A key that was replaced still works for a day.
  const { key: next, oldKeyUntil } = await must(`POST /keys/${rotated.id}/rotate`);
  t.true(Date.parse(oldKeyUntil) > world.clock.now() + 23 * 3_600_000);
  for (const key of [rotated.key, next]) t.is((await call('GET /keys', undefined, bearer(key))).status, 403);
  t.is(
    await refusal(`POST /keys/${rotated.id}/rotate`),
    `400 BAD_REQUEST: The key has been replaced and works until ${oldKeyUntil} unless you revoke it. ` +
      'Use the key that replaced it, or create a new key.',
  );

  // It may end itself.
  const { keys } = await must('GET /keys?limit=1');
  const self = await must(`POST /keys/${keys[0].id}/rotate?now=true`);
  await must(`DELETE /keys/${self.id}`, undefined, bearer(self.key));
  for (const key of [self.key, world.key])
    await until(async () => (await call('GET /keys', undefined, bearer(key))).status === 401);
});

test('suppressions one by one, in pages, by a part of the address', async (t) => {
  const { world, must, refusal } = await start(t);
  const added = await must('POST /suppressions', { address: 'Ann@There.invalid', reason: 'asked' });
  t.true(added.added);
  const again = await must('POST /suppressions', { address: 'ann@there.invalid' });
  t.deepEqual(again, { ...added, added: false });
  t.is((await world.send({ to: 'ANN@there.invalid' })).status, 422);
  for (const address of [
    'bob@there.invalid',
    'cy@elsewhere.invalid',
    'dee@there.invalid',
    '"j d"@there.invalid',
  ])
    await must('POST /suppressions', { address });
  const addresses = async (query: string) => {
    const { suppressions, next } = await must(`GET /suppressions${query}`);
    return { list: suppressions.map(({ address }: { address: string }) => address), next };
  };
  const whole = await addresses('');
  t.is(whole.list.length, 5);
  const inPages: string[] = [];
  for (let query = '?limit=2'; ; ) {
    const { list, next } = await addresses(query);
    t.true(list.length <= 2);
    inPages.push(...list);
    if (next === null) break;
    query = `?limit=2&after=${next}`;
  }
  t.deepEqual(inPages, whole.list);
  t.deepEqual((await addresses('?search=@ELSEWHERE')).list, ['cy@elsewhere.invalid']);
  t.deepEqual((await addresses('?search=ann')).list, ['Ann@There.invalid']);
  t.deepEqual(await addresses('?search=nobody'), { list: [], next: null });
  t.deepEqual((await addresses('?search=%25')).list, []);
  for (const after of ['bob@there.invalid', 'AA', '%00', 'AA%3D%3D'])
    t.regex(await refusal(`GET /suppressions?after=${after}`), /after: must be the `next` of a response/);

  const quoted = encodeURIComponent('"j d"@there.invalid');
  t.is((await must(`GET /suppressions/${quoted}`)).suppression.address, '"j d"@there.invalid');
  await must('DELETE /suppressions/aNN@there.invalid');
  t.regex(await refusal('GET /suppressions/ann@there.invalid'), /^404 NOT_FOUND/);
  t.regex(await refusal('DELETE /suppressions/ann@there.invalid'), /^404 NOT_FOUND/);
  t.regex(await refusal('GET /suppressions/ann'), /^400 BAD_REQUEST/);
  t.is((await world.send({ to: 'ann@there.invalid' })).status, 200);
  const { events } = (await world.call('GET', `${api}/events?type=suppression.added,suppression.removed`))
    .body;
  t.is(events.length, 6);
  t.like(events[0].data, { address: 'Ann@There.invalid', reason: 'asked' });
});

test('suppressions as CSV go out and come in again', async (t) => {
  const started = await start(t);
  const { world, must, refusal, csv, exported, bearer } = started;
  const many = Array.from({ length: 1300 }, (_, index) => `user${index}@there.invalid`);
  const odd = ['=1+1@there.invalid', '#x@there.invalid', '"a,;b"@there.invalid', "'=q@there.invalid"];
  const list = ['address', ...many, ...odd.map((one) => `"${one.replaceAll('"', '""')}"`)].join('\n');
  // A formula's guard is taken off, and so this one's.
  const guarded = list.replace(`"'=q`, `"''=q`);
  t.regex(
    await refusal('POST /suppressions.csv', 'address\nnobody\n@', csv),
    /^400 VALIDATION_ERROR: line 2: /,
  );
  t.is((await must('GET /suppressions')).suppressions.length, 0);
  t.like(await must('POST /suppressions.csv', `${guarded}\nnobody`, csv), {
    added: 1304,
    before: 0,
    rejected: 1,
    rejectedLines: [{ line: 1306, text: 'nobody' }],
  });
  t.like(await must('POST /suppressions.csv', guarded, csv), {
    added: 0,
    before: 1304,
    rejected: 0,
    rejectedLines: [],
  });
  const out = await exported();
  t.is(out.split('\r\n').length, 1306);
  t.true(out.includes(`"'=1+1@there.invalid","imported","`));

  const other = await another(started);
  t.like(await must('POST /suppressions.csv', out, { ...csv, ...bearer(other.key) }), {
    added: 1304,
    before: 0,
  });
  const withoutTimes = (text: string) =>
    text
      .replace(/"[^"]*Z"/g, '')
      .split('\r\n')
      .sort();
  const theirs = withoutTimes(await exported(other.key)).filter((line) => !line.includes('their@'));
  t.deepEqual(theirs, withoutTimes(out));
  t.is((await world.send({ to: '=1+1@there.invalid' })).status, 422);
});

test('webhooks are managed as the command line does it', async (t) => {
  const { world, orgId, call, must, refusal } = await start(t, {
    settings: { POSTERN_WEBHOOK_ALLOW_PRIVATE: 'true' },
  });
  const receiver = await startReceiver(t, { now: world.clock.now });
  const added = await must('POST /webhooks', { url: receiver.url, events: ['suppression.added'] });
  const { id } = added.webhook;
  receiver.secret = added.secret;
  const suppress = (address: string) => must('POST /suppressions', { address });
  await suppress('ann@there.invalid');
  await until(() => receiver.requests.length === 1);
  t.is(receiver.requests[0]!.fault, null);
  t.is(receiver.requests[0]!.body.data.address, 'ann@there.invalid');

  const rotated = await must(`POST /webhooks/${id}/rotate`);
  receiver.secret = rotated.secret;
  const { ok, attempt } = await must(`POST /webhooks/${id}/test`);
  t.true(ok);
  t.like(attempt, { status: 204, url: receiver.url, error: null });
  t.is(receiver.requests[1]!.fault, null);

  const changed = await must(`PATCH /webhooks/${id}`, { enabled: false, events: [] });
  t.like(changed.webhook, { status: 'disabled', reason: 'disabled by its owner', events: [] });
  await suppress('bob@there.invalid');
  const removed = 'DELETE /suppressions/bob@there.invalid';
  await must(removed);
  t.like((await must(`PATCH /webhooks/${id}`, { enabled: true })).webhook, {
    status: 'active',
    reason: null,
  });
  const since = new Date(world.clock.now() - 3_600_000).toISOString();
  const replayed = await must(`POST /webhooks/${id}/replay`, { since });
  // Ann again, Bob and his removal for the first time; a test is for no replay but its own.
  t.true(replayed.replayed >= 3);
  const told = (type: string) => receiver.requests.filter(({ body }) => body.type === type).length;
  // Bob and his removal come twice if they were sent between the enabling and the replay.
  await world.clock.passUntil(() => told('suppression.added') >= 3 && told('suppression.removed') >= 1);
  await until(
    async () => (await world.db('webhook_messages').whereNot({ status: 'delivered' })).length === 0,
  );

  // An attempt is stored after its answer has come.
  const all = await until(async () => {
    const { attempts } = await must(`GET /webhooks/${id}/attempts`);
    return attempts.length === receiver.requests.length && attempts;
  });
  const first = await must(`GET /webhooks/${id}/attempts?limit=2`);
  const second = await must(`GET /webhooks/${id}/attempts?limit=1000&after=${first.next}`);
  t.deepEqual([...first.attempts, ...second.attempts], all);
  const { eventId } = all.at(-1);
  const ofOne = (await must(`GET /webhooks/${id}/attempts?eventId=${eventId}`)).attempts;
  t.true(ofOne.length >= 1 && ofOne.every((one: { eventId: string }) => one.eventId === eventId));
  t.is((await must(`POST /webhooks/${id}/replay`, { eventId })).replayed, 1);
  for (const body of [{ eventId, failed: true }, { until: since }, { failed: false }, { since: 'soon' }])
    t.regex(await refusal(`POST /webhooks/${id}/replay`, body), /^400 VALIDATION_ERROR/);

  t.regex(
    await refusal('POST /webhooks', { url: 'ftp://a.invalid/' }),
    /^400 VALIDATION_ERROR: url: .*not a URL/,
  );
  t.regex(
    await refusal('POST /webhooks', { url: receiver.url, events: ['email.eaten'] }),
    /VALIDATION_ERROR/,
  );
  const rows = Array.from({ length: 49 }, () => ({ url: receiver.url }));
  for (const body of rows) await must('POST /webhooks', body);
  t.regex(await refusal('POST /webhooks', { url: receiver.url }), /^400 BAD_REQUEST: .* 50 webhooks/);
  const listed = JSON.stringify((await must('GET /webhooks')).webhooks);
  t.false(listed.includes('whsec_') || listed.includes(rotated.secret));
  await must(`DELETE /webhooks/${id}`);
  t.is((await call(`GET /webhooks/${id}`)).status, 404);
  t.is((await world.db('webhooks').where({ org_id: orgId })).length, 49);
});

test('credits tell the quota, the wallet and the whole ledger', async (t) => {
  const { world, orgId, must, refusal } = await start(t);
  t.like(await must('GET /credits'), { quota: { limit: null, remaining: null }, wallet: 0 });
  await world.db.transaction((trx) => setQuota(trx, orgId, 2, Date.now()));
  await world.db.transaction((trx) => grant(trx, orgId, 5, Date.now()));
  const { body } = await world.send({ to: ['a@there.invalid', 'b@there.invalid', 'c@there.invalid'] });
  const credits = await must('GET /credits');
  t.like(credits, { quota: { limit: 2, used: 2, remaining: 0 }, wallet: 4, next: null });
  t.like(credits.ledger[0], { change: -3, balance: 4, emailId: body.emailId });
  const pages = [];
  for (let after = ''; ; ) {
    const page = await must(`GET /credits?limit=1${after}`);
    pages.push(...page.ledger);
    if (page.next === null) break;
    after = `&after=${page.next}`;
  }
  t.deepEqual(pages, credits.ledger);
  t.regex(await refusal('GET /credits?after=x'), /^400 VALIDATION_ERROR: after: must be a UUID/);
});

test('webhooks may not go to private addresses', async (t) => {
  const { refusal } = await start(t);
  for (const url of [
    'http://127.0.0.1/',
    'http://[::1]/',
    'http://10.1.2.3/',
    'http://localhost/',
    'http://a.invalid:25/',
  ])
    t.regex(await refusal('POST /webhooks', { url }), /^400 VALIDATION_ERROR: url: /, url);
});

test('bodies of management calls are bounded and of the type that they say', async (t) => {
  const { world, bearer, call, refusal, csv } = await start(t);
  for (const [path, type, size, said] of [
    ['/keys', 'application/json', 64 * 2 ** 10, '64 KiB'],
    ['/suppressions.csv', 'text/csv', 10 * 2 ** 20, '10 MiB'],
  ] as const) {
    const headers = { 'content-type': type, 'content-length': size + 1, ...bearer(world.key) };
    const request = http.request(`${world.url()}${api}${path}`, { method: 'POST', headers });
    // Nothing of it is sent: it is refused by what it says of itself.
    request.flushHeaders();
    const [response] = await once(request, 'response');
    const answer = (await json(response)) as { error: string; message: string };
    request.destroy();
    t.deepEqual([answer.error, answer.message], ['BAD_REQUEST', `The body is larger than ${said}.`]);
  }
  const many = Array.from({ length: 100_001 }, (_, index) => `u${index}@a.io`).join('\n');
  t.regex(
    await refusal('POST /suppressions.csv', many, csv),
    /^400 BAD_REQUEST: .* more than 100000 addresses/,
  );
  t.regex(
    await refusal('POST /suppressions.csv', '{}'),
    /Content-Type must be text\/csv, not "application\/json"/,
  );
  t.regex(
    await refusal('POST /suppressions', '{}', { 'content-type': 'application/json; charset=iso-8859-1' }),
    /Content-Type must be application\/json in UTF-8, not "application\/json; charset=iso-8859-1"/,
  );
  t.regex(await refusal('POST /suppressions.csv', '"ann@there.invalid', csv), /a quote .* is never closed/);
  t.is(
    (await call('POST /suppressions.csv', 'address;why', { 'content-type': 'text/csv; header=present' })).body
      .added,
    0,
  );
});

test('tests of endpoints that hang leave room for others, and cost nobody a request', async (t) => {
  const started = await start(t, {
    settings: { POSTERN_WEBHOOK_ALLOW_PRIVATE: 'true' },
    // They end when the test says so, however busy the machine.
    overrides: { webhookTimeoutMs: 300_000 },
  });
  const { world, orgId, bearer, call, must } = started;
  const receiver = await startReceiver(t);
  const hanging: ServerResponse[] = [];
  receiver.answer = (_, response) => hanging.push(response);
  const endpoint = async (headers = {}) =>
    (await must('POST /webhooks', { url: receiver.url }, headers)).webhook.id;
  const id = await endpoint();
  const four = Array.from({ length: 4 }, () => must(`POST /webhooks/${id}/test`));
  await until(() => hanging.length === 4);
  await setLimits(world.db, orgId, { requestsPerSecond: null, requestsPerDay: 100, emailsPerDay: null });
  const counted = async () => Number((await call('GET /keys')).headers.get('x-ratelimit-remaining'));
  await until(async () => (await counted()) < 1000);
  const before = await counted();
  const fifth = await call(`POST /webhooks/${id}/test`);
  t.is(`${fifth.status} ${fifth.body.error}`, '429 RATE_LIMIT_EXCEEDED');
  t.is(fifth.headers.get('retry-after'), '1');
  t.is(await counted(), before - 1);
  const other = await another(started);
  const theirs = must(
    `POST /webhooks/${await endpoint(bearer(other.key))}/test`,
    undefined,
    bearer(other.key),
  );
  await until(() => hanging.length === 5);
  for (const response of hanging.splice(0)) response.end();
  for (const { ok } of await Promise.all([...four, theirs])) t.true(ok);
  receiver.answer = (_, response) => response.end();
  t.true((await must(`POST /webhooks/${id}/test`)).ok);
});

test('a service that stops waits for no endpoint that hangs', async (t) => {
  const { world, call, must } = await start(t, {
    settings: { POSTERN_WEBHOOK_ALLOW_PRIVATE: 'true' },
    // Longer than a test may hang.
    overrides: { webhookTimeoutMs: 3_600_000 },
  });
  const receiver = await startReceiver(t);
  receiver.answer = () => {};
  const { webhook } = await must('POST /webhooks', { url: receiver.url });
  const cut = call(`POST /webhooks/${webhook.id}/test`).catch((error: Error) => error.message);
  await until(() => receiver.requests.length === 1);
  await world.stop();
  t.is(await cut, 'fetch failed');
});

test('responses with a secret or a key are not cached', async (t) => {
  const { call } = await start(t);
  const made = await call('POST /keys', { label: 'a', scopes: ['email:send'] });
  t.is(made.headers.get('cache-control'), 'no-store');
});
