/**
 * Converts zod's issues to those of the contract (docs/api.md section 2.5): always five members, all strings.
 * `expected` and `received` are filled in for every kind of issue.
 */
import type { z } from 'zod';
import { cutForJson } from '#platform/base/sanitize.ts';
import { recipientKinds } from '#platform/values/glossary.ts';
import { errorBody, type Issue, Refusal } from '#platform/values/refusal.ts';

/** More issues would not help a person to correct the request. */
export const maxIssues = 100;

/** The value as its schema reads it. Every violation is an issue of the refusal. */
export function checked<Schema extends z.ZodType>(
  schema: Schema,
  value: unknown,
  message = 'The request is not valid.',
): z.output<Schema> {
  const parsed = schema.safeParse(value);
  if (parsed.success) return parsed.data;
  throw new Refusal('VALIDATION_ERROR', message, { issues: toIssues(parsed.error, value) });
}

export function toIssues(error: z.ZodError, input: unknown): Issue[] {
  return error.issues.slice(0, maxIssues).map((issue) => {
    const path = pathIn(input, issue.path.map(String));
    // If a key is invalid, the reason is in the inner issue, and the received value is the key itself.
    const inner = issue.code === 'invalid_key' ? (issue.issues[0] ?? issue) : issue;
    const value = issue.code === 'invalid_key' ? path.at(-1) : valueAt(input, path);
    return {
      code: issue.code,
      expected: cut(expectation(inner)),
      received: (issue.code === 'invalid_type' ? typeOf : described)(value),
      path: path.map(cut),
      message: `${path.map(cut).join('.') || 'body'}: ${cut(sentence(inner, value))}`,
    };
  });
}

/** The issues of a batch together, in bytes of JSON. */
const maxInBatch = 40_000;

/**
 * The error of one of `elements` that are answered together, with the first of its issues. The first of all is always there,
 * with shorter texts if need be.
 */
export function errorInBatch(refusal: Refusal, elements: number): ReturnType<typeof errorBody> {
  const max = Math.floor(maxInBatch / elements);
  const { message, issues, ...error } = errorBody(refusal);
  const short = (text: string) => cutForJson(text, max / 4);
  let left = max;
  const kept = issues.filter((issue) => {
    left -= Buffer.byteLength(JSON.stringify(issue));
    return left >= 0;
  });
  const [first] = kept.length > 0 ? [] : issues;
  const shortened = first && {
    ...first,
    expected: short(first.expected),
    path: first.path.map(short),
    message: short(first.message),
  };
  return { ...error, message: cutForJson(message, max), issues: shortened ? [shortened] : kept };
}

/** In bytes of JSON. A name of a tag or header can be long, and would be repeated in the path and in the message. */
const maxText = 500;
const cut = (text: string) => cutForJson(text, maxText);

/** A single recipient is parsed as a list of one, but the caller gave no index. */
function pathIn(input: unknown, path: string[]): string[] {
  const [list = ''] = path;
  const isSingle = recipientKinds.some((kind) => kind === list) && typeof valueAt(input, [list]) === 'string';
  return isSingle ? [list] : path;
}

const zodsWords = /^(Invalid input: expected|Too small:|Too big:)/;

/** The message of a schema, or what zod says of types and lengths in the words of our own rules. */
function sentence(issue: z.core.$ZodIssue, value: unknown): string {
  if (!zodsWords.test(issue.message)) return issue.message;
  const expected = expectation(issue);
  if (issue.code !== 'invalid_type') return `must ${isNumeric(issue) ? 'be' : 'have'} ${expected}`;
  if (value === undefined) return 'is required';
  return `must be ${/^[aio]/.test(expected) ? 'an' : 'a'} ${expected}, not ${typeOf(value)}${cureOf(expected, value)}`;
}

const maxQuoted = 40;

/** How the value would be right, if what was meant is plain. */
function cureOf(expected: string, value: unknown): string {
  const given = typeOf(value);
  const meant = given === 'object' ? textMeantBy(value as Record<string, unknown>) : null;
  if (meant !== null && (expected === 'string' || expected === 'array')) return `; write ${meant}`;
  // An object of JSON can have a toString that is no function, and a list can be long.
  const text = typeof value === 'object' ? '' : String(value).slice(0, maxQuoted);
  const cures: Record<string, string> = {
    'array object': 'write it in brackets: [{…}]',
    'array string': 'write it in brackets: ["…"]',
    'object array': 'write an object: {"name": "value"}',
    'string number': `write it in quotes: "${text}"`,
    'string boolean': `write it in quotes: "${text}"`,
    'string array': 'write one, without brackets: "…"',
    'boolean string': 'write true or false, without quotes',
    'number string': 'write a number, without quotes',
  };
  const cure = cures[`${expected} ${given}`];
  return cure === undefined ? '' : `; ${cure}`;
}

/** Values that other services and Node's JSON write as an object and this API as a text: an address, and bytes. */
function textMeantBy({ email, address, type }: Record<string, unknown>): string | null {
  const given = email ?? address;
  if (typeof given === 'string') return `the address alone, in quotes: "${given.slice(0, maxQuoted)}"`;
  return type === 'Buffer' ? 'the bytes in base64, as buffer.toString("base64") does' : null;
}

function expectation(issue: z.core.$ZodIssue): string {
  switch (issue.code) {
    case 'invalid_type':
      return issue.expected === 'record' ? 'object' : issue.expected;
    case 'too_big':
      return `at most ${issue.maximum}${unit(issue)}`;
    case 'too_small':
      return `at least ${issue.minimum}${unit(issue)}`;
    case 'custom':
      return String(issue.params?.expected ?? issue.message);
    default:
      return issue.message;
  }
}

const isNumeric = (issue: z.core.$ZodIssue) =>
  'origin' in issue && ['number', 'int', 'bigint'].includes(issue.origin);

function unit(issue: z.core.$ZodIssueTooBig | z.core.$ZodIssueTooSmall): string {
  if (isNumeric(issue)) return '';
  const noun = issue.origin === 'array' ? 'element' : 'character';
  const count = issue.code === 'too_big' ? issue.maximum : issue.minimum;
  return ` ${noun}${Number(count) === 1 ? '' : 's'}`;
}

function valueAt(input: unknown, path: string[]): unknown {
  return path.reduce<unknown>(
    (value, key) =>
      typeof value === 'object' && value !== null && Object.hasOwn(value, key)
        ? (value as Record<string, unknown>)[key]
        : undefined,
    input,
  );
}

function described(value: unknown): string {
  if (Array.isArray(value)) return `array of ${value.length}`;
  return typeof value === 'string' ? `string of ${value.length} characters` : typeOf(value);
}

/** The JSON type of a value; `undefined` if it is absent. */
export function typeOf(value: unknown): string {
  if (value === null) return 'null';
  return Array.isArray(value) ? 'array' : typeof value;
}
