/**
 * The limits of the send call: what is refused and with which error, what is just accepted, and what is charged. Every row
 * goes to a real server over a socket. At the end, the file checks that refused sends left nothing behind.
 */
import { createHash } from 'node:crypto';
import { connect } from 'node:net';
import test, { type ExecutionContext } from 'ava';
import { v7 as uuid } from 'uuid';
import { newKey } from '../../src/accounts/api-keys.ts';
import { grant } from '../../src/db/accept/credit-ledger.ts';
import { insertKey, revokeKey } from '../../src/db/accounts/keys.ts';
import { addSuppression } from '../../src/db/accounts/suppressions.ts';
import { compareKey } from '../../src/mail/address.ts';
import { jsonTypes, justGood, noSenders, unreadable } from '../fixtures/send/edges.ts';
import { gates, orders, paths, scopesOf } from '../fixtures/send/gates.ts';
import { invalidSends } from '../fixtures/send/invalid.ts';
import { type DatabaseKind, kinds } from '../lab/database/databases.ts';
import { type Answer, createTenant, startWorld, type World, type WorldOptions } from '../lab/scenes/world.ts';

// One world for each database, for the whole file; tenants of their own keep the tests apart.

const worlds = {} as Record<DatabaseKind, World>;
const teardowns: (() => unknown)[] = [];

const sendPath = '/api/public/email/send';

interface Tenant {
  database: DatabaseKind;
  orgId: string;
  key: string;
}

/** A tenant whose sends are all refused, and its keys by the names in test/fixtures/send/gates.ts. */
let refused: Tenant;
const keys: Record<string, string> = {};

test.before(async () => {
  const t = { teardown: (step: () => unknown) => teardowns.unshift(step) } as unknown as ExecutionContext;
  for (const database of kinds) worlds[database] = await startWorld(t, { database });
  refused = await tenant('sqlite', { quota: 100 });
  keys.full = refused.key;
  for (const [name, scopes] of Object.entries(scopesOf)) keys[name] = await addKey(refused, scopes);
  const { id } = await worlds.sqlite
    .db('api_keys')
    .where({ hash: hashOf(keys.revoked!) })
    .first();
  await revokeKey(worlds.sqlite.db, id, Date.now());
  await addDomain(refused, 'pending.invalid', { status: 'pending' });
  await addDomain(refused, 'broken.invalid', { dkim_private_key: 'v1.AAAA.AAAA.AAAA' });
  await suppress(refused, 'gone@there.invalid', 'left@bücher.invalid');
});

test.after.always(async () => {
  try {
    await leftNothing(refused);
  } finally {
    for (const step of teardowns) await step();
  }
});

const hashOf = (key: string) => createHash('sha256').update(key).digest('hex');

async function tenant(database: DatabaseKind, options: WorldOptions['tenant'] = {}): Promise<Tenant> {
  const { db, config, dns } = worlds[database];
  const key = await createTenant(db, config, dns, options);
  const { org_id: orgId } = await db('api_keys')
    .where({ hash: hashOf(key) })
    .first();
  return { database, orgId, key };
}

async function addKey({ database, orgId }: Tenant, scopes: string[]): Promise<string> {
  const { key, hash, hint } = newKey();
  await insertKey(worlds[database].db, { orgId, label: 'test', hash, hint, scopes }, Date.now());
  return key;
}

/** Adds a copy of the tenant's domain with another name and other values of some columns. */
async function addDomain({ database, orgId }: Tenant, name: string, columns: object): Promise<void> {
  const { db } = worlds[database];
  const own = await db('domains').where({ org_id: orgId, name: 'sender.invalid' }).first();
  await db('domains').insert({ ...own, id: uuid(), name, ...columns });
}

async function suppress({ database, orgId }: Tenant, ...addresses: string[]): Promise<void> {
  for (const address of addresses) {
    const suppression = { orgId, address, addressKey: compareKey(address), reason: 'test' };
    await addSuppression(worlds[database].db, suppression, Date.now());
  }
}

interface Call {
  method?: string;
  body?: string | Uint8Array<ArrayBuffer>;
  /** Over those of a good call; null takes one away. */
  headers?: Record<string, string | null>;
}

async function call({ database, key }: Tenant, path: string, options: Call = {}): Promise<Answer> {
  const { method = 'POST', body, headers } = options;
  const all = { authorization: `Bearer ${key}`, 'content-type': 'application/json', ...headers };
  const given = Object.entries(all).filter((header): header is [string, string] => header[1] !== null);
  const response = await fetch(`${worlds[database].url()}${path}`, { method, body, headers: given });
  return { status: response.status, headers: response.headers, body: await response.json() };
}

