/** Forms as browsers send them, read within bounds and held against a schema. */
import type { Context } from 'koa';
import getRawBody from 'raw-body';
import { z } from 'zod';
import type { Clock } from '../base/clock.ts';
import { domainOf } from '../mail/address.ts';
import { isOneLine } from '../settings/grammar.ts';
import { PageError } from './page-error.ts';

const defaultMaxBytes = 64 * 1024;
const timeoutMs = 10_000;
/** A larger form has the time that the rest of it takes at this rate. */
const bytesPerSecond = 16 * 1024;

export async function readForm(
  { req }: Context,
  clock: Clock,
  maxBytes = defaultMaxBytes,
): Promise<URLSearchParams> {
  const type = req.headers['content-type'] ?? '';
  // What has no body has nothing to say but its route.
  if (req.headers['content-length'] === '0' || (type === '' && req.headers['content-length'] === undefined))
    return new URLSearchParams();
  if (!/^application\/x-www-form-urlencoded\s*(;|$)/i.test(type))
    throw new PageError(415, 'That did not work', 'A form is sent as application/x-www-form-urlencoded.');
  const { promise: tooSlow, reject } = Promise.withResolvers<never>();
  const maxMs = timeoutMs + ((maxBytes - defaultMaxBytes) / bytesPerSecond) * 1000;
  const cancel = clock.after(maxMs, () =>
    reject(new PageError(408, 'That did not work', 'The form took too long to arrive. Send it again.')),
  );
  try {
    const body = await Promise.race([readBody(req, maxBytes), tooSlow]);
    return new URLSearchParams(body.toString('utf8'));
  } finally {
    cancel();
  }
}

function readBody(req: Context['req'], maxBytes: number): Promise<Buffer> {
  const length = req.headers['content-length'] ?? null;
  return getRawBody(req, { limit: maxBytes, length }).catch((error: Error & { type?: string }) => {
    const isLarge = error.type === 'entity.too.large';
    throw new PageError(
      isLarge ? 413 : 400,
      'That did not work',
      isLarge
        ? `The form is larger than ${Math.floor(maxBytes / 1024)} KiB.`
        : 'The form did not arrive whole.',
    );
  });
}

export type Errors = Record<string, string>;

/** What a form said, or what is wrong with each of its fields. A name that is given several times is a list. */
export function checkForm<Schema extends z.ZodType>(
  form: URLSearchParams,
  schema: Schema,
): { ok: true; values: z.output<Schema> } | { ok: false; errors: Errors } {
  const parsed = schema.safeParse(fieldsOf(form));
  if (parsed.success) return { ok: true, values: parsed.data };
  // The first fault of each field.
  const faults = parsed.error.issues.toReversed().map(({ path, message }) => [path[0] ?? '', message]);
  return { ok: false, errors: Object.fromEntries(faults) };
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

/** What was given, to show it again beside what is wrong with it. */
export function valuesOf(form: URLSearchParams): Record<string, string> {
  return Object.fromEntries([...form.entries()].reverse());
}

/** Some text of one line, without the blanks around it. */
export function line(what: string, longest = 200) {
  return z
    .string({ error: `Say ${what}.` })
    .trim()
    .min(1, `Say ${what}.`)
    .refine((text) => isOneLine(text, longest), `One line, ${longest} characters at most.`);
}

export const emailField = z
  .string({ error: 'Give an email address.' })
  .trim()
  .max(254, 'That is no email address.')
  .refine((text) => domainOf(text) !== null, 'That is no email address.');

/** A checkbox: there or not. */
export const checkbox = z
  .string()
  .optional()
  .transform((value) => value !== undefined);

/** Checkboxes of one name: a list, whether none, one or several are ticked. */
export const checkboxes = z.preprocess(
  (value) => (value === undefined ? [] : [value].flat()),
  z.array(z.string()),
);
