/** Replaces the tags of one personalization (`{{name}}`, `-name-`) in texts, in one pass: a value is not replaced again. */
import { Refusal } from '#platform/values/refusal.ts';

/** More than the subject, the HTML or the text of an email can be; it bounds what short tags with long values make. */
const maxLength = 2 * 1024 * 1024;

export type Substitute = (text: string) => string;

/** There are at most 50 tags (sendgrid-request.ts). Of two tags that start alike, the longer one is meant. */
export function substituteWith(values: Record<string, unknown>): Substitute {
  const tags = Object.keys(values).filter((tag) => tag !== '');
  if (tags.length === 0) return (text) => text;
  const find = finderOf(tags);
  return (text) => {
    // Too long already: the rules of sending refuse it.
    if (text.length > maxLength) return text;
    const found = find(text);
    let filled = '';
    let copied = 0;
    for (let at = 0; at < text.length; ) {
      const number = found[at]!;
      if (number === 0) {
        at += 1;
        continue;
      }
      const tag = tags[number - 1]!;
      filled += text.slice(copied, at) + String(values[tag]);
      at += tag.length;
      copied = at;
      if (filled.length > maxLength)
        throw new Refusal('BAD_REQUEST', 'content: has more than 2 MiB after the substitutions.');
    }
    return filled + text.slice(copied);
  };
}

/** The number of UTF-16 code units. */
const units = 0x10000;

/**
 * Tells for each position of a text which tag begins there, as its number from 1; 0: none. Of several, the longest. Aho and
 * Corasick's search on tags that are read backwards, from the end of the text: it takes the same time for a text that nearly has
 * a tag at each position.
 */
function finderOf(tags: string[]): (text: string) => Uint8Array {
  /** The next state, by the state and the code unit. State 0: nothing of a tag has been read. */
  const next = new Map<number, number>();
  /** The state of the longest beginning of a tag that is the end of what each state has read. */
  const shorter = [0];
  const whole = [0];
  const step = (from: number, unit: number): number => {
    for (let state = from; ; state = shorter[state]!) {
      const to = next.get(state * units + unit);
      if (to !== undefined) return to;
      if (state === 0) return 0;
    }
  };
  // One level after the other, because a state needs those of the levels before.
  const reached = tags.map(() => 0);
  const longest = Math.max(...tags.map(({ length }) => length));
  for (let depth = 1; depth <= longest; depth += 1) {
    for (const [index, tag] of tags.entries()) {
      if (tag.length < depth) continue;
      const unit = tag.charCodeAt(tag.length - depth);
      const from = reached[index]!;
      const known = next.get(from * units + unit);
      const state = known ?? shorter.length;
      if (known === undefined) {
        shorter.push(from === 0 ? 0 : step(shorter[from]!, unit));
        whole.push(whole[shorter[state]!]!);
        next.set(from * units + unit, state);
      }
      reached[index] = state;
      if (tag.length === depth) whole[state] = index + 1;
    }
  }
  return (text) => {
    const found = new Uint8Array(text.length);
    let state = 0;
    for (let at = text.length - 1; at >= 0; at -= 1) {
      state = step(state, text.charCodeAt(at));
      found[at] = whole[state]!;
    }
    return found;
  };
}
