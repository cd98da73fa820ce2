/** The list in parts of at most `size` elements. */
export function* partsOf<T>(list: T[], size: number): Generator<T[]> {
  for (let start = 0; start < list.length; start += size) yield list.slice(start, start + size);
}
