/** How much room text takes on a terminal: in columns, two for East Asian letters and emoji, none for what combines. */

const wide =
  /[\u1100-\u115f\u2e80-\u303e\u3041-\ua4cf\ua960-\ua97f\uac00-\ud7a3\uf900-\ufaff\ufe30-\ufe6f\uff00-\uff60\uffe0-\uffe6\u{20000}-\u{3fffd}]|\p{Emoji_Presentation}/u;
const none = /[\p{Mn}\p{Me}\p{Cf}]/u;

export function widthOf(text: string): number {
  if (/^[\x20-\x7e]*$/.test(text)) return text.length;
  let width = 0;
  for (const letter of text) width += columnsOf(letter);
  return width;
}

function columnsOf(letter: string): number {
  if (none.test(letter)) return 0;
  return wide.test(letter) ? 2 : 1;
}

/** Exactly so wide: cut, which shows, or filled up. */
export function fit(text: string, width: number, align: 'left' | 'right' = 'left'): string {
  const shown = cut(text, width);
  const space = ' '.repeat(Math.max(width - widthOf(shown), 0));
  return align === 'left' ? shown + space : space + shown;
}

/** So wide at most. */
export function cut(text: string, width: number): string {
  if (widthOf(text) <= width) return text;
  if (width < 1) return '';
  let shown = '';
  let used = 1;
  for (const letter of text) {
    used += columnsOf(letter);
    if (used > width) break;
    shown += letter;
  }
  return `${shown}…`;
}
