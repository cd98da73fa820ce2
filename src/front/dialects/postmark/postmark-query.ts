/**
 * Postmark's queries: names in any letter case, as its SDKs write them, pages by number, and dates. Bodies have such names,
 * too.
 */
import type { Context } from 'koa';
import { z } from 'zod';
import { knowParameters } from '#front/dialects/dialect.ts';
import { checked } from '#front/http/issues.ts';
import { time } from '#front/http/query.ts';
import { Refusal } from '#platform/values/refusal.ts';

/** Stands for the names of all parameters that begin with it. */
export const metadata = 'metadata_';

const dayMs = 86_400_000;

/** `names`: those that the call reads. */
export function queryIn(context: Context, names: string[]): Record<string, string> {
  knowParameters(context, names, (given) => given.toLowerCase().replace(/^metadata_.*/s, metadata));
  return Object.fromEntries(
    Object.entries(context.query).map(([name, value]) => [name.toLowerCase(), [value].flat().at(-1) ?? '']),
  );
}

/** As Postmark's: what is further back is found by its dates. */
const maxRows = 10_000;

const paging = {
  count: z.coerce.number().int().min(1).max(500).default(100),
  offset: z.coerce.number().int().min(0).default(0),
};

/** Checks the query of a list, of which `count` and `offset` choose a page. */
export function pageOf<Shape extends z.ZodRawShape>(context: Context, filters: Shape) {
  const given = queryIn(context, [...Object.keys(paging), ...Object.keys(filters)]);
  const page = checked(z.object(paging), given);
  checked(z.object({ offset: z.number().max(maxRows - page.count) }), page);
  return { ...page, filters: checked(z.object(filters), given) };
}

/** A page that was not found to the end would say that there is nothing more. */
export function tooMany(what: string): Refusal {
  return new Refusal(
    'BAD_REQUEST',
    `There are too many ${what} to search. Narrow the search with fromdate and todate.`,
  );
}

/** Names in a body are the same in any letter case, too: PHP's SDK has ContentId. */
export function inAnyCase<Shape extends z.ZodRawShape>(shape: Shape) {
  const names = new Map(Object.keys(shape).map((name) => [name.toLowerCase(), name]));
  const nameOf = (given: string) => names.get(given.toLowerCase()) ?? given;
  return z.preprocess(
    (given) =>
      typeof given === 'object' && given !== null && !Array.isArray(given)
        ? Object.fromEntries(Object.entries(given).map(([name, value]) => [nameOf(name), value]))
        : given,
    z.object(shape),
  );
}

const isDay = (text: unknown) => /^\d{4}-\d\d-\d\d$/.test(String(text));

/** A time can be without an offset. Ours are in UTC. */
export const fromDate = z.preprocess((text) => (/T[\d:.]+$/.test(String(text)) ? `${text}Z` : text), time);

/** The first moment that no longer counts: a day counts whole. */
export const toDate = z.preprocess(
  (text) => ({ text, lasts: isDay(text) ? dayMs : 1 }),
  z.object({ text: fromDate, lasts: z.number() }).transform(({ text: start, lasts }) => start + lasts),
);
