/**
 * Characters that nobody sees in an address or a domain name, and those that have no meaning. They come along when an address
 * is copied from a page, and make another mailbox of it, which does not exist. RFC 8264 disallows them: what is ignorable
 * (section 9.13), unassigned (9.10), for private use or a control character, and every space but the ASCII one. Joiners are
 * letters' parts in some scripts (RFC 5892 appendix A), so they may follow those.
 */
const hidden =
  /(?<![\p{M}\p{Script=Arabic}\p{Script=Syriac}])(?:\u200c|\u200d)|(?!\u200c|\u200d|\p{Cc}| )[\p{C}\p{Z}\p{Default_Ignorable_Code_Point}\u2800\ufffc\ufffd]/gu;
const onlyAscii = /^[\0-\x7f]*$/;
/** Such as the line end of a file that an address was read from, but not those of folding (RFC 5322 section 2.2.3). */
const control = /\r(?!\n[ \t])|(?<!\r)\n|\n(?![ \t])|(?![\r\n])\p{Cc}/u;

/** A list of addresses is read up to here. */
const maxLength = 4096;

const names: Record<number, string> = {
  9: 'tab',
  10: 'line feed',
  13: 'carriage return',
  160: 'no-break space',
  173: 'soft hyphen',
  1564: 'Arabic letter mark',
  8203: 'zero width space',
  8204: 'zero width non-joiner',
  8205: 'zero width joiner',
  8206: 'left-to-right mark',
  8207: 'right-to-left mark',
  8234: 'left-to-right embedding',
  8235: 'right-to-left embedding',
  8236: 'pop directional formatting',
  8237: 'left-to-right override',
  8238: 'right-to-left override',
  8288: 'word joiner',
  8294: 'left-to-right isolate',
  8295: 'right-to-left isolate',
  8296: 'first strong isolate',
  8297: 'pop directional isolate',
  65279: 'byte order mark',
  65533: 'replacement character',
};

/** Whether the text has a character that an address cannot have. The caller bounds the text. */
export function hasHidden(text: string): boolean {
  return !onlyAscii.test(text) && text.search(hidden) >= 0;
}

/** The first such character and its place, as in `zero width space (U+200B) at character 4`; null if there is none. */
function hiddenIn(text: string): string | null {
  const given = trimBlanks(text.slice(0, maxLength));
  const index = Math.min(...[hidden, control].map((one) => given.search(one)).filter((at) => at >= 0));
  if (index === Infinity) return null;
  const place = [...given.slice(0, index)].length + 1;
  return `${nameOf(String.fromCodePoint(given.codePointAt(index)!))} at character ${place}`;
}

/** The cure, behind "must be an address"; empty if the text has none. */
export function withoutHidden(text: string): string {
  const found = hiddenIn(text);
  return found === null ? '' : `, without the ${found}`;
}

/** The text for people, with a name in place of each character that they would not see. */
export function withHiddenNamed(text: string): string {
  return text.replace(hidden, (character) => `<${nameOf(character)}>`);
}

/** Without the spaces and tabs around it. Line ends are none: they could add a header. */
export function trimBlanks(text: string): string {
  const isBlank = (at: number) => /[\t\p{Zs}]/u.test(text[at]!);
  let [start, end] = [0, text.length];
  while (start < end && isBlank(start)) start += 1;
  while (end > start && isBlank(end - 1)) end -= 1;
  return text.slice(start, end);
}

function nameOf(character: string): string {
  const code = character.codePointAt(0)!;
  const general = /\p{Default_Ignorable_Code_Point}/u.test(character) ? 'invisible character' : 'character';
  const ofKind = /\p{Cc}/u.test(character) ? 'control character' : general;
  const name = names[code] ?? (/\p{Z}/u.test(character) ? 'blank' : ofKind);
  return `${name} (U+${code.toString(16).toUpperCase().padStart(4, '0')})`;
}
