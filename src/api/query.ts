/** A request's query, held against a schema. A parameter given more than once is a list; unknown ones are ignored. */
import type { Context } from 'koa';
import { z } from 'zod';
import { Refusal } from '../mail/refusal.ts';
import { toIssues } from './issues.ts';
import { rule } from './send/schema-rule.ts';

export function readQuery<Schema extends z.ZodType>(context: Context, schema: Schema): z.output<Schema> {
  const input = { ...context.query };
  const parsed = schema.safeParse(input);
  if (parsed.success) return parsed.data;
  throw new Refusal('VALIDATION_ERROR', 'A parameter of the query is not valid.', {
    issues: toIssues(parsed.error, input),
  });
}

/** How much of a list at most. */
export function limit(fallback: number, max: number) {
  const isOne = (text: string) => /^\d{1,5}$/.test(text) && Number(text) >= 1 && Number(text) <= max;
  return z
    .string()
    .check(rule(isOne, `a whole number from 1 to ${max}`))
    .transform(Number)
    .default(fallback);
}

/** A UUID of whatever version and variant: what is well-formed and unknown finds nothing. */
export const id = z
  .string()
  .check(rule((text) => /^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i.test(text), 'a UUID'))
  .transform((text) => text.toLowerCase());

/** Given once or more often, or with commas between. */
export function several<const Name extends string>(names: readonly Name[], what: string) {
  return z.preprocess(
    (given) => (given === undefined ? undefined : [given].flat().flatMap((one) => String(one).split(','))),
    z.array(z.enum(names, { error: `must be ${what}` })).optional(),
  );
}

export const time = z
  .string()
  .check(
    rule((text) => timeOf(text) !== null, 'a time in ISO 8601, such as 2026-03-02T08:15:30Z or 2026-03-02'),
  )
  .transform((text) => timeOf(text)!);

const isoTime = z.union([z.iso.datetime({ offset: true }), z.iso.date()]);

/** A date is its midnight in UTC. */
function timeOf(text: string): number | null {
  const time = isoTime.safeParse(text).success ? Date.parse(text) : Number.NaN;
  return Number.isFinite(time) && time >= 0 ? time : null;
}
