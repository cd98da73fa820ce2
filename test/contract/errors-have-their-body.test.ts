/** docs/api.md, section 7: every error, on every operation that can have it, and that there are no others. */
import { connect } from 'node:net';
import test from 'ava';
import { table } from '#lab/table.ts';
import { isError, isInvalid, isSent } from './answer.ts';
import {
  emailPath,
  nobodysId,
  openTenant,
  sendPath,
  sharedWorld,
  someone,
  type Tenant,
  turningWorld,
} from './client.ts';

let tenant: Tenant;
const world = sharedWorld(async (made) => {
  tenant = await openTenant(made);
});

const turned = turningWorld();

for (const body of ['[]', '"x"', 'null', '5', 'true', '[{"to":"a@b.invalid"}]']) {
  test(`7 400 VALIDATION_ERROR: a body that is JSON and no object, ${body}`, async (t) => {
    isInvalid(t, await tenant.call('POST', sendPath, { body }), ['']);
  });
}

const json = '{"from":"app@sender.invalid","to":"ann@nowhere.invalid","subject":"Hello","text":"é"}';
const nested = `${'['.repeat(100_000)}${']'.repeat(100_000)}`;
const unreadable: Record<string, string | Buffer> = {
  nothing: '',
  'JSON cut short': json.slice(0, -1),
  'two documents': json + json,
  'single quotes': "{'to':'a@b.invalid'}",
  'a trailing comma': '{"to":"a@b.invalid",}',
  'a control character in a string': '{"to":"a\nb"}',
  'brackets without end': '['.repeat(200_000),
  'nested beyond comparing': `${json.slice(0, -1)},"idempotencyKey":"x","y":${nested}}`,
  'Latin-1': Buffer.from(json, 'latin1'),
  'half a character': Buffer.from([0x22, 0xc3, 0x22]),
  'a surrogate in UTF-8': Buffer.from([0x22, 0xed, 0xa0, 0x80, 0x22]),
  'UTF-16': Buffer.from(json, 'utf16le'),
};

test('7 400 BAD_REQUEST: malformed JSON, and what is not UTF-8', async (t) => {
  for (const [what, body] of Object.entries(unreadable))
    isError(t, await tenant.send({}, { body }), '400 BAD_REQUEST', what);
});

// The rest of the address space.

const unknown: [method: string, path: string][] = table('contract/unknown-paths');

for (const [method, path] of unknown) {
  test(`7 an unknown path has the error body too: ${method} ${path} is 404 NOT_FOUND`, async (t) => {
    isError(t, await tenant.call(method, path), '404 NOT_FOUND');
  });
}

const wrongMethods: [method: string, path: string, allowed: string][] = [
  ['PUT', sendPath, 'POST'],
  ['DELETE', sendPath, 'POST'],
  ['PUT', emailPath(nobodysId), 'PATCH'],
  ['POST', emailPath(nobodysId), 'GET'],
  ['DELETE', emailPath(nobodysId), 'GET'],
  ['DELETE', '/api/public/openapi.json', 'GET'],
];

for (const [method, path, allowed] of wrongMethods) {
  test(`7 a wrong method has the error body too: ${method} ${path} is 405 BAD_REQUEST with Allow`, async (t) => {
    const answer = await tenant.call(method, path);
    isError(t, answer, '405 BAD_REQUEST');
    const allow = answer.headers.get('allow')?.split(', ') ?? [];
    t.true(allow.includes(allowed) && !allow.includes(method), allow.join());
  });
}

/** What the server says to these bytes, until it closes. */
function say(bytes: string): Promise<string> {
  const { hostname, port } = new URL(world().url());
  return new Promise((resolve) => {
    const socket = connect(Number(port), hostname, () => socket.write(bytes));
    let said = '';
    socket.on('data', (data) => {
      said += data;
    });
    socket.on('error', () => {});
    socket.on('close', () => resolve(said));
  });
}

/** Requests that are no HTTP, or too much of it. */
const broken: [what: string, bytes: string, error?: string][] = [
  ['a request line that is none', 'HELO there\r\n\r\n'],
  ['a header line that is none', 'GET / HTTP/1.1\r\nHost: x\r\nno colon\r\n\r\n'],
  ['no Host', 'GET / HTTP/1.1\r\n\r\n'],
  ['two Hosts', 'GET /health/live HTTP/1.1\r\nHost: x\r\nhOST: y\r\n\r\n'],
  ['the same Host twice', 'GET /health/live HTTP/1.0\r\nHost: x\r\nHost: x\r\n\r\n'],
  ['headers without end', `GET / HTTP/1.1\r\nHost: x\r\nX-A: ${'a'.repeat(100_000)}\r\n\r\n`],
  ['two lengths', `POST ${sendPath} HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n`],
  [
    'a length and chunks',
    `POST ${sendPath} HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n`,
  ],
  [
    'an expectation that is unknown',
    'GET /api/public/email/1 HTTP/1.1\r\nHost: x\r\nConnection: close\r\nExpect: a-cake\r\n\r\n',
    'UNAUTHORIZED',
  ],
];

for (const [what, bytes, code = 'BAD_REQUEST'] of broken) {
  test(`7 all 4xx and 5xx responses carry the error body: ${what}`, async (t) => {
    const said = await say(bytes);
    const [head, body] = said.split('\r\n\r\n');
    t.regex(head ?? '', /^HTTP\/1\.1 4\d\d /);
    t.regex(head ?? '', /\r\ncontent-type: application\/json/i, said);
    const { error, message, issues } = JSON.parse(body!);
    t.deepEqual([error, issues], [code, []]);
    t.is(typeof message, 'string');
    for (const header of [
      'x-api-version: 1',
      'x-ratelimit-limit: ',
      'x-ratelimit-remaining: ',
      'x-ratelimit-reset: ',
    ])
      t.true(head!.toLowerCase().includes(`\r\n${header}`), header);
  });
}

// Client guidance: it turns the clock, so nothing runs beside it.

test.serial(
  '7 client guidance on 429: after the number of seconds in Retry-After, the retry passes',
  async (t) => {
    const own = await openTenant(turned(), { limits: { requestsPerSecond: 1 } });
    const to = someone();
    await own.get(nobodysId);
    const refused = await own.send({ to, idempotencyKey: 'k' });
    isError(t, refused, '429 RATE_LIMIT_EXCEEDED');
    await turned().clock.advance(1000 * Number(refused.headers.get('retry-after')));
    isSent(t, await own.send({ to, idempotencyKey: 'k' }), [to]);
  },
);
