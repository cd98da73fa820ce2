/**
 * Item 1: bodies that are cheap to send and dear to read, of 20 MB and of what fits a small limit, as each member of each
 * request that the OpenAPI document has, and as CSV. Each answer is under 100 KB, and nobody waits.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { ask, callJson, type Reply, withKey } from '#lab/ask.ts';
import { type Attack, type Verdict, verdict } from './attack.ts';
import type { Scene } from './scene.ts';

/** Of its first piece, another piece again and again, and its end. */
const kinds = {
  objects: { open: '[', piece: () => '{},', close: '{}]' },
  members: { open: '{', piece: (n: number) => `"k ${n}":1,`, close: '"k":1}' },
  numbers: { open: '[', piece: () => '1,', close: '1]' },
  'nested arrays': { open: '', piece: () => '[', close: '' },
};
type Kind = keyof typeof kinds;

const maxAnswer = 100_000;
/** On a server that stands still it is known by then. */
const timeoutMs = 6_000;
/** Requests that take longer than a second may take so long together: then it is broken, and more would prove no more. */
const slowMs = 1_000;
const allSlowMs = 5_000;
const mega = 1_000_000;

const made = new Map<string, Buffer>();

function hostile(kind: Kind, bytes: number): Buffer {
  const name = `${kind} ${bytes}`;
  const known = made.get(name);
  if (known) return known;
  const { open, piece, close } = kinds[kind];
  let buffer: Buffer;
  if (kind === 'nested arrays') {
    buffer = Buffer.concat([Buffer.alloc(bytes / 2, '['), Buffer.alloc(bytes / 2, ']')]);
  } else {
    const pieces = [open];
    for (let n = 0, length = 0; length < bytes - 100; n++)
      length += pieces[pieces.push(piece(n)) - 1]!.length;
    buffer = Buffer.from(pieces.join('') + close);
  }
  made.set(name, buffer);
  return buffer;
}

interface Endpoint {
  method: string;
  path: string;
  members: string[];
  /** The body is a list of such objects. */
  isList: boolean;
}

// biome-ignore lint/suspicious/noExplicitAny: the OpenAPI document
type Any = any;

/** All that take JSON. */
async function endpointsOf({ url }: Scene): Promise<Endpoint[]> {
  const document: Any = await (await fetch(`${url}/api/public/openapi.json`)).json();
  const resolved = (schema: Any): Any =>
    schema?.$ref ? resolved(document.components.schemas[schema.$ref.split('/').at(-1)]) : schema;
  return Object.entries<Any>(document.paths).flatMap(([path, operations]) =>
    Object.entries<Any>(operations).flatMap(([method, { requestBody }]) => {
      const schema = resolved(requestBody?.content?.['application/json']?.schema);
      if (!schema) return [];
      const { properties } = resolved(schema.items) ?? schema;
      const members = Object.keys(properties);
      return [{ method: method.toUpperCase(), path, members, isList: schema.items !== undefined }];
    }),
  );
}

/** What a request has besides its hostile member. */
const valid: Record<string, object> = {
  send: { from: 'a@sender.invalid', to: 'hostile@there.invalid', subject: 'x', text: 'x' },
  batch: { from: 'a@sender.invalid', to: 'hostile@there.invalid', subject: 'x', text: 'x' },
  domains: { name: 'hostile.invalid' },
  keys: { label: 'hostile', scopes: ['email:send'] },
  suppressions: { address: 'hostile@there.invalid' },
  webhooks: { url: 'https://hooks.invalid/' },
  routes: { pattern: 'sender.invalid', action: 'store' },
};

function bodyWith({ path, isList }: Endpoint, member: string | null, value: Buffer): Buffer[] {
  const one = objectWith(path, member, value);
  return isList ? [Buffer.from('['), ...one, Buffer.from(']')] : one;
}

