/** Postmark's queries: names in any letter case, as its SDKs write them, and dates. */
import type { Context } from 'koa';
import { z } from 'zod';
import { time } from '../../api/query.ts';

const dayMs = 86_400_000;

export function queryIn({ query }: Context): Record<string, string> {
  return Object.fromEntries(
    Object.entries(query).map(([name, value]) => [name.toLowerCase(), [value].flat().at(-1) ?? '']),
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
