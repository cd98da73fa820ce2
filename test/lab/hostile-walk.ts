/**
 * A walk over every route of a running server, with what is cheap to send and can be dear to read: as each member of each body,
 * each field of each form, in paths, queries and headers. The routes and the members of their bodies come from the tables that
 * the server itself is made of, so that a route that is added later is walked, too. `npm test` walks with little, and
 * scripts/attacks.ts with 6 MB.
 */
import { readFileSync } from 'node:fs';
import { crc32 } from 'node:zlib';
import { z } from 'zod';
import { endpoints } from '#front/api/all-endpoints.ts';
import { parseRoute } from '#front/api/endpoint.ts';
import { documentOf } from '#front/api/openapi/openapi-document.ts';
import { examplesOf, readExamples } from '#front/api/openapi/recorded-examples.ts';
import { referenceRoutes } from '#front/api/reference-page.ts';
import { accessTable } from '#front/dashboard/security/route-access.ts';
import { dialectsNamed } from '#front/dialects/all-dialects.ts';
import type { FormBody, JsonBody } from '#front/http/body-limits.ts';
import type { Place } from '#front/http/json-counter.ts';
import { createTracking, type TrackingParts } from '#mail/record/tracking/routes.ts';
import { probePaths } from '#operate/probes.ts';
import { dialectNames } from '#platform/values/glossary.ts';
import type { Question } from './ask.ts';

/** Bodies that are taken, for routes whose members no table has. A form is an object of its fields. */
const callExamples: Record<string, unknown> = JSON.parse(
  readFileSync(new URL('../fixtures/call-examples.json', import.meta.url), 'utf8'),
);

type Body = { kind: 'json'; json: JsonBody } | { kind: 'form'; form: FormBody } | { kind: 'csv' };

export interface WalkedRoute {
  service: string;
  method: string;
  /** With the parameters as the router has them. */
  path: string;
  bodies: Body[];
  /** A body that is taken; `schema` is that of the whole. */
  example: unknown;
  schema: z.ZodType | null;
}

/** Walked last: after it the dashboard's pages would be those of a stranger. */
const endsSession = /sign-out|sessions\/end$/;

export function routesOfServer(): WalkedRoute[] {
  const plain = { bodies: [], example: undefined, schema: null };
  const recorded = readExamples();
  const own = endpoints.map(({ route, operationId, body }): WalkedRoute => {
    const { method, path } = parseRoute(route);
    const whole = { service: 'api', method: method.toUpperCase(), path: `/api/public${path}` };
    if (!body || !('limits' in body)) return { ...whole, ...plain };
    if (body.limits.kind === 'csv') return { ...whole, ...plain, bodies: [{ kind: 'csv' }] };
    const examples = examplesOf(recorded, `${operationId} request application/json`);
    const schema = body.content['application/json']!;
    const example = callExamples[route] ?? Object.values(examples ?? {})[0]?.value;
    return { ...whole, bodies: [{ kind: 'json', json: body.limits }], example, schema };
  });
  const dialects = dialectsNamed(dialectNames).flatMap(({ name, routes, openRoutes = [] }) => [
    ...routes.map(({ route, body }): WalkedRoute => {
      const [method, path] = route.split(' ') as [string, string];
      const whole = { service: name, method, path: `/compat/${name}${path}` };
      const bodies: Body[] = [];
      if (body?.kind === 'json') bodies.push({ kind: 'json', json: body });
      if (body?.kind === 'form') bodies.push({ kind: 'form', form: body });
      if (body?.kind === 'json or form')
        bodies.push({ kind: 'json', json: body.json }, { kind: 'form', form: body.form });
      return { ...whole, ...plain, bodies, example: callExamples[`${name} ${route}`] };
    }),
    ...openRoutes.map(
      ({ path }): WalkedRoute => ({ service: name, method: 'GET', path: `/compat/${name}${path}`, ...plain }),
    ),
  ]);
  const dashboard = accessTable()
    .map(({ method, path }): WalkedRoute => ({ service: 'dashboard', method, path, ...plain }))
    .sort((a, b) => Number(endsSession.test(a.path)) - Number(endsSession.test(b.path)));
  const others = [createTracking({} as TrackingParts).router, referenceRoutes(documentOf(() => ''))].flatMap(
    (router) =>
      router.stack.map(
        ({ path }): WalkedRoute => ({ service: 'pages', method: 'GET', path: String(path), ...plain }),
      ),
  );
  const operations = probePaths.map(
    (path): WalkedRoute => ({ service: 'operations', method: 'GET', path, ...plain }),
  );
  return [...own, ...dialects, ...dashboard, ...others, ...operations];
}