/** Null: the members go to the top. */
function objectWith(path: string, member: string | null, value: Buffer): Buffer[] {
  const { [member ?? '']: _, ...rest } = (valid[path.split('/').at(-1)!] ?? {}) as Record<string, unknown>;
  const beginning = JSON.stringify(rest).slice(0, -1);
  const comma = beginning === '{' ? '' : ',';
  if (member === null) return [Buffer.from(beginning + comma), value.subarray(1)];
  return [Buffer.from(`${beginning}${comma}${JSON.stringify(member)}:`), value, Buffer.from('}')];
}

interface Trial {
  what: string;
  call(): Promise<Reply>;
}

/** With a key for idempotency the whole request is compared. A batch takes none. */
function idempotencyOfSend({ isList }: Endpoint, call: number): Record<string, string> {
  return isList ? {} : { 'idempotency-key': `hostile-${call}` };
}

function* jsonTrials({ url, key }: Scene, endpoints: Endpoint[], given: Kind[], sizes: number[]) {
  let calls = 0;
  for (const endpoint of endpoints) {
    const { method, path, members } = endpoint;
    for (const kind of given) {
      for (const member of [...members, 'unknown', ...(kind === 'members' ? [null] : [])]) {
        for (const bytes of sizes) {
          const what = `${bytes / mega} MB of ${kind} as ${method} ${path.replace('/api/public', '')} ${member ?? 'itself'}`;
          const body = bodyWith(endpoint, member, hostile(kind, bytes));
          const headers = { ...withKey(key, body), ...idempotencyOfSend(endpoint, ++calls) };
          yield { what, call: () => ask(url + path, { method, headers, body, timeoutMs }) };
        }
      }
    }
  }
}

function* csvTrials({ url, key }: Scene): Generator<Trial> {
  for (const kind of Object.keys(kinds) as Kind[]) {
    for (const bytes of [9 * mega, 20 * mega]) {
      for (const lines of [false, true]) {
        const whole = hostile(kind, bytes);
        const body = [lines ? Buffer.from(whole.toString('latin1').replaceAll(',', '\n')) : whole];
        const headers = withKey(key, body, 'text/csv');
        const what = `${bytes / mega} MB of ${kind}${lines ? ', each a line,' : ''} as a CSV import`;
        const path = `${url}/api/public/suppressions.csv`;
        yield { what, call: () => ask(path, { method: 'POST', headers, body, timeoutMs }) };
      }
    }
  }
}

/** One after the other, until the server does not answer any more. */
async function tryAll(scene: Scene, trials: Iterable<Trial>): Promise<Verdict> {
  const large: string[] = [];
  let largest = 0;
  let slowest = { ms: 0, what: 'none' };
  let count = 0;
  let silent = '';
  let lost = 0;
  for (const { what, call } of trials) {
    if (silent !== '' || lost > allSlowMs || scene.hasEnded()) break;
    const { bytes, ms, text, isOverdue } = await call();
    count += 1;
    largest = Math.max(largest, bytes);
    if (ms > slowest.ms) slowest = { ms, what };
    if (ms > slowMs) lost += ms;
    if (bytes > maxAnswer) large.push(`${what}: an answer of ${bytes} bytes`);
    if (isOverdue) silent = `${what}: ${text}`;
  }
  return verdict(
    `${count} requests; largest answer ${largest} bytes; slowest ${Math.round(slowest.ms)} ms: ${slowest.what}`,
    [count > 0, 'no endpoint was found to attack'],
    [large.length === 0, `${large.length} answers are too large; ${large[0]}`],
    [silent === '', silent],
    [lost <= allSlowMs, `requests over ${slowMs} ms took ${Math.round(lost)} ms together; ${slowest.what}`],
  );
}

const sendSizes = [0.3 * mega, 19.9 * mega];
/** Other requests take 64 KB. */
const otherSizes = [60_000, 20 * mega];
/** A batch takes 50 MiB, of which a send may be 20. */
const batchSizes = [19.9 * mega, 49 * mega];
const isSend = ({ path }: Endpoint) => path.endsWith('/send');
const isBatch = ({ isList }: Endpoint) => isList;
const isWebhook = ({ path }: Endpoint) => path.includes('/webhooks');

