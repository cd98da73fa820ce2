/**
 * Checks the query of a request against a schema. If a parameter is given more than once, the last counts, unless it takes a
 * list; unknown parameters are ignored, and named (ignored.ts). The `meta` of a schema is what the OpenAPI document says about
 * the parameter.
 */
import type { Context } from 'koa';
import { z } from 'zod';
import { readTime } from '#platform/values/read-time.ts';
import { Refusal } from '#platform/values/refusal.ts';
import { checked } from './issues.ts';
import { rule } from './schema-rule.ts';

const maxParameters = 100;

/** Call it before `context.query`: Koa's parser takes time that grows with the square of the number of parameters. */
export function boundQuery({ querystring }: Context): void {
  let count = 1;
  for (let at = querystring.indexOf('&'); at >= 0; at = querystring.indexOf('&', at + 1)) count += 1;
  if (count > maxParameters)
    throw new Refusal('BAD_REQUEST', `The query has more than ${maxParameters} parameters.`);
}

/** Answers repeat the URL, several times if they have pages. Links of tracking, which are longer, are not held to this. */
const maxUrl = 8_000;

export function boundUrl({ url }: Context): void {
  if (url.length > maxUrl && !url.startsWith('/t/'))
    throw new Refusal('BAD_REQUEST', `The URL is longer than ${maxUrl} characters.`);
}

export function readQuery<Schema extends z.ZodType>(context: Context, schema: Schema): z.output<Schema> {
  return checked(schema, parametersOf(context, schema), 'A parameter of the query is not valid.');
}

/** Clients that add a page to a URL that has one already mean the last. What is not in the schema stays as it is. */
export function parametersOf({ query }: Context, schema: z.ZodType): Record<string, unknown> {
  const shape = shapeOf(schema);
  const takesOne = (name: string) => shape.has(name) && !shape.get(name)!.safeParse([]).success;
  return Object.fromEntries(
    Object.entries(query).map(([name, value]) => [
      name,
      Array.isArray(value) && takesOne(name) ? value.at(-1) : value,
    ]),
  );
}

/** The parameters that a schema names. */
export function shapeOf(schema: z.ZodType | undefined): ReadonlyMap<string, z.ZodType> {
  if (schema instanceof z.ZodPipe) return shapeOf(schema.in as z.ZodType);
  return new Map(
    schema instanceof z.ZodObject ? Object.entries(schema.shape as Record<string, z.ZodType>) : [],
  );
}

export function limit(byDefault: number, max: number) {
  const isOne = (text: string) => /^\d{1,5}$/.test(text) && Number(text) >= 1 && Number(text) <= max;
  return z
    .string()
    .check(rule(isOne, `a whole number from 1 to ${max}`))
    .transform(Number)
    .default(byDefault)
    .meta({
      type: 'integer',
      minimum: 1,
      maximum: max,
      description: `The maximum number of results; ${byDefault} by default.`,
    });
}

/** The parameter `after`; its description is the same for every list. */
export function after<Schema extends z.ZodType>(cursor: Schema) {
  return cursor
    .optional()
    .meta({ description: 'The cursor to continue from: the `next` of the previous response.' });
}

/** In lower case; null: not a UUID. Any version and variant will do: one that is well-formed but unknown finds nothing. */
export function uuidIn(text: string): string | null {
  return /^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i.test(text) ? text.toLowerCase() : null;
}

export const id = z
  .string()
  .check(rule((text) => uuidIn(text) !== null, 'a UUID'))
  .transform((text) => uuidIn(text)!)
  .meta({ format: 'uuid' });

/** A parameter that can be given several times, or once with commas between its values. */
export function several<const Name extends string>(names: readonly Name[], what: string) {
  return z.preprocess(
    (values) => (values === undefined ? undefined : [values].flat().flatMap((one) => String(one).split(','))),
    z.array(z.enum(names, { error: `must be ${what}` })).optional(),
  );
}

const expectedTime = 'a time in ISO 8601, such as 2026-03-02T08:15:30Z or 2026-03-02';

export const time = z
  .string()
  .check(rule((text) => timeOf(text) !== null, expectedTime))
  .transform((text) => timeOf(text)!);

/** A date is its midnight in UTC. */
function timeOf(text: string): number | null {
  const time = readTime(/^[\d-]+$/.test(text) ? `${text}T00:00Z` : text);
  return time !== null && time >= 0 ? time : null;
}
