/**
 * Splits a text with several addresses at its commas. A parser of all that RFC 5322 allows takes time that grows with the square
 * of the length, and a batch has thousands of lists.
 */

/** In all of a list: longer than a thousand addresses with their names. */
export const longestAddresses = 512 * 1024;

/** Commas in quotes separate nothing, nor do those of a name without quotes: `Acme, Inc. <a@b>`. */
export function addressTexts(text: string): string[] {
  const found: string[] = [];
  let start = 0;
  let isQuoted = false;
  let hasAddress = false;
  let isEmpty = true;
  for (let at = 0; at < text.length; at += 1) {
    const character = text[at]!;
    if (character === ',' && !isQuoted && (hasAddress || isEmpty)) {
      if (!isEmpty) found.push(text.slice(start, at).trim());
      start = at + 1;
      hasAddress = false;
      isEmpty = true;
      continue;
    }
    isEmpty &&= /\s/.test(character);
    if (character === '\\') at += 1;
    else if (character === '"') isQuoted = !isQuoted;
    else if (character === '@') hasAddress ||= !isQuoted;
  }
  return isEmpty ? found : [...found, text.slice(start).trim()];
}