/** The members of a body, as paths such as `attachments.*.content`. */
export function membersOf({ schema, example }: WalkedRoute, { limits }: JsonBody): string[] {
  const found = new Set<string>();
  const add = (at: string[]) => at.length > 0 && found.add(at.join('.'));
  const inPlace = (place: Place, at: string[]) => {
    add(at);
    for (const [name, one] of place.named ?? []) inPlace(one, [...at, one.path.split('.').at(-1) ?? name]);
    if (place.any) inPlace(place.any, [...at, '*']);
  };
  const inExample = (value: unknown, at: string[]) => {
    add(at);
    if (typeof value !== 'object' || value === null) return;
    if (Array.isArray(value)) for (const one of value.slice(0, 1)) inExample(one, [...at, '*']);
    else for (const [name, one] of Object.entries(value)) inExample(one, [...at, name]);
  };
  // biome-ignore lint/suspicious/noExplicitAny: a JSON schema
  const inSchema = (node: any, at: string[]) => {
    add(at);
    for (const one of [...(node.anyOf ?? []), ...(node.oneOf ?? []), ...(node.allOf ?? [])])
      inSchema(one, at);
    for (const [name, one] of Object.entries(node.properties ?? {})) inSchema(one, [...at, name]);
    if (node.items) inSchema(node.items, [...at, '*']);
  };
  inPlace(limits.root, []);
  inExample(example, []);
  if (schema) inSchema(z.toJSONSchema(schema, { io: 'input', unrepresentable: 'any' }), []);
  return [...found];
}

/** Each makes JSON of about so many bytes. */
const hostileJson: Record<string, (bytes: number) => string> = {
  numbers: (bytes) => `[${'1,'.repeat(bytes / 2)}1]`,
  objects: (bytes) => `[${'{},'.repeat(bytes / 3)}{}]`,
  texts: (bytes) => `[${'"a",'.repeat(bytes / 4)}"a"]`,
  members: (bytes) => `{${Array.from({ length: bytes / 9 }, (_, n) => `"k${n}":1,`).join('')}"k":1}`,
  'nested lists': (bytes) => '['.repeat(bytes / 2) + ']'.repeat(bytes / 2),
  'white space': (bytes) => `${' '.repeat(bytes)}1`,
  'one text': (bytes) => `"${'a'.repeat(bytes)}"`,
  'encoded words': (bytes) => `"${'=?utf-8?B?YQ==?='.repeat(bytes / 16)}"`,
  variables: (bytes) => `"${'%recipient.a%'.repeat(bytes / 13)}"`,
};

/** A text of these, again and again, nearly matches something at each position. */
const nearly = [
  ...[
    ' ',
    '\t',
    '(',
    '<',
    '"',
    '\\',
    '@',
    'a@',
    'a,',
    ',',
    '.',
    ';',
    '=',
    '=?',
    '=?utf-8?b?',
    '&',
    '&#',
    ':',
  ],
  ...[
    '<a ',
    '<a href="',
    '<!--',
    '</',
    'cid:',
    '%recipient.',
    '{{',
    '-',
    'http://a',
    'a.',
    '.exe',
    'é',
    '\u{1F600}',
  ],
  ...['\r\n', '\r\n.', '\r\n ', 'a=b; ', '[', '*', '<<', '""', "'", '%25', 'xn--'],
];

/** What is put into a place of a body. Each form of it is made once: a walk uses it thousands of times. */
export class Hostile {
  readonly kind: string;
  readonly #make: () => string;
  /** A text that is scanned, and nothing that a parser meets. */
  readonly isNear: boolean;
  #json: Buffer | undefined;
  #text: Buffer | undefined;
  #encoded: Buffer | undefined;