async function managementTrials(scene: Scene, isOurs: (endpoint: Endpoint) => boolean) {
  const { url, key } = scene;
  const make = async (path: string) =>
    JSON.parse((await callJson(`${url}/api/public/${path}`, key, 'POST', valid[path]!)).text);
  const { webhook } = await make('webhooks');
  // The second time it is there already.
  await make('routes');
  const { routes } = JSON.parse((await callJson(`${url}/api/public/routes`, key, 'GET')).text);
  const endpoints = (await endpointsOf(scene)).filter(isOurs).map(({ path, ...rest }) => ({
    ...rest,
    path: path
      .replace('{name}', 'sender.invalid')
      .replace('routes/{id}', `routes/${routes[0].id}`)
      .replace('{id}', webhook.id),
  }));
  return jsonTrials(scene, endpoints, Object.keys(kinds) as Kind[], otherSizes);
}

/** RFC 9112 section 7.1: each chunk is six bytes on the wire. */
const tinyChunks = Buffer.from('1\r\na\r\n'.repeat(20_000));
const chunkedConnections = 8;

/** A request whose body never ends, until it is answered; resolves to the status line. */
async function sendTinyChunks(scene: Scene, head: string[]): Promise<string> {
  const socket = scene.connect(Number(new URL(scene.url).port), '127.0.0.1');
  const answered = new Promise<string>((resolve) => {
    socket.once('data', (data) => resolve(data.toString('latin1').split('\r\n', 1)[0]!));
    socket.once('close', () => resolve('closed'));
  });
  socket.write(`${[...head, 'Host: x', 'Transfer-Encoding: chunked'].join('\r\n')}\r\n\r\n`);
  const write = () => {
    while (!socket.destroyed && socket.write(tinyChunks));
    socket.once('drain', write);
  };
  write();
  const line = await Promise.race([answered, sleep(timeoutMs, 'no answer', { ref: false })]);
  socket.destroy();
  return line;
}

async function tinyChunksTo(scene: Scene): Promise<Verdict> {
  const send = ['POST /api/public/email/send HTTP/1.1', 'Content-Type: application/json'];
  const authorization = `Authorization: Bearer ${scene.key}`;
  const heads = [[...send, authorization], [...send, authorization, 'Content-Encoding: gzip'], send];
  const lines: string[] = [];
  for (const head of heads)
    lines.push(
      ...(await Promise.all(Array.from({ length: chunkedConnections }, () => sendTinyChunks(scene, head)))),
    );
  const others = lines.filter((line) => !/^HTTP\/1\.1 4\d\d /.test(line) && line !== 'closed');
  return verdict(`${[...new Set(lines)].join(', ')}`, [
    others.length === 0,
    `${others.length} of ${lines.length} are answered: ${others[0]}`,
  ]);
}

const common = { item: 1, maxStallMs: 200, timeoutMs: 60_000 };

export const hostileBodies: Attack[] = [
  ...(Object.keys(kinds) as Kind[]).map((kind) => ({
    ...common,
    name: `20 MB of ${kind} at each member of a send`,
    run: async (scene: Scene) =>
      tryAll(scene, jsonTrials(scene, (await endpointsOf(scene)).filter(isSend), [kind], sendSizes)),
  })),
  {
    ...common,
    name: '49 MB of objects or members at each member of a batch',
    run: async (scene) => {
      const endpoints = (await endpointsOf(scene)).filter(isBatch);
      return tryAll(scene, jsonTrials(scene, endpoints, ['objects', 'members'], batchSizes));
    },
  },
  {
    ...common,
    name: 'the same at each member of the webhooks API',
    run: async (scene) => tryAll(scene, await managementTrials(scene, isWebhook)),
  },
  {
    ...common,
    name: 'the same at each member of the other management requests',
    run: async (scene) =>
      tryAll(scene, await managementTrials(scene, (one) => !isSend(one) && !isBatch(one) && !isWebhook(one))),
  },
  { ...common, name: 'the same as a CSV import', run: (scene) => tryAll(scene, csvTrials(scene)) },
  { ...common, name: `bodies in chunks of one byte, ${chunkedConnections} at once`, run: tinyChunksTo },
];
