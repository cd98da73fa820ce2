/**
 * Text in a number of terminal columns, which differs from its number of letters: East Asian letters and emoji take two
 * columns, combining marks and colour codes none.
 */
import { stripVTControlCharacters } from 'node:util';
import stringWidth from 'string-width';

const letters = new Intl.Segmenter();

/** Exactly `width` columns: cut to fit, or padded. */
export function fit(text: string, width: number, align: 'left' | 'right' = 'left'): string {
  const shown = cut(text, width);
  const space = ' '.repeat(Math.max(width - stringWidth(shown), 0));
  return align === 'left' ? shown + space : space + shown;
}

/** At most `width` columns. Text that is cut ends with an ellipsis and loses its colour. */
export function cut(text: string, width: number): string {
  if (stringWidth(text) <= width) return text;
  if (width < 1) return '';
  let shown = '';
  let used = 1;
  for (const { segment } of letters.segment(stripVTControlCharacters(text))) {
    used += stringWidth(segment);
    if (used > width) break;
    shown += segment;
  }
  return `${shown}…`;
}

/** Breaks between words; a word that is longer than a line stays whole. */
export function wrap(words: string[], width: number): string[] {
  const lines: string[] = [];
  for (const word of words) {
    const last = lines.at(-1);
    if (last !== undefined && stringWidth(last) + 1 + stringWidth(word) <= width)
      lines.push(`${lines.pop()} ${word}`);
    else lines.push(word);
  }
  return lines;
}
