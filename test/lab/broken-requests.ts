/**
 * Broken requests for the API of a dialect, made from good ones: a member or field of another type, left out, huge or deep; bytes
 * that are no JSON or no form; another Content-Type, coding, method or path. `checkBroken` sends them until enough are refused:
 * every refusal must be an error in the dialect's form, must not be a fault of ours (5xx), and must store and charge nothing. A
 * request that is still good by chance is not counted.
 *
 *   await checkBroken(t, world, {
 *     base: `${world.url()}/compat/resend`,
 *     headers: { authorization: `Bearer ${world.key}` },
 *     good: [{ route: 'POST /emails', json: mail }, { route: 'GET /emails?limit=2' }],
 *     isError: ({ status, json }) => json?.statusCode === status,
 *   });
 */

import { Agent, type IncomingHttpHeaders, request } from 'node:http';
import { text as textOf } from 'node:stream/consumers';
import { gzipSync } from 'node:zlib';
import type { ExecutionContext } from 'ava';
import fc from 'fast-check';
import { anyText } from './runs.ts';
import type { World } from './scenes/world.ts';
import { column, table } from './table.ts';

interface GoodRequest {
  /** The method, and the path with its query. */
  route: string;
  headers?: Record<string, string>;
  json?: unknown;
  /** Names and values; a value can be a file. It is sent as multipart and, if there is no file, URL-encoded. */
  form?: [name: string, value: string | FormFile][];
}

interface FormFile {
  filename: string;
  content: string;
  type?: string;
}

interface BrokenAnswer {
  status: number;
  headers: IncomingHttpHeaders;
  text: string;
  /** Null if the text is not JSON. */
  // biome-ignore lint/suspicious/noExplicitAny: the dialect says what it is
  json: any;
}

export interface Target {
  /** With the prefix of the dialect, because at the root a path that no dialect has is not the dialect's. */
  base: string;
  /** The key. */
  headers: Record<string, string>;
  good: GoodRequest[];
  /** Whether a refusal has the dialect's form. */
  isError(answer: BrokenAnswer): boolean;
  /** For calls that are answered 200 even if nothing in them is accepted. */
  isRefusedIn2xx?(answer: BrokenAnswer): boolean;
}

/** A row is the route, and where there is a body `json` or `form` and what it says; $ stands for a value. */
export function goodRequests(name: string, values: Record<string, string>): GoodRequest[] {
  const filled = (route: string) => Object.entries(values).reduce((at, one) => at.replace(...one), route);
  return table<[string, ('json' | 'form')?, unknown?]>(name).map(([route, kind, body]) => ({
    route: filled(route),
    ...(kind && { [kind]: body }),
  }));
}

/** Fewer in `npm test` than in `npm run test:slow`. */
const count = Number(process.env.FUZZ_RUNS ?? (process.env.TEST_SLOW ? 2000 : 100));

export async function checkBroken(t: ExecutionContext, world: World, target: Target): Promise<void> {
  const agent = new Agent({ keepAlive: true, maxSockets: 1 });
  t.teardown(() => agent.destroy());
  const tally = new Map<number, number>();
  let stored = await storedIn(world);
  const property = fc.asyncProperty(brokenRequests(target.good), async (broken) => {
    const before = stored;
    const answer = await exchange(agent, target, broken);
    tally.set(answer.status, (tally.get(answer.status) ?? 0) + 1);
    const { status, text } = answer;
    stored = await storedIn(world);
    fc.pre(status >= 400 || target.isRefusedIn2xx?.(answer) === true);
    const shown = `${status} ${text.slice(0, 500)}`;
    if (status >= 500) throw new Error(`a fault of ours: ${shown}`);
    if (status >= 400 && !target.isError(answer)) throw new Error(`not the form of an error: ${shown}`);
    if (stored !== before) throw new Error(`refused, but stored: ${before} is ${stored} now; ${shown}`);
  });
  await fc.assert(property, { numRuns: count, includeErrorInReport: true });
  t.log(`answers by status: ${JSON.stringify(Object.fromEntries(tally))}`);
  t.pass();
}

/** What a send would change. */
async function storedIn({ db }: World): Promise<string> {
  const rows = await db('organizations')
    .orderBy('id')
    .select('quota_used', 'ledger_total')
    .select(db.raw('(select count(*) from emails) as emails'));
  return JSON.stringify(rows);
}

