/**
 * The pattern of a receiving route: which addresses of a domain it takes. Letter case never matters.
 *
 *   orders@x.test           this address, and no other: not orders+1@x.test
 *   orders+*@x.test         one * stands for any characters, or for none
 *   *@x.test, or x.test     every address of the domain
 *   /ticket-[0-9]+/@x.test  an expression in RE2's syntax for the whole local part
 *
 * Expressions are tenants', and every RCPT of a stranger is matched against them on the main thread. RE2 does not backtrack: a
 * match takes at most the length of the address times the steps of the expression, and both are bounded. An organization's
 * expressions share `maxSteps`, at which the worst that were tried took 4 ms of the processor in the median and 35 ms at most,
 * for an address of 250 characters.
 */
import { LRUCache } from 'lru-cache';
import { RE2JS } from 're2js';
import { compareKey, domainOf, toDomain } from '#platform/values/address.ts';
import { hasHidden, trimBlanks, withoutHidden } from '#platform/values/hidden-characters.ts';

/** As an address. */
const maxLength = 254;
/** Steps of compiled expressions; `.{100}` has about a hundred. */
export const maxSteps = 300;
/** A longer local part is taken by no expression; RFC 5321 section 4.5.3.1.1 allows 64 bytes, and reply addresses have more. */
const maxMatched = 128;

export interface RoutePattern {
  /** In canonical form. */
  text: string;
  /** The A-label. */
  domain: string;
  kind: 'address' | 'part' | 'expression' | 'domain';
}

/** The more addresses a pattern takes, the later it is asked, unless its owner gives the route another priority. */
export const defaultPriorities = { address: 100, part: 200, expression: 300, domain: 400 } as const;

const forms =
  'an address (orders@example.com), one with a * (orders+*@example.com), a domain (example.com), or an expression (/[0-9]+/@example.com)';

/** `problem` is a sentence without its full stop. */
export function parsePattern(given: string): RoutePattern | { problem: string } {
  if (given.length > maxLength) return { problem: `a pattern has at most ${maxLength} characters` };
  const text = trimBlanks(given);
  const at = text.lastIndexOf('@');
  const domain = toDomain(text.slice(at + 1).replace(/\.$/, ''));
  const local = at < 0 ? '*' : text.slice(0, at);
  if (domain === null && text.slice(at + 1).includes('*'))
    return {
      problem: 'a domain has no *: each subdomain that receives is registered as a domain of its own',
    };
  if (domain === null)
    return { problem: `a pattern is ${forms}, and this one has no domain name${withoutHidden(text)}` };
  if (local === '*') return { text: `*@${domain}`, domain, kind: 'domain' };
  const canonical = `${local}@${domain}`;
  if (isExpression(local)) {
    const problem = problemWithExpression(local);
    return problem === null ? { text: canonical, domain, kind: 'expression' } : { problem };
  }
  const stars = local.split('*').length - 1;
  if (stars > 1)
    return { problem: 'a pattern has at most one *; an expression between slashes can say more' };
  if (domainOf(canonical.replace('*', 'x')) === null)
    return { problem: `a pattern is ${forms}; this one is none of them${withoutHidden(text)}` };
  return { text: canonical, domain, kind: stars === 0 ? 'address' : 'part' };
}

/** `address` by its key (compareKey), `pattern` in canonical form. */
export function matchesPattern(pattern: string, addressKey: string): boolean {
  const local = localOf(pattern);
  const wanted = localOf(addressKey);
  if (isExpression(local)) return wanted.length <= maxMatched && compiled(local).testExact(wanted);
  const star = local.indexOf('*');
  if (star < 0) return compareKey(pattern) === addressKey;
  const [begin, end] = [local.slice(0, star), local.slice(star + 1)].map((part) =>
    part.normalize('NFC').toLowerCase(),
  ) as [string, string];
  return wanted.length >= begin.length + end.length && wanted.startsWith(begin) && wanted.endsWith(end);
}

/** The steps of a canonical pattern, if it is an expression. */
export function stepsOf(pattern: string): number {
  const local = localOf(pattern);
  return isExpression(local) ? compiled(local).programSize() : 0;
}

/** Of canonical patterns. In an expression, letters after a backslash differ: \d is a digit, and \D is anything else. */
export function isSamePattern(one: string, other: string): boolean {
  return one === other || (!isExpression(localOf(one)) && one.toLowerCase() === other.toLowerCase());
}

const localOf = (pattern: string) => pattern.slice(0, pattern.lastIndexOf('@'));

const isExpression = (local: string) => local.length > 2 && local.startsWith('/') && local.endsWith('/');

/** Compiling takes 0.4 ms, a match usually a hundredth of it; organizations with the same expression share it. */
const expressions = new LRUCache<string, RE2JS>({ max: 2000 });

function compiled(local: string): RE2JS {
  const known = expressions.get(local);
  if (known) return known;
  const expression = RE2JS.compile(local.slice(1, -1), RE2JS.CASE_INSENSITIVE);
  expressions.set(local, expression);
  return expression;
}

function problemWithExpression(local: string): string | null {
  // PostgreSQL takes no NUL, and people would not see what such a pattern takes.
  if (/\p{Cc}/u.test(local) || hasHidden(local))
    return `an expression has no characters that cannot be seen: write them as \\x{200B}${withoutHidden(local)}`;
  try {
    const steps = compiled(local).programSize();
    if (steps <= maxSteps) return null;
    expressions.delete(local);
    return `the expression is too large: ${steps} steps, of ${maxSteps} at most. Repeat less in it`;
  } catch (error) {
    const said = (error as Error).message.replace(/^error parsing regexp: /, '').slice(0, 120);
    return `${local} is not an expression in RE2's syntax, which has no look-around and no back references: ${said}`;
  }
}
