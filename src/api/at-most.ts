/** Bounds an array or an object before its schema looks inside it: more members than it may have are one issue. */
import { z } from 'zod';

/** `expected`: says the bound in words; without it the issue is zod's own of an array that is too big. */
export function limitSize<Schema extends z.ZodType>(max: number, schema: Schema, expected?: string) {
  return z.preprocess((input, context) => {
    if (sizeOf(input) <= max) return input;
    if (expected === undefined) {
      context.addIssue({ code: 'too_big', origin: 'array', maximum: max, inclusive: true, input });
    } else {
      context.addIssue({ code: 'custom', message: `must be ${expected}`, params: { expected }, input });
    }
    return z.NEVER;
  }, schema);
}

/** What is neither an array nor an object is the schema's question. */
function sizeOf(input: unknown): number {
  if (typeof input !== 'object' || input === null) return 0;
  return Array.isArray(input) ? input.length : Object.keys(input).length;
}