/** What goes over the wire. */
interface Wire {
  method: string;
  path: string;
  /** Undefined: left out. */
  headers: Record<string, string | undefined>;
  body: Buffer | null;
  isChunked?: boolean;
}

function exchange(agent: Agent, target: Target, wire: Wire): Promise<BrokenAnswer> {
  const { method, path, body, isChunked } = wire;
  const given = { ...target.headers, ...wire.headers };
  const headers = Object.fromEntries(Object.entries(given).filter(([, value]) => value !== undefined));
  // With some methods, such as DELETE, a body is not framed by itself.
  const framing = isChunked ? { 'transfer-encoding': 'chunked' } : { 'content-length': String(body?.length) };
  const { hostname, port, pathname } = new URL(target.base);
  // As text, because a URL would resolve the dots in it.
  const whole = `${pathname}${path}`;
  return new Promise((resolve, reject) => {
    const asked = request({
      agent,
      hostname,
      port,
      method,
      path: whole,
      headers: { ...headers, ...(body && framing) },
    });
    asked.setTimeout(300_000, () => asked.destroy(new Error('no answer in five minutes')));
    // After the answer, the rest of a large body may find the connection closed; the promise is settled by then.
    asked.on('error', (error: NodeJS.ErrnoException) => {
      const isIdleEnd = asked.reusedSocket && error.code === 'ECONNRESET';
      if (isIdleEnd) resolve(exchange(agent, target, wire));
      else reject(error);
    });
    asked.on('response', async (response) => {
      const text = await textOf(response).catch(() => '');
      resolve({ status: response.statusCode!, headers: response.headers, text, json: jsonIn(text) });
    });
    asked.end(body ?? undefined);
  });
}

function jsonIn(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return null;
  }
}

function brokenRequests(good: GoodRequest[]): fc.Arbitrary<Wire> {
  return fc
    .constantFrom(...good)
    .chain((one) => {
      const wire = wireOf(one);
      const ofPath = { weight: one.json || one.form ? 1 : 8, arbitrary: brokenPath(wire) };
      if (wire.body === null) return fc.oneof(ofPath, { weight: 2, arbitrary: brokenHeaders(wire) });
      return fc.oneof(
        { weight: 10, arbitrary: one.form ? brokenForm(one) : brokenMembers(one) },
        { weight: 4, arbitrary: brokenBytes(wire) },
        { weight: 2, arbitrary: brokenHeaders(wire) },
        ofPath,
      );
    })
    .map(readable);
}

/** For the report of a failure. */
function readable(wire: Wire): Wire {
  const { method, path, headers, body } = wire;
  const show = () =>
    `${method} ${path} ${JSON.stringify(headers)} ${body?.length ?? 'no'} bytes: ${body?.toString('latin1').slice(0, 1000)}`;
  return Object.assign({ ...wire }, { [fc.toStringMethod]: show });
}

function wireOf({ route, headers = {}, json, form }: GoodRequest): Wire {
  const [method, path] = route.split(' ') as [string, string];
  if (form) {
    const { type, body } = multipart(form);
    return { method, path, headers: { ...headers, 'content-type': type }, body };
  }
  if (json === undefined) return { method, path, headers, body: null };
  const type = { 'content-type': 'application/json' };
  return { method, path, headers: { ...headers, ...type }, body: Buffer.from(JSON.stringify(json)) };
}

/** Strings that often cause errors. */
export const nasty = fc.oneof(anyText(40), fc.constantFrom(...column('dialects/nasty')));

const nested = (depth: number) => {
  let value: unknown = 1;
  for (let n = 0; n < depth; n += 1) value = n % 2 ? [value] : { a: value };
  return value;
};

const hostile: fc.Arbitrary<unknown> = fc.oneof(
  { weight: 8, arbitrary: nasty },
  { weight: 6, arbitrary: fc.constantFrom(...column<unknown>('dialects/odd-values')) },
  { weight: 4, arbitrary: fc.anything({ maxDepth: 2, values: [nasty, fc.integer(), fc.boolean()] }) },
  {
    weight: 2,
    arbitrary: fc.constantFrom<unknown>(
      'x'.repeat(1000),
      'é'.repeat(70_000),
      '<a@b.invalid>,'.repeat(2000),
      Array.from({ length: 1500 }, (_, n) => `a${n}@there.invalid`),
      Array.from({ length: 20_000 }, () => 0),
      Object.fromEntries(Array.from({ length: 3000 }, (_, n) => [`k${n}`, 'v'])),
      nested(100),
      nested(2000),
    ),
  },
);

