/** Amounts in forms: whole numbers, and limits, of which "unlimited" is one. */
import { z } from 'zod';

/** `unlimited` in any letter case is no limit: null, as in the database. */
export function limitOf(max: number) {
  return z
    .string()
    .trim()
    .transform((text, context) => {
      if (/^unlimited$/i.test(text)) return null;
      const value = wholeOf(text);
      if (value !== null && value >= 0 && value <= max) return value;
      context.addIssue({
        code: 'custom',
        message: `A whole number up to ${max.toLocaleString('en-GB')}, or “unlimited”.`,
      });
      return z.NEVER;
    });
}

/** Thousands may be parted as people part them. */
export function wholeOf(text: string): number | null {
  const digits = text.replace(/(?<=\d)[ ,.’'\u00a0\u202f](?=\d{3}(?!\d))/g, '');
  return /^[+-]?\d{1,12}$/.test(digits) ? Number(digits) : null;
}
