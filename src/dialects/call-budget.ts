/**
 * Bounds what one call makes of its body: a thousand emails, each with texts of its own, can be made of a few kilobytes. All of
 * it is counted before one email is accepted, and in tests too, because they cost as much work.
 */
import { Refusal } from '../mail/refusal.ts';

const maxBytes = 25 * 1024 * 1024;

export class CallBudget {
  #bytes = 0;

  take(bytes: number): void {
    this.#bytes += Math.max(bytes, 0);
    if (this.#bytes <= maxBytes) return;
    throw new Refusal(
      'BAD_REQUEST',
      'The emails of this call have more than 25 MiB together. Make several calls.',
    );
  }
}

/** The cost of a member or an element beside its texts. */
const overhead = 8;

/** The approximate size of a parsed value, in characters of its texts. */
export function weightOf(value: unknown): number {
  if (typeof value === 'string') return value.length + overhead;
  if (typeof value !== 'object' || value === null) return overhead;
  if (Array.isArray(value)) return value.reduce((sum, one) => sum + weightOf(one), overhead);
  return Object.entries(value).reduce((sum, [name, one]) => sum + name.length + weightOf(one), overhead);
}
