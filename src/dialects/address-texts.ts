/** Splits a text with several addresses at its commas. */

/** Commas in quotes separate nothing, nor do those of a name without quotes: `Acme, Inc. <a@b>`. */
export function addressTexts(text: string): string[] {
  const found: string[] = [];
  let start = 0;
  let isQuoted = false;
  let hasAddress = false;
  for (let at = 0; at < text.length; at += 1) {
    const character = text[at];
    if (character === '\\') at += 1;
    else if (character === '"') isQuoted = !isQuoted;
    else if (character === '@') hasAddress ||= !isQuoted;
    else if (character === ',' && !isQuoted && hasAddress) {
      found.push(text.slice(start, at).trim());
      start = at + 1;
      hasAddress = false;
    }
  }
  const rest = text.slice(start).trim();
  return rest === '' ? found : [...found, rest];
}
