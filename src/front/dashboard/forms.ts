/** Reads forms within limits of size and time, and checks them against a schema. */
import type { Context } from 'koa';
import { z } from 'zod';
import { type FormBody, fieldCounter, smallForm } from '#front/http/body-limits.ts';
import { BodyTooLarge, collectBody } from '#front/http/request-body.ts';
import { decoded, fieldsIn, isUrlencoded } from '#front/http/urlencoded.ts';
import type { Clock } from '#platform/base/clock.ts';
import { isOneLine } from '#platform/base/sanitize.ts';
import { domainOf } from '#platform/values/address.ts';
import { trimBlanks, withoutHidden } from '#platform/values/hidden-characters.ts';
import { PageError } from './page-error.ts';

const timeoutMs = 10_000;
/** A form over the default size gets more time, at this rate. */
const bytesPerSecond = 16 * 1024;

export async function readForm({ req }: Context, clock: Clock, limits = smallForm): Promise<URLSearchParams> {
  const type = req.headers['content-type'] ?? '';
  // A form without fields has no body.
  if (req.headers['content-length'] === '0' || (type === '' && req.headers['content-length'] === undefined))
    return new URLSearchParams();
  if (!isUrlencoded(type))
    throw new PageError(415, 'Request failed', 'A form must be sent as application/x-www-form-urlencoded.');
  const { promise: tooSlow, reject } = Promise.withResolvers<never>();
  const maxMs = timeoutMs + ((limits.largest - smallForm.largest) / bytesPerSecond) * 1000;
  const cancel = clock.after(maxMs, () =>
    reject(new PageError(408, 'Request failed', 'The form took too long to arrive. Submit it again.')),
  );
  try {
    const body = await Promise.race([readBody(req, limits.largest), tooSlow]);
    countFields(body, limits);
    const form = new URLSearchParams();
    for await (const { name, value } of fieldsIn(body)) form.append(name, await decoded(value));
    return form;
  } finally {
    cancel();
  }
}

/** Before the fields are decoded. */
function countFields(body: Buffer, limits: FormBody): void {
  try {
    fieldCounter(limits)(body);
  } catch (refusal) {
    throw new PageError(413, 'Request failed', (refusal as Error).message);
  }
}

function readBody(req: Context['req'], maxBytes: number): Promise<Buffer> {
  return collectBody(req, maxBytes, req.headers['content-length']).catch((error: Error) => {
    const isLarge = error instanceof BodyTooLarge;
    throw new PageError(
      isLarge ? 413 : 400,
      'Request failed',
      isLarge
        ? `The form is larger than ${Math.floor(maxBytes / 1024)} KiB.`
        : 'The form was not received completely. Submit it again.',
    );
  });
}

export type Errors = Record<string, string>;

/** A form's values, or an error for each wrong field. A field that is sent several times becomes a list. */
export function checkForm<Schema extends z.ZodType>(
  form: URLSearchParams,
  schema: Schema,
): { ok: true; values: z.output<Schema> } | { ok: false; errors: Errors } {
  const parsed = schema.safeParse(fieldsOf(form), {
    error: ({ code }) => (code === 'invalid_type' ? 'Fill in this field.' : undefined),
  });
  if (parsed.success) return { ok: true, values: parsed.data };
  // Keeps the first issue of each field.
  const problems = parsed.error.issues.toReversed().map(({ path, message }) => [path[0] ?? '', message]);
  return { ok: false, errors: Object.fromEntries(problems) };
}

function fieldsOf(form: URLSearchParams): Record<string, string | string[]> {
  const names = [...new Set(form.keys())];
  return Object.fromEntries(
    names.map((name) => {
      const all = form.getAll(name);
      return [name, all.length > 1 ? all : all[0]!];
    }),
  );
}

/** The values as sent, to show the form again with its errors. What is too long to be shown again is empty. */
export function valuesOf(form: URLSearchParams): Record<string, string> {
  let left = maxShownLength;
  const values: Record<string, string> = {};
  for (const [name, text] of form) {
    if (Object.hasOwn(values, name)) continue;
    const length = shownLength(text);
    values[name] = length <= left ? text : '';
    if (length <= left) left -= length;
  }
  return values;
}

/** The size of a form's values together, in bytes of HTML: longer texts are not corrected by hand. */
const maxShownLength = 50_000;

function shownLength(text: string): number {
  if (text.length > maxShownLength) return text.length;
  const escaped = text.match(/[&<>"'`]/g)?.length ?? 0;
  return Buffer.byteLength(text) + escaped * '&quot;'.length;
}

/** One line of text, trimmed. `what` names it in errors, with an article. */
export function oneLine(what: string, maxLength = 200) {
  return z
    .string({ error: `Enter ${what}.` })
    .trim()
    .min(1, `Enter ${what}.`)
    .refine((text) => isOneLine(text, maxLength), `Enter one line of at most ${maxLength} characters.`);
}

export const emailField = parsedBy(
  (text) => (text.length <= 254 && domainOf(text) !== null ? text : null),
  'Enter an email address, such as ann@example.org.',
);

/** "Enter an email address, such as …" and what to leave out of it, if the text has something invisible. */
export function problemWith(text: string, problem: string): string {
  return problem.replace(/\.$/, `${withoutHidden(text)}.`);
}

/** A field that `read` parses; `problem` is the error if it returns null. */
export function parsedBy<Value>(read: (text: string) => Value | null, problem: string) {
  return z
    .string({ error: problem })
    .overwrite(trimBlanks)
    .transform((text, context) => {
      const value = read(text);
      if (value !== null) return value;
      context.addIssue({ code: 'custom', message: problemWith(text, problem) });
      return z.NEVER;
    });
}

/** A field that is empty or missing is undefined. */
export function optional<Schema extends z.ZodType>(schema: Schema) {
  const orUndefined = (text: unknown) => (typeof text === 'string' && text.trim() === '' ? undefined : text);
  return z.preprocess(orUndefined, schema.optional());
}

/** A field that is empty or missing is null. */
export function nullable<Schema extends z.ZodType>(schema: Schema) {
  return z.preprocess((text) => (String(text ?? '').trim() === '' ? null : text), schema.nullable());
}

/** A checkbox, which is sent only if it is checked. */
export const checkbox = z
  .string()
  .optional()
  .transform((value) => value !== undefined);

/** Checkboxes that share a name: always a list. */
export const checkboxes = z.preprocess(
  (value) => (value === undefined ? [] : [value].flat()),
  z.array(z.string()),
);
