/** Guesses which of several names somebody meant: one in another letter case or with other separators, or a slip. */

/** Null if none is close. */
export function closestName(given: string, names: readonly string[]): string | null {
  const letters = lettersOf(given);
  const tolerated = letters.length < 3 ? 0 : letters.length < 6 ? 1 : 2;
  const closest = nearestTo(letters, names, lettersOf);
  return closest !== null && closest.edits <= tolerated ? closest.name : null;
}

const lettersOf = (name: string) => name.toLowerCase().replace(/[^\p{L}\p{N}]/gu, '');

/** Null only if there are no names. */
export function nearestTo(
  given: string,
  names: readonly string[],
  formOf: (name: string) => string,
): { name: string; edits: number } | null {
  return nearest(given, names, formOf)[0] ?? null;
}

/** All names, the nearest first. `formOf`: the form of a name that `given` is compared with. */
export function nearest(
  given: string,
  names: readonly string[],
  formOf: (name: string) => string,
): { name: string; edits: number }[] {
  return names
    .map((name) => ({ name, edits: editsBetween(given, formOf(name)) }))
    .sort((a, b) => a.edits - b.edits);
}

/** Levenshtein's distance: letters to insert, delete or replace. */
function editsBetween(a: string, b: string): number {
  let row = Array.from({ length: b.length + 1 }, (_, column) => column);
  for (const [above, letter] of [...a].entries()) {
    const next = [above + 1];
    for (const [column, other] of [...b].entries()) {
      const replaced = row[column]! + (letter === other ? 0 : 1);
      next.push(Math.min(replaced, row[column + 1]! + 1, next[column]! + 1));
    }
    row = next;
  }
  return row[b.length]!;
}