  constructor(kind: string, make: () => string, isNear: boolean) {
    this.kind = kind;
    this.#make = make;
    this.isNear = isNear;
  }

  get json(): Buffer {
    this.#json ??= Buffer.from(this.isNear ? JSON.stringify(this.#make()) : this.#make());
    return this.#json;
  }

  /** For a field: a JSON string without its quotation marks. */
  get text(): Buffer {
    this.#text ??= this.isNear ? Buffer.from(this.#make()) : Buffer.from(this.#make().replace(/^"|"$/g, ''));
    return this.#text;
  }

  get encoded(): Buffer {
    this.#encoded ??= Buffer.from(formOf({ a: this.text.toString() }).slice('a='.length));
    return this.#encoded;
  }
}

const madeKinds = new Map<string, Hostile[]>();

export function kindsOf({ bytes }: Pick<Target, 'bytes'>): Hostile[] {
  const sizes = `${bytes.value} ${bytes.near}`;
  const kinds = madeKinds.get(sizes) ?? [
    ...Object.entries(hostileJson).map(([kind, make]) => new Hostile(kind, () => make(bytes.value), false)),
    ...nearly.map((piece) => {
      const make = () => piece.repeat(bytes.near / Buffer.byteLength(piece));
      return new Hostile(`nearly ${JSON.stringify(piece)}`, make, true);
    }),
  ];
  madeKinds.set(sizes, kinds);
  return kinds;
}

const hole = 'hole-4711';

/** The text with each `at` replaced, in pieces. */
function filled(text: string, value: Buffer, at = hole): Buffer[] {
  const [first, ...others] = text.split(at).map((piece) => Buffer.from(piece));
  return [first!, ...others.flatMap((piece) => [value, piece])];
}

/** The example with another value at a path. */
function withHole(value: unknown, [name, ...rest]: string[]): unknown {
  if (name === undefined) return hole;
  if (name === '*') {
    if (typeof value === 'object' && value !== null && !Array.isArray(value))
      return { k: withHole(undefined, rest) };
    const [first, ...others] = Array.isArray(value) ? value : [];
    return [withHole(first, rest), ...others];
  }
  const members = typeof value === 'object' && value !== null && !Array.isArray(value) ? value : {};
  return { ...members, [name]: withHole((members as Record<string, unknown>)[name], rest) };
}

/** JSON with `hostile` at a path; at '' the whole is hostile. */
function jsonWith(example: unknown, path: string, hostile: Buffer): Buffer[] {
  if (path === '') return [hostile];
  const isList = Array.isArray(example) || path.startsWith('*');
  const json = JSON.stringify(withHole(example ?? (isList ? [] : {}), path.split('.')));
  return filled(json, hostile, JSON.stringify(hole));
}

/** A path that the router matches. */
export function pathWith(path: string, values: Record<string, string>, fallback: string): string {
  return path
    .replace(/\{\/\*?\w+\}|\{\/:\w+\}/g, '')
    .replace(/:(\w+)|\{(\w+)\}/g, (_, a, b) => values[a ?? b] ?? fallback);
}

export interface Target {
  url: string;
  key: string;
  /** Of parameters in paths. */
  values: Record<string, string>;
  /** Of a hostile value, and of a text that nearly matches. */
  bytes: { value: number; near: number };
  /** The headers of somebody who is signed in to the dashboard, and a token for forms. */
  signedIn: { cookie: string; csrf: string };
  /** Those of the dashboard's forms, by the paths that they go to. */
  forms: Map<string, string[]>;
  /**
   * One of so many trials with texts that nearly match, and with paths, queries and headers (`isRare`), is made; always the
   * same ones.
   */
  oneOf: number;
}

export interface Trial {
  what: string;
  url: string;
  question: Question;
  isRare: boolean;
}

