/** Our own rules in schemas. `expected` says in words what a valid value is. */
import { z } from 'zod';

/** `advice` continues the message, for a value that suggests how to correct it. */
export function rule<T>(
  holds: (value: T) => boolean,
  expected: string,
  advice: (value: T) => string = () => '',
): z.core.$ZodCheck<T> {
  return z.refine<T>((value) => holds(value as T), {
    error: ({ input }) => `must be ${expected}${advice(input as T)}`,
    params: { expected },
  });
}

/**
 * Bounds the length of a string in UTF-16 code units. zod's own `max` counts code points, and its `min` also checks an
 * array that was given instead of a string.
 */
export function characters(minimum: number, maximum: number): z.core.$ZodCheck<string> {
  return z.check<string>(({ value: input, issues }) => {
    const rest = { origin: 'string', inclusive: true, input, continue: true } as const;
    if (input.length < minimum) issues.push({ code: 'too_small', minimum, ...rest });
    if (input.length > maximum) issues.push({ code: 'too_big', maximum, ...rest });
  });
}
