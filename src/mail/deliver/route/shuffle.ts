/** The order in which equal hosts and addresses are tried. Pure, except for the random source. */

/** Fisher and Yates: every order is as likely as any other. */
export function shuffled<T>(list: readonly T[], random: () => number): T[] {
  const items = [...list];
  for (let left = items.length; left > 1; left--) {
    const pick = Math.floor(random() * left);
    [items[pick], items[left - 1]] = [items[left - 1]!, items[pick]!];
  }
  return items;
}

/** One of each in turn, the first list leading (RFC 8305 section 4, with a first address family count of 1). */
export function interleaved<T>(first: readonly T[], second: readonly T[]): T[] {
  const longest = Math.max(first.length, second.length);
  return Array.from({ length: longest }, (_, at) => [
    ...first.slice(at, at + 1),
    ...second.slice(at, at + 1),
  ]).flat();
}