/** Each route gets its first trial, and each body those that are the whole of it. */
export function* trialsOf(route: WalkedRoute, target: Target): Generator<Trial> {
  let isFirst = true;
  for (const one of allTrialsOf(route, target)) {
    const oneOf = one.isRare ? target.oneOf : Math.ceil(target.oneOf / commonShare);
    const isWhole = !one.isRare && one.what.endsWith('as the body');
    if (isFirst || isWhole || crc32(one.what) % oneOf === 0) yield one;
    isFirst = false;
  }
}

/** Trials that are not rare are made so many times as often. */
const commonShare = 6;

/** A route of each method gets them in its path, its query and its headers, too. */
function* allTrialsOf(route: WalkedRoute, target: Target): Generator<Trial> {
  const { method, path, service } = route;
  const headers = headersFor(service, target);
  const url = target.url + pathWith(path, target.values, target.values.id!);
  const ask: Ask = (what, type, content) => {
    const body = typeof content === 'string' ? [Buffer.from(content)] : content;
    const length = body.reduce((sum, piece) => sum + piece.length, 0);
    const own = { ...headers, 'content-type': type, 'content-length': length };
    const question = { method, body, headers: own };
    return {
      what: `${method} ${path} ${what}`,
      url,
      question,
      isRare: what.startsWith('nearly') || (service === 'dashboard' && !what.endsWith('as each field')),
    };
  };
  for (const body of route.bodies) {
    if (body.kind === 'json') yield* jsonTrials(route, body.json, target, ask);
    if (body.kind === 'form') yield* formTrials(route, target, ask);
    if (body.kind === 'csv')
      for (const { kind, text } of kindsOf(target)) yield ask(kind, 'text/csv', [text]);
  }
  if (service === 'dashboard' && method === 'POST') yield* pageTrials(url, target, ask);
  yield* frameTrials(route, target, headers);
}

/** A form of a page has 64 KiB, if it is not for something large. */
const pageBytes = { value: 20_000, near: 20_000 };

function* pageTrials(url: string, target: Target, ask: Ask): Generator<Trial> {
  const _csrf = target.signedIn.csrf;
  const fields = target.forms.get(new URL(url).pathname) ?? [...new Set([...target.forms.values()].flat())];
  const bytes = fields.some((field) => largeFields.includes(field)) ? target.bytes : pageBytes;
  for (const { kind, encoded } of kindsOf({ bytes })) {
    for (const field of fields.length > 20 ? [] : fields)
      yield ask(`${kind} as ${field}`, urlencoded, filled(formOf({ _csrf, [field]: hole }), encoded));
  }
  const all = Object.fromEntries(fields.map((field) => [field, hole]));
  for (const { kind, encoded } of kindsOf({ bytes: { value: 500, near: 500 } }))
    yield ask(`${kind} as each field`, urlencoded, filled(formOf({ ...all, _csrf }), encoded));
  yield ask('many fields', urlencoded, 'a=&'.repeat(bytes.value / 3));
}

/** Of the forms that take megabytes. */
const largeFields = ['text', 'html', 'addresses'];

type Ask = (what: string, type: string, content: string | Buffer[]) => Trial;
const urlencoded = 'application/x-www-form-urlencoded';

function* jsonTrials(route: WalkedRoute, limits: JsonBody, { bytes }: Target, ask: Ask): Generator<Trial> {
  const type = 'application/json';
  // An empty path is the body itself.
  const paths = [
    '',
    ...membersOf(route, limits),
    ...(Array.isArray(route.example) ? ['*.unknown'] : ['unknown']),
  ];
  for (const path of paths) {
    for (const { kind, json } of kindsOf({ bytes }))
      yield ask(`${kind} as ${path || 'the body'}`, type, jsonWith(route.example, path, json));
  }
  yield ask('a name without end', type, `{"${'a'.repeat(bytes.value)}":1}`);
  yield ask(
    'white space around',
    type,
    `${' '.repeat(bytes.value / 2)}${JSON.stringify(route.example ?? {})}`,
  );
}

