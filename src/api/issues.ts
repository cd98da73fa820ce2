/**
 * zod's findings as the contract words them (docs/api.md section 2.5): all five members, all strings. `expected`
 * and `received` say what would be right and what was there, whatever kind of finding it is.
 */
import type { z } from 'zod';
import type { Issue } from '../mail/refusal.ts';

/** Nobody mends more at a time. */
const maxIssues = 100;

export function toIssues(error: z.ZodError, input: unknown): Issue[] {
  return error.issues.slice(0, maxIssues).map((issue) => {
    const path = pathIn(input, issue.path.map(String));
    // A key that is no key: what is wrong with it is told inside, and it is itself what was received.
    const told = issue.code === 'invalid_key' ? (issue.issues[0] ?? issue) : issue;
    const value = issue.code === 'invalid_key' ? path.at(-1) : valueAt(input, path);
    return {
      code: issue.code,
      expected: cut(expectation(told)),
      received: (issue.code === 'invalid_type' ? typeOf : described)(value),
      path: path.map(cut),
      message: `${path.map(cut).join('.') || 'body'}: ${cut(told.message)}`,
    };
  });
}

/** The name of a tag or a header may have come with 20 MB, and is in its path and in what is said of it. */
const longestText = 500;

function cut(text: string): string {
  return text.length > longestText ? `${text.slice(0, longestText)}…` : text;
}

/** A single recipient is read as a list of one; the caller gave no index. */
function pathIn(input: unknown, path: string[]): string[] {
  const isSingle = path[0] === 'to' && typeof valueAt(input, ['to']) === 'string';
  return isSingle ? ['to'] : path;
}

function expectation(issue: z.core.$ZodIssue): string {
  switch (issue.code) {
    case 'invalid_type':
      return issue.expected;
    case 'too_big':
      return `at most ${issue.maximum} ${unit(issue.origin)}`;
    case 'too_small':
      return `at least ${issue.minimum} ${unit(issue.origin)}`;
    case 'custom':
      return String(issue.params?.expected ?? issue.message);
    default:
      return issue.message;
  }
}

function unit(origin: string): string {
  return origin === 'array' ? 'elements' : 'characters';
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

/** The type in JSON's words; what is absent is undefined. */
function typeOf(value: unknown): string {
  if (value === null) return 'null';
  return Array.isArray(value) ? 'array' : typeof value;
}
