/**
 * A route declares, beside its path, the body that it reads: how large it may be, and how many members, elements, levels,
 * fields and bytes of text it may have. request-body.ts counts all of it while the bytes arrive, before anything parses them,
 * so that no code that looks into a body meets more than its route declares. A route that could have a body and declares
 * neither limits nor `noBody` stops the start.
 */
import { Refusal } from '#platform/values/refusal.ts';
import { JsonCounter, type JsonLimits, type Place } from './json-counter.ts';

const kilobyte = 1024;
const megabyte = 1024 * kilobyte;

/** The maximum size of a send, in bytes. */
export const largestBody = 20 * megabyte;
/** HTML or text of 2 MiB (front/api/send/schema.ts), in which JSON can write each byte as six. */
export const largestContent = 12 * megabyte;
/** Longer than a list of a thousand addresses; in JSON, as it is written there. */
const longestText = 256 * kilobyte;
/** JSON.stringify, for one, calls itself at each level, and overflows the stack at some thousands. */
const maxDepth = 100;

/** Members are named by their paths, such as `attachments.*.content`; `*` is any element or member, and `` the body itself. */
interface JsonDeclaration {
  /** In bytes. */
  largest: number;
  /** Members and elements in total. Bytes in a list (`bytes`) count as a 64th. */
  members: number;
  /** Maximum number of elements of a list, or of members of an object, where that is less than `members`. */
  lists?: Record<string, number>;
  /** Maximum length of a text, in bytes of JSON; 256 KiB unless it is given. */
  text?: number;
  /** The limit of texts that may be longer. */
  texts?: Record<string, number>;
  /** Lists that can be the bytes of a file. */
  bytes?: readonly string[];
  /** Names of members are the same in any letter case. */
  anyCase?: boolean;
}

export interface JsonBody {
  kind: 'json';
  largest: number;
  limits: JsonLimits;
}

export function jsonBody({ largest, ...declared }: JsonDeclaration): JsonBody {
  return { kind: 'json', largest, limits: jsonLimits(declared) };
}

export function jsonLimits(declared: Omit<JsonDeclaration, 'largest'>): JsonLimits {
  const { members, lists = {}, text = longestText, texts = {}, bytes = [], anyCase = false } = declared;
  const root = newPlace('', text);
  const countedName = (name: string) => (anyCase ? name.toLowerCase() : name);
  const at = (path: string) => placeAt(root, path, countedName, text);
  for (const [path, max] of Object.entries(lists)) at(path).max = max;
  for (const [path, max] of Object.entries(texts)) at(path).text = max;
  for (const path of bytes) at(path).isBytes = true;
  return { members, depth: maxDepth, text, root, anyCase };
}

/** The same members, each below `prefix`: those of the elements of a list, for instance. */
export function below<Of>(prefix: string, members: Record<string, Of>): Record<string, Of> {
  return Object.fromEntries(Object.entries(members).map(([path, of]) => [`${prefix}.${path}`, of]));
}

function newPlace(path: string, text: number): Place {
  return { path, max: Number.POSITIVE_INFINITY, text, isBytes: false, named: null, any: null };
}

function placeAt(root: Place, path: string, countedName: (name: string) => string, text: number): Place {
  let place = root;
  for (const name of path === '' ? [] : path.split('.')) {
    const next = () => newPlace(place.path === '' ? name : `${place.path}.${name}`, text);
    if (name === '*') {
      place.any ??= next();
      place = place.any;
      continue;
    }
    place.named ??= new Map();
    const key = countedName(name);
    if (!place.named.has(key)) place.named.set(key, next());
    place = place.named.get(key)!;
  }
  return place;
}

/** multipart/form-data (RFC 7578) and application/x-www-form-urlencoded. */
export interface FormBody {
  kind: 'form';
  largest: number;
  fields: number;
  files: number;
  /** Maximum length of fields that may be longer than 256 KiB, in characters. */
  texts: Record<string, number>;
  /** Maximum length of any other field. */
  text: number;
}

export function formBody(
  declared: Pick<FormBody, 'largest' | 'fields'> & Partial<Pick<FormBody, 'files' | 'texts'>>,
): FormBody {
  return { kind: 'form', files: 0, texts: {}, text: longestText, ...declared };
}

export interface CsvBody {
  kind: 'csv';
  largest: number;
}

export function csvBody(largest: number): CsvBody {
  return { kind: 'csv', largest };
}

/** The client chooses by its Content-Type. */
export interface JsonOrForm {
  kind: 'json or form';
  json: JsonBody;
  form: FormBody;
}

export function jsonOrForm(json: JsonBody, form: FormBody): JsonOrForm {
  return { kind: 'json or form', json, form };
}

/** The route does not read its body, whatever a client sends. */
export interface NoBody {
  kind: 'none';
}

export const noBody: NoBody = { kind: 'none' };

/** The body of endpoints that manage something. */
export const smallJson = jsonBody({ largest: 64 * kilobyte, members: 10_000 });

/** A form of the dashboard, unless its page says otherwise. */
export const smallForm = formBody({ largest: 64 * kilobyte, fields: 1_000 });

const withBody = /^(POST|PUT|PATCH|DELETE) /;
const kinds: unknown[] = ['json', 'form', 'csv', 'json or form', 'none'];

/** `route`: the method and the path. */
export function requireDeclaration(route: string, body: { kind: string } | undefined): void {
  if (!withBody.test(route) || (body !== undefined && kinds.includes(body.kind))) return;
  throw new Error(
    `${route}: the route declares no limits of its body. Give it jsonBody, formBody or csvBody with limits, or noBody (front/http/body-limits.ts).`,
  );
}

const ampersand = 0x26;

/** Counts the fields of an urlencoded form while it arrives. */
export function fieldCounter({ fields }: FormBody): (chunk: Buffer) => void {
  let count = 1;
  return (chunk) => {
    for (let at = chunk.indexOf(ampersand); at >= 0; at = chunk.indexOf(ampersand, at + 1)) {
      count += 1;
      if (count > fields) throw new Refusal('BAD_REQUEST', `The form has more than ${fields} fields.`);
    }
  };
}

/** Limits for JSON that does not come as a body: in a field of a form or of a header. */
export function countJson(text: string, limits: JsonLimits, what: string): void {
  new JsonCounter(limits, { what }).check(Buffer.from(text));
}