const good = { from: 'app@sender.invalid', to: 'ann@nowhere.invalid', subject: 'Hello', text: 'x' };

/** Sends a valid request with some fields overridden; undefined removes a field. */
const send = (who: Tenant, fields: object) =>
  call(who, sendPath, { body: JSON.stringify({ ...good, ...fields }) });

/** The organization's emails and credits, and the sums of its ledger. */
async function accountOf({ database, orgId }: Tenant) {
  const { db } = worlds[database];
  const org = await db('organizations').where({ id: orgId }).first();
  const ledger = await db('credit_entries').where({ org_id: orgId }).orderBy('id');
  const sum = ledger.reduce((total, entry) => total + entry.change, 0);
  return {
    emails: (await db('emails').where({ org_id: orgId })).length,
    quotaUsed: org.quota_used,
    wallet: org.wallet,
    left: org.quota_limit - org.quota_used + org.wallet,
    sum,
    balances: ledger.map((entry) => entry.balance),
  };
}

async function leftNothing(who: Tenant): Promise<void> {
  const { emails, quotaUsed, sum, balances } = await accountOf(who);
  const found = JSON.stringify({ emails, quotaUsed, sum, balances });
  if (found !== '{"emails":0,"quotaUsed":0,"sum":100,"balances":[100]}')
    throw new Error(`refusals left ${found}`);
  for (const table of ['deliveries', 'events', 'idempotency']) {
    const rows = await worlds.sqlite.db(table).where({ org_id: who.orgId });
    const left = rows.filter(({ type }) => type !== 'suppression.added');
    if (left.length > 0) throw new Error(`refusals left ${left.length} rows of ${table}`);
  }
}

/** Checks the error body of docs/api.md section 2.5 completely. */
function isError(t: ExecutionContext, { status, body }: Answer, [expected, error]: [number, string]): void {
  t.is(`${status} ${body.error}`, `${expected} ${error}`, body.message);
  t.deepEqual(Object.keys(body).sort(), ['error', 'issues', 'message']);
  t.true(typeof body.message === 'string' && body.message.length > 10);
  t.is(body.issues.length > 0, error === 'VALIDATION_ERROR');
  for (const { path, ...texts } of body.issues) {
    t.deepEqual(Object.keys(texts).sort(), ['code', 'expected', 'message', 'received']);
    const all = [...Object.values(texts), ...path];
    t.true(
      all.every((text) => typeof text === 'string') && !Object.values(texts).includes(''),
      all.join('|'),
    );
  }
}

/**
 * Tests with large bodies run one after the other: a server bounds the bytes of all bodies that it is receiving, so
 * several of them at once are rightly answered 429.
 */
const testLargeBody = test.serial;

for (const [path, what, fields] of invalidSends) {
  const add = JSON.stringify(fields).length > 2 ** 20 ? testLargeBody : test;
  add(`VALIDATION_ERROR at ${JSON.stringify(path).slice(0, 60)}: ${what}`, async (t) => {
    const answer = await send(refused, fields);
    isError(t, answer, [400, 'VALIDATION_ERROR']);
    const paths = answer.body.issues.map((issue: { path: string[] }) => issue.path.join('.'));
    t.deepEqual(paths, [path]);
  });
}

test('VALIDATION_ERROR names every violation at once, each by its path', async (t) => {
  const headers = { From: 'x', 'X-A': 5 };
  const wrong = {
    to: ['a@b.invalid', 'x', 5],
    subject: '',
    text: '',
    tags: { a: 1 },
    replyTo: 'x',
    headers,
  };
  const { body } = await send(refused, wrong);
  const paths = body.issues.map((issue: { path: string[] }) => issue.path);
  t.deepEqual(paths, [
    ['to', '1'],
    ['to', '2'],
    ['subject'],
    ['replyTo'],
    ['headers', 'From'],
    ['headers', 'X-A'],
    ['tags', 'a'],
    ['html'],
  ]);
  t.like(body.issues[1], { code: 'invalid_type', expected: 'string', received: 'number' });
});

for (const body of ['[]', '"send"', 'null', '5', 'true', '[{"to":"a@b.invalid"}]']) {
  test(`VALIDATION_ERROR at the body itself: ${body}`, async (t) => {
    const answer = await call(refused, sendPath, { body });
    isError(t, answer, [400, 'VALIDATION_ERROR']);
    t.deepEqual(answer.body.issues[0].path, []);
  });
}

for (const from of noSenders) {
  test(`BAD_REQUEST: the sender ${JSON.stringify(from).slice(0, 60)}`, async (t) => {
    isError(t, await send(refused, { from }), [400, 'BAD_REQUEST']);
  });
}