/** `put` replaces what is there, `add` is a further member, and without either what is there is left out. */
interface Change {
  put?: unknown;
  add?: [name: string, value: unknown];
}

const change: fc.Arbitrary<Change> = fc.oneof(
  { weight: 6, arbitrary: hostile.map((put) => ({ put })) },
  { weight: 2, arbitrary: fc.constant({}) },
  { weight: 1, arbitrary: fc.tuple(nasty, hostile).map((add) => ({ add })) },
);

function brokenMembers(good: GoodRequest): fc.Arbitrary<Wire> {
  const places = placesIn(good.json);
  const changes = fc.array(fc.tuple(fc.constantFrom(...places), change), { minLength: 1, maxLength: 2 });
  return changes.map((list) => {
    const json = list.reduce<unknown>((value, [place, made]) => changed(value, place, made), good.json);
    // Without a replacer it would be undefined, which is not JSON, if the whole was left out.
    return { ...wireOf({ ...good, json: 0 }), body: Buffer.from(JSON.stringify(json) ?? '') };
  });
}

/** The paths of the value and of all inside it. */
function placesIn(value: unknown, at: string[] = []): string[][] {
  if (typeof value !== 'object' || value === null) return [at];
  return [at, ...Object.entries(value).flatMap(([name, inner]) => placesIn(inner, [...at, name]))];
}

function changed(value: unknown, [first, ...rest]: string[], made: Change): unknown {
  const isObject = typeof value === 'object' && value !== null;
  if (first === undefined) {
    if (!made.add) return made.put;
    return isObject ? rebuilt(value, [...Object.entries(value), made.add]) : made.add[1];
  }
  if (!isObject) return value;
  const isLeftOut = rest.length === 0 && !('put' in made) && !made.add;
  const entries = Object.entries(value).flatMap(([name, inner]): [string, unknown][] => {
    if (name !== first) return [[name, inner]];
    return isLeftOut ? [] : [[name, changed(inner, rest, made)]];
  });
  return rebuilt(value, entries);
}

/** Not by assignment, which would take `__proto__` for the prototype. */
function rebuilt(value: object, entries: [string, unknown][]): unknown {
  return Array.isArray(value) ? entries.map(([, inner]) => inner) : Object.fromEntries(entries);
}

function brokenForm(good: GoodRequest): fc.Arbitrary<Wire> {
  const form = good.form!;
  const huge = fc.constantFrom('x'.repeat(1000), 'é'.repeat(70_000), 'a@b.invalid,'.repeat(1500));
  const text = fc.oneof({ weight: 8, arbitrary: nasty }, { weight: 1, arbitrary: huge });
  const one = fc.record({
    at: fc.nat(form.length - 1),
    how: fc.constantFrom('value', 'name', 'leave out', 'repeat', 'file', 'many'),
    text,
  });
  const list = fc.array(one, { minLength: 1, maxLength: 2 });
  const isEncoded = form.some(([, value]) => typeof value !== 'string') ? fc.constant(false) : fc.boolean();
  return fc.tuple(list, isEncoded).map(([changes, encoded]) => {
    const fields = changes.reduce(
      (kept, { at, how, text: given }) =>
        kept.flatMap((field, n) => (n === at ? changedField(field, how, given) : [field])),
      form,
    );
    const isText = fields.every(([, value]) => typeof value === 'string');
    const { type, body } = encoded && isText ? urlEncoded(fields as [string, string][]) : multipart(fields);
    const wire = wireOf(good);
    return { ...wire, headers: { ...wire.headers, 'content-type': type }, body };
  });
}

type Field = NonNullable<GoodRequest['form']>[number];

function changedField([name, value]: Field, how: string, text: string): Field[] {
  switch (how) {
    case 'value':
      return [[name, text]];
    case 'name':
      return [[text, value]];
    case 'leave out':
      return [];
    case 'repeat':
      return [value, text].map((one): Field => [name, one]);
    case 'file':
      return [[name, { filename: text, content: text, type: text.slice(0, 100) }]];
    default:
      return Array.from({ length: 1200 }, (_, n): Field => [name, `${text.slice(0, 40)}${n}`]);
  }
}

function urlEncoded(fields: [string, string][]) {
  const body = fields
    .map((pair) => pair.map((text) => encodeURIComponent(text.toWellFormed())).join('='))
    .join('&');
  return { type: 'application/x-www-form-urlencoded', body: Buffer.from(body) };
}

