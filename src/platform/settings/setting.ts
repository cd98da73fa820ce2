/** One key of the schema of settings: its written form, its default and its description, registered for the zod schema. */
import { z } from 'zod';
import { type Grammar, Refused } from './grammar.ts';

export interface Setting {
  name: string;
  /** The value as written; a description of it if there is an `example`. */
  default: string;
  description: string;
  /** A value for the sample, for a default that cannot be written down. */
  example?: string;
}

export interface Registered extends Setting {
  grammar: Grammar<unknown>;
}

export const registered = z.registry<Registered>();

/** A key whose default is a text that `grammar` reads. */
export function setting<T>(grammar: Grammar<T>, documented: Setting) {
  const schema = readBy(z.string(), grammar.read).prefault(documented.default);
  registered.add(schema, { ...documented, grammar: grammar as Grammar<unknown> });
  return schema;
}

/** A key whose default depends on the machine or on other settings, so that it can only be described. */
export function computed<T, D>(grammar: Grammar<T>, byDefault: () => D, documented: Required<Setting>) {
  // A type parameter does not fit zod's type of a default; the actual types do.
  const schema = readBy<string, T | D>(z.string(), grammar.read).default(byDefault as never);
  registered.add(schema, { ...documented, grammar: grammar as Grammar<unknown> });
  return schema;
}

/** A schema whose value `read` parses; a Refused becomes an issue. */
export function readBy<Input, T>(input: z.ZodType<Input, Input>, read: (value: Input) => T) {
  return input.transform((value, context): T => {
    try {
      return read(value);
    } catch (error) {
      if (!(error instanceof Refused)) throw error;
      context.addIssue({ code: 'custom', message: error.message });
      return z.NEVER;
    }
  });
}
