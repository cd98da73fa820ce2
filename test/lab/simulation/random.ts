/** Seeded random numbers (sfc32). A stream of its own for each purpose, so that one more draw here changes nothing there. */
export class Random {
  #a: number;
  #b: number;
  #c: number;
  #count = 1;
  readonly #seed: string;

  constructor(seed: string) {
    this.#seed = seed;
    [this.#a, this.#b, this.#c] = [hashOf(`${seed} a`), hashOf(`${seed} b`), hashOf(`${seed} c`)];
    for (let n = 0; n < 12; n++) this.uint32();
  }

  /** Another stream, the same for the same seed and name. */
  stream(name: string): Random {
    return new Random(`${this.#seed}/${name}`);
  }

  uint32(): number {
    const sum = (this.#a + this.#b + this.#count++) | 0;
    this.#a = this.#b ^ (this.#b >>> 9);
    this.#b = (this.#c + (this.#c << 3)) | 0;
    this.#c = (((this.#c << 21) | (this.#c >>> 11)) + sum) | 0;
    return sum >>> 0;
  }

  /** From 0 up to 1. */
  readonly next = (): number => this.uint32() / 2 ** 32;

  between(min: number, max: number): number {
    return min + (max - min) * this.next();
  }

  /** From `min` to `max`, both included. */
  integer(min: number, max: number): number {
    return min + Math.floor(this.next() * (max - min + 1));
  }

  chance(probability: number): boolean {
    return this.next() < probability;
  }

  pick<Item>(items: readonly Item[]): Item {
    return items[this.integer(0, items.length - 1)]!;
  }

  /** The wait for the next of many independent events. */
  exponential(mean: number): number {
    return -Math.log(1 - this.next()) * mean;
  }

  fill(bytes: Uint8Array): void {
    for (let at = 0; at < bytes.length; at += 4) {
      const word = this.uint32();
      for (let n = 0; n < 4 && at + n < bytes.length; n++) bytes[at + n] = (word >>> (8 * n)) & 255;
    }
  }
}

/** FNV-1a. */
function hashOf(text: string): number {
  let hash = 0x811c9dc5;
  for (let at = 0; at < text.length; at++) hash = Math.imul(hash ^ text.charCodeAt(at), 0x01000193);
  return hash >>> 0;
}