for (const [what, body, type] of unreadable) {
  test(`BAD_REQUEST: a body that is ${what}`, async (t) => {
    const bytes = new Uint8Array(Buffer.from(body));
    const answer = await call(refused, sendPath, { body: bytes, headers: { 'content-type': type } });
    isError(t, answer, [400, 'BAD_REQUEST']);
  });
}

/** Sends the head, then the body until the server responds. Resolves to the response and the number of bytes written. */
function pour(head: string[], body: Iterable<Buffer>): Promise<{ answer: string; written: number }> {
  const { hostname, port } = new URL(worlds.sqlite.url());
  return new Promise((resolve) => {
    const socket = connect(Number(port), hostname);
    let answer = '';
    const chunks = body[Symbol.iterator]();
    const next = () => {
      while (answer === '') {
        const { value, done } = chunks.next();
        if (done || !socket.write(value)) return;
      }
    };
    socket.on('drain', next);
    socket.on('data', (data) => {
      answer += data;
    });
    socket.on('error', () => {});
    socket.setTimeout(10_000, () => socket.destroy());
    socket.on('close', () => resolve({ answer, written: socket.bytesWritten }));
    const start = [`POST ${sendPath} HTTP/1.1`, 'Host: x', `Authorization: Bearer ${keys.full}`, ...head];
    socket.write(`${start.join('\r\n')}\r\nContent-Type: application/json\r\n\r\n`);
    next();
  });
}

const mebibyte = Buffer.concat([Buffer.from('100000\r\n'), Buffer.alloc(2 ** 20, ' '), Buffer.from('\r\n')]);
const tooLarge = /^HTTP\/1\.1 400 .*\r\nConnection: close\r\n.*"error":"BAD_REQUEST"/is;

testLargeBody('a body announced as larger than 20 MiB is refused before it arrives', async (t) => {
  const { answer } = await pour([`Content-Length: ${20 * 2 ** 20 + 1}`], []);
  t.regex(answer, tooLarge);
});

testLargeBody(
  'a body that turns out larger than 20 MiB is refused at the limit and not read further',
  async (t) => {
    const { answer } = await pour(
      ['Transfer-Encoding: chunked'],
      [...Array(20).fill(mebibyte), Buffer.from('1\r\n \r\n')],
    );
    t.regex(answer, tooLarge);
    const { written } = await pour(['Transfer-Encoding: chunked'], Array(200).fill(mebibyte));
    t.true(written < 60 * 2 ** 20, `${written} bytes went into the connection`);
  },
);

// Keys, scopes and domains, and the order of the checks.

for (const [index, [what, authorization, expected]] of gates.entries()) {
  test(`${expected[1]}: ${what}`, async (t) => {
    const named = authorization?.replace(/\b[a-z]+$/, (name) => keys[name] ?? name) ?? null;
    // A client address each: failed keys are counted by it.
    const headers = { authorization: named, 'x-forwarded-for': `192.0.2.${index}` };
    isError(t, await call(refused, sendPath, { body: JSON.stringify(good), headers }), expected);
  });
}

for (const [index, [what, key, fields, expected]] of orders.entries()) {
  test(`${expected[1]}: ${what}`, async (t) => {
    const who = { ...refused, key: keys[key] ?? newKey().key };
    const headers = { 'x-forwarded-for': `192.0.2.${100 + index}` };
    const body = typeof fields === 'string' ? fields : JSON.stringify({ ...good, ...fields });
    isError(t, await call(who, sendPath, { body, headers }), expected);
  });
}

test('DOMAIN_NOT_ALLOWED names the rejected domain and the allowed ones', async (t) => {
  const { body } = await send({ ...refused, key: keys.elsewhere! }, { from: 'App <a@Bücher.invalid>' });
  for (const name of ['xn--bcher-kva.invalid', 'a.invalid', 'b.invalid'])
    t.true(body.message.includes(name), name);
});

for (const [method, path, key, expected, allow] of paths) {
  test(`${expected.join(' ')}: ${method} ${path}, ${key}`, async (t) => {
    const answer = await call({ ...refused, key: keys[key]! }, path, { method });
    isError(t, answer, expected);
    if (allow) t.true(answer.headers.get('allow')!.split(', ').includes(allow));
  });
}

// What is accepted, and what is charged.

