/** Bounds the size of an array or object before its schema checks the members: too many members are one issue. */
import { z } from 'zod';

/** `expected` is the bound in words; without it, the issue is zod's own for an array that is too big. */
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

/** Other types have size 0: the schema refuses them. */
function sizeOf(input: unknown): number {
  if (typeof input !== 'object' || input === null) return 0;
  return Array.isArray(input) ? input.length : Object.keys(input).length;
}