function* formTrials(route: WalkedRoute, { bytes }: Target, ask: Ask): Generator<Trial> {
  const example = (route.example ?? {}) as Record<string, string>;
  for (const field of [...Object.keys(example), 'unknown']) {
    const fields = { ...example, [field]: hole };
    for (const { kind, encoded, text } of kindsOf({ bytes })) {
      yield ask(`${kind} as the field ${field}`, urlencoded, filled(formOf(fields), encoded));
      yield ask(`${kind} as the part ${field}`, multipartType, filled(multipart(fields), text));
    }
  }
  for (const field of Object.keys(example))
    yield ask(
      `bare line ends as the part ${field}`,
      multipartType,
      filled(multipart({ ...example, [field]: hole }), Buffer.alloc(bytes.value, '\n')),
    );
  for (const name of ['a', 'to', 'o:tag', 'h:X-A'])
    yield ask(`many fields ${name}`, urlencoded, `${name}=&`.repeat(bytes.value / (name.length + 2)));
  const part = `--${boundary}\r\nContent-Disposition: form-data; name="to"\r\n\r\n\r\n`;
  yield ask('many parts', multipartType, part.repeat(bytes.value / part.length));
  const long = `--${boundary}\r\n${'X-A: b\r\n'.repeat(bytes.value / 8)}\r\n\r\n--${boundary}--\r\n`;
  yield ask('a part with a long header', multipartType, long);
  yield ask('a part without an end', multipartType, `--${boundary}\r\n${'a'.repeat(bytes.value)}`);
  yield ask(
    'nearly a boundary',
    multipartType,
    `\r\n--${boundary.slice(0, -1)}`.repeat(bytes.near / boundary.length),
  );
}

const boundary = 'walk-4711';
const multipartType = `multipart/form-data; boundary=${boundary}`;

function formOf(fields: Record<string, string>): string {
  return new URLSearchParams(fields).toString();
}

/** The message, and attachments, are files. */
function multipart(fields: Record<string, string>): string {
  const parts = Object.entries(fields).map(([name, value]) => {
    const file = name === 'message' ? '; filename="m.eml"' : '';
    return `--${boundary}\r\nContent-Disposition: form-data; name="${name}"${file}\r\n\r\n${value}\r\n`;
  });
  return `${parts.join('')}--${boundary}--\r\n`;
}

/** HTTP itself bounds these at 16 KB together. */
const headerBytes = 12_000;

function* frameTrials(route: WalkedRoute, target: Target, headers: Record<string, string>): Generator<Trial> {
  const { method, path } = route;
  const whole = pathWith(path, target.values, target.values.id!);
  const trial = (what: string, to: string, more: Record<string, string> = {}): Trial => ({
    what: `${method} ${path} ${what}`,
    url: target.url + to,
    question: { method, headers: { ...headers, ...more } },
    isRare: true,
  });
  for (const piece of ['a', '%2F', '%25', '=?', 'a@', '.', '%C3%A9', '-'])
    if (/[:{]/.test(path)) {
      const text = piece.repeat(headerBytes / piece.length / 2);
      yield trial(`${piece} in the path`, pathWith(path, { org: target.values.org! }, text));
    }
  yield trial('slashes', `${'/'.repeat(headerBytes)}${whole}`);
  for (const piece of ['a&', 'a=&', 'a[]=1&', '%25&', 'a=1%26', 'limit=1&', 'after=x&'])
    yield trial(`${piece} in the query`, `${whole}?${piece.repeat(headerBytes / piece.length)}`);
  for (const piece of ['a', ' ', 'a=b; ', '=', ',', 'gzip,', '=?utf-8?B?YQ==?='])
    for (const name of [
      'cookie',
      'authorization',
      'idempotency-key',
      'accept-encoding',
      'x-forwarded-for',
      'content-type',
    ])
      yield trial(`${piece} as ${name}`, whole, { [name]: piece.repeat(headerBytes / piece.length) });
}

function headersFor(service: string, { key, signedIn }: Target): Record<string, string> {
  if (service === 'postmark') return { 'x-postmark-server-token': key };
  if (service === 'mailgun')
    return { authorization: `Basic ${Buffer.from(`api:${key}`).toString('base64')}` };
  if (service === 'dashboard') return { cookie: signedIn.cookie };
  return { authorization: `Bearer ${key}` };
}