for (const database of kinds) {
  testLargeBody(`${database}: boundary values are accepted`, async (t) => {
    const who = await tenant(database);
    for (const [index, [what, fields]] of justGood.entries()) {
      const { status, body } = await send(who, { to: `r${index}@nowhere.invalid`, ...fields });
      t.is(status, 200, `${what}: ${JSON.stringify(body)}`);
      t.deepEqual(Object.keys(body), ['success', 'id', 'emailId', 'accepted'], what);
    }
    for (const [index, type] of jsonTypes.entries()) {
      const body = JSON.stringify({ ...good, to: `type${index}@nowhere.invalid` });
      t.is((await call(who, sendPath, { body, headers: { 'content-type': type } })).status, 200, type);
    }
    const whole = JSON.stringify({ ...good, to: 'whole@nowhere.invalid' }).padEnd(20 * 2 ** 20);
    t.is((await call(who, sendPath, { body: whole })).status, 200, '20 MiB');
    t.is((await accountOf(who)).emails, justGood.length + jsonTypes.length + 1);
  });

  test(`${database}: an email is found only by its own organization`, async (t) => {
    const [owner, other] = [await tenant(database), await tenant(database)];
    const { body } = await send(owner, { tags: { a: 'b' } });
    const get = (who: Tenant) => call(who, `/api/public/email/${body.emailId}`, { method: 'GET' });
    t.like((await get(owner)).body, { success: true, emailId: body.emailId, id: body.id, tags: { a: 'b' } });
    isError(t, await get(other), [404, 'NOT_FOUND']);
  });

  test(`${database}: suppressed recipients are skipped, whatever their letter case or form, and cost nothing`, async (t) => {
    const who = await tenant(database, { quota: 3 });
    await suppress(who, 'Gone@There.invalid', 'left@bücher.invalid', 'jo\u0308rg@there.invalid');
    const others = ['LEFT@xn--bcher-kva.invalid', 'JÖRG@there.invalid', '"gone"@there.invalid'];
    const to = ['gone@THERE.invalid', 'ann@nowhere.invalid', ...others];
    const { body } = await send(who, { to });
    t.deepEqual(body.accepted, ['ann@nowhere.invalid']);
    t.deepEqual(body.suppressed, [to[0], to[2], to[3]], 'as given, each mailbox once');
    t.false('insufficientCredit' in body);
    t.like(await accountOf(who), { emails: 1, quotaUsed: 1, left: 2, sum: 2 });
    const other = await tenant(database);
    t.deepEqual((await send(other, { to: 'gone@there.invalid' })).body.accepted, ['gone@there.invalid']);
  });

  test(`${database}: an address that is given twice is counted, charged and delivered once, as first written`, async (t) => {
    const who = await tenant(database, { quota: 5 });
    const to = ['Ann@Nowhere.invalid', 'bob@nowhere.invalid', 'ann@nowhere.INVALID'];
    const { body } = await send(who, { to });
    t.deepEqual(body.accepted, ['Ann@Nowhere.invalid', 'bob@nowhere.invalid']);
    t.like(await accountOf(who), { quotaUsed: 2, left: 3, sum: 3 });
  });

  test(`${database}: the quota pays before the wallet, recipients are paid for in request order, the ledger adds up`, async (t) => {
    const who = await tenant(database, { quota: 2 });
    await worlds[database].db.transaction((trx) => grant(trx, who.orgId, 3, Date.now()));
    await suppress(who, 'gone@nowhere.invalid');
    await send(who, { to: 'one@nowhere.invalid' });
    t.like(await accountOf(who), { quotaUsed: 1, wallet: 3, left: 4, sum: 4 });
    await send(who, { to: ['two@nowhere.invalid', 'three@nowhere.invalid'] });
    t.like(await accountOf(who), { quotaUsed: 2, wallet: 2, left: 2, sum: 2 }, 'one of each');
    const to = ['d', 'gone', 'b', 'c', 'a'].map((name) => `${name}@nowhere.invalid`);
    const { status, body } = await send(who, { to });
    t.is(status, 200);
    t.deepEqual(
      [body.accepted, body.suppressed, body.insufficientCredit],
      [[to[0], to[2]], [to[1]], [to[3], to[4]]],
    );
    isError(t, await send(who, { to: 'e@nowhere.invalid' }), [402, 'INSUFFICIENT_CREDITS']);
    isError(t, await send(who, { to: 'gone@nowhere.invalid' }), [422, 'ALL_RECIPIENTS_SUPPRESSED']);
    const end = { emails: 3, quotaUsed: 2, wallet: 0, left: 0, sum: 0, balances: [2, 5, 4, 2, 0] };
    t.deepEqual(await accountOf(who), end);
    const email = (await call(who, `/api/public/email/${body.emailId}`, { method: 'GET' })).body;
    t.is(email.credits, 2);
    t.is(email.recipients[1].status, 'suppressed');
    t.is(email.recipients[4].status, 'insufficient_credit');
  });
}
