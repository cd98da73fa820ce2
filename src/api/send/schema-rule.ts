/** A rule of our own in a schema. `expected` is what the issue says would be right. */
import { z } from 'zod';

export function rule<T>(holds: (value: T) => boolean, expected: string): z.core.$ZodCheck<T> {
  return z.refine<T>((value) => holds(value as T), { error: `must be ${expected}`, params: { expected } });
}

/**
 * So many characters at least and at most. A string's length is JavaScript's here; zod's own `max` counts code
 * points, and its `min` looks at arrays too where a string was wanted.
 */
export function characters(minimum: number, maximum: number): z.core.$ZodCheck<string> {
  return z.check<string>(({ value: input, issues }) => {
    const rest = { origin: 'string', inclusive: true, input, continue: true } as const;
    if (input.length < minimum) issues.push({ code: 'too_small', minimum, ...rest });
    if (input.length > maximum) issues.push({ code: 'too_big', maximum, ...rest });
  });
}
