/** Counts by key, and in all. A key whose count is 0 is not kept. */
export class CountedMap {
  readonly #counts = new Map<string, number>();
  #total = 0;

  get total(): number {
    return this.#total;
  }

  of(key: string): number {
    return this.#counts.get(key) ?? 0;
  }

  /** A negative number takes away. */
  add(key: string, count: number): void {
    const sum = this.of(key) + count;
    this.#total += count;
    if (sum > 0) this.#counts.set(key, sum);
    else this.#counts.delete(key);
  }
}
