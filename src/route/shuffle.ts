/** In which order equals are tried. Pure but for the dice. */

/** Fisher and Yates: every order is as likely as any other. */
export function shuffled<T>(list: readonly T[], random: () => number): T[] {
  const cards = [...list];
  for (let left = cards.length; left > 1; left--) {
    const pick = Math.floor(random() * left);
    [cards[pick], cards[left - 1]] = [cards[left - 1]!, cards[pick]!];
  }
  return cards;
}

/** One of each in turn, the first list leading (RFC 8305 section 4, with a first address family count of 1). */
export function interleaved<T>(first: readonly T[], second: readonly T[]): T[] {
  const longest = Math.max(first.length, second.length);
  return Array.from({ length: longest }, (_, at) => [
    ...first.slice(at, at + 1),
    ...second.slice(at, at + 1),
  ]).flat();
}
