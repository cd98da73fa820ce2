/**
 * Two private parts of zod's checks. A check runs even though a member of its object has been refused already, so that all
 * issues are reported at once: zod has the option `when` for refinements only, whose issues have one path. And the
 * OpenAPI document reads the words of the checks of a schema. Read in zod 4.6.7.
 */
import type { z } from 'zod';

/** The check, also of an object of which something else was refused; never of what is no object. */
export function evenIfRefused<Value>(check: z.core.$ZodCheck<Value>): z.core.$ZodCheck<Value> {
  check._zod.def.when = ({ value }) => typeof value === 'object' && value !== null;
  return check;
}

/** The words that the checks of a schema give as `expected`. */
export function expectedBy(schema: z.core.$ZodType): string[] {
  const { checks = [] } = schema._zod.def as { checks?: z.core.$ZodCheck[] };
  return checks.flatMap(({ _zod: { def } }) => {
    const { params } = def as { params?: { expected?: string } };
    return params?.expected ? [params.expected] : [];
  });
}