const boundary = 'broken-boundary';

/** By hand, because names and values are to be broken as they are. */
function multipart(fields: Field[]) {
  const parts = fields.map(([name, value]) => {
    const isText = typeof value === 'string';
    const file = isText ? '' : `; filename="${value.filename}"`;
    const type = isText || !value.type ? '' : `\r\nContent-Type: ${value.type}`;
    const head = `--${boundary}\r\nContent-Disposition: form-data; name="${name}"${file}${type}`;
    return `${head}\r\n\r\n${isText ? value : value.content}\r\n`;
  });
  return {
    type: `multipart/form-data; boundary=${boundary}`,
    body: Buffer.from(`${parts.join('')}--${boundary}--\r\n`),
  };
}

/** In UTF-8: cut short, an encoded surrogate, overlong, a byte order mark; and what breaks strings, lines and structure. */
const strayBytes = 'ff c3 eda080 c080 efbbbf 00 0d0a 22 7d 2c 5c'
  .split(' ')
  .map((hex) => Buffer.from(hex, 'hex'));

const otherBodies = column('dialects/other-bodies').map((text) => Buffer.from(text));

function brokenBytes(wire: Wire): fc.Arbitrary<Wire> {
  const body = wire.body!;
  const at = fc.nat(body.length);
  const bytes = fc.oneof(
    { weight: 4, arbitrary: at.map((end) => body.subarray(0, end)) },
    {
      weight: 4,
      arbitrary: fc
        .tuple(at, fc.constantFrom(...strayBytes))
        .map(([n, stray]) => Buffer.concat([body.subarray(0, n), stray, body.subarray(n)])),
    },
    { weight: 3, arbitrary: fc.constantFrom(...otherBodies) },
    { weight: 1, arbitrary: fc.uint8Array({ maxLength: 300 }).map((list) => Buffer.from(list)) },
    {
      weight: 1,
      arbitrary: fc.constantFrom(
        gzipSync(body),
        Buffer.from(body.toString(), 'utf16le'),
        Buffer.concat([body, body]),
      ),
    },
  );
  return fc.tuple(bytes, fc.boolean()).map(([made, isChunked]) => ({ ...wire, body: made, isChunked }));
}

const headerChanges: Record<string, string | undefined>[] = [
  undefined,
  ...column('dialects/odd-content-types'),
].map((type) => ({ 'content-type': type }));

const otherHeaders: Record<string, string>[] = [
  { 'content-encoding': 'gzip' },
  { 'idempotency-key': 'x'.repeat(256) },
  { 'idempotency-key': 'é\xff', 'content-type': 'x' },
  { accept: 'text/html', 'content-type': 'text/html' },
  { 'x-request-id': ' '.repeat(10), 'content-type': '/' },
];

function brokenHeaders(wire: Wire): fc.Arbitrary<Wire> {
  return fc
    .constantFrom(...headerChanges, ...otherHeaders)
    .map((headers) => ({ ...wire, headers: { ...wire.headers, ...headers } }));
}

const oddSegments = column('dialects/odd-segments');

/** Another method; or a segment or a value of the query that is something else. */
function brokenPath(wire: Wire): fc.Arbitrary<Wire> {
  const [path, query] = wire.path.split('?') as [string, string | undefined];
  const segments = path.slice(1).split('/');
  const pairs = [...new URLSearchParams(query)];
  const encoded = nasty.map((text) => encodeURIComponent(text.toWellFormed()));
  const odd = fc.oneof(fc.constantFrom(...oddSegments), encoded);
  const withQuery = (list: string[]) => (list.length > 0 ? `${path}?${list.join('&')}` : path);
  const options = [
    fc
      .constantFrom('GET', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS')
      .map((method) => ({ ...wire, method })),
    fc
      .tuple(fc.nat(segments.length), odd)
      .map(([at, text]) => ({ ...wire, path: `/${segments.toSpliced(at, 1, text).join('/')}` })),
    fc.tuple(fc.nat(pairs.length), odd).map(([at, text]) => {
      const list = pairs.map(([name, value], n) => `${name}=${n === at ? text : encodeURIComponent(value)}`);
      return { ...wire, path: withQuery(at < pairs.length ? list : [...list, `limit=${text}`]) };
    }),
  ];
  return fc.oneof(...options);
}
