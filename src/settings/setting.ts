/** One key of the schema of settings: how it is written, its default, and a sentence, kept beside what zod makes of them. */
import { z } from 'zod';
import { type Grammar, Refused } from './grammar.ts';

export interface Setting {
  name: string;
  /** As written, or in words where `example` is there. */
  default: string;
  description: string;
  /** A value for the sample, where the default cannot be written down. */
  example?: string;
}

export interface Registered extends Setting {
  grammar: Grammar<unknown>;
}

export const registered = z.registry<Registered>();

/** One key of the schema: a text that `grammar` reads, its default in that same form. */
export function setting<T>(grammar: Grammar<T>, documented: Setting) {
  const schema = readBy(grammar).prefault(documented.default);
  registered.add(schema, { ...documented, grammar: grammar as Grammar<unknown> });
  return schema;
}

/** The same where the default depends on the machine or on other settings, and only words can say what it is. */
export function computed<T, D>(grammar: Grammar<T>, byDefault: () => D, documented: Required<Setting>) {
  // zod's type of a default cannot be met by a type parameter, only by the types put in its place.
  const schema = readBy<T | D>(grammar).default(byDefault as never);
  registered.add(schema, { ...documented, grammar: grammar as Grammar<unknown> });
  return schema;
}

function readBy<T>(grammar: Grammar<T>) {
  return z.string().transform((text, context): T => {
    try {
      return grammar.read(text);
    } catch (error) {
      if (!(error instanceof Refused)) throw error;
      context.addIssue({ code: 'custom', message: error.message });
      return z.NEVER;
    }
  });
}
