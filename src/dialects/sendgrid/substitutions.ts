/** Replaces the tags of one personalization (`{{name}}`, `-name-`) in texts, in one pass: a value is not replaced again. */
import { Refusal } from '../../mail/refusal.ts';

/** More than the subject, the HTML or the text of an email can be; it bounds what short tags with long values make. */
const maxLength = 2 * 1024 * 1024;

export type Substitute = (text: string) => string;

export function substituteWith(values: Record<string, unknown>): Substitute {
  // Of two tags that start alike, the longer one is meant.
  const tags = Object.keys(values)
    .filter((tag) => tag !== '')
    .sort((a, b) => b.length - a.length);
  if (tags.length === 0) return (text) => text;
  const pattern = new RegExp(tags.map((tag) => tag.replace(/[\\^$.*+?()[\]{}|]/g, '\\$&')).join('|'), 'g');
  return (text) => {
    let length = text.length;
    return text.replace(pattern, (tag) => {
      const value = String(values[tag]);
      length += value.length - tag.length;
      if (length > maxLength)
        throw new Refusal('BAD_REQUEST', 'content: has more than 2 MiB after the substitutions.');
      return value;
    });
  };
}
