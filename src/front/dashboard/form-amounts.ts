/** Whole numbers and limits in forms. */
import { z } from 'zod';

/** A limit; `unlimited` in any letter case is null, as in the database. */
export function limitOf(min: number, max: number) {
  return z
    .string()
    .trim()
    .transform((text, context) => {
      if (/^unlimited$/i.test(text)) return null;
      const value = wholeOf(text);
      if (value !== null && value >= min && value <= max) return value;
      context.addIssue({
        code: 'custom',
        message: `Enter a whole number from ${min} to ${max.toLocaleString('en-GB')}, or “unlimited”.`,
      });
      return z.NEVER;
    });
}

/** Accepts the usual separators of thousands. */
export function wholeOf(text: string): number | null {
  const digits = text.replace(/(?<=\d)[ ,.’'\u00a0\u202f](?=\d{3}(?!\d))/g, '');
  return /^[+-]?\d{1,12}$/.test(digits) ? Number(digits) : null;
}
