/**
 * Slots for what is in progress: so many in all, and so many of one owner. `take` refuses what is beyond the limits, `enter` waits
 * for a slot. Who waits is admitted in order of arrival, but never behind another owner that has all its slots.
 */
import { CountedMap } from './counted-map.ts';

export interface SlotLimits {
  inAll?: number;
  /** As many as are free beside its own: half of all if it is alone, a third if another owner does the same. */
  ofOne?: number | 'as many as are free';
}

interface Waiting {
  owner: string;
  count: number;
  /** With the function that frees the slots; null: the wait has ended without one. */
  end(free: (() => void) | null): void;
}

export class Slots {
  readonly #inAll: number;
  readonly #ofOne: number | 'as many as are free';
  readonly #taken = new CountedMap();
  readonly #waiting = new Set<Waiting>();
  readonly #waitingOf = new CountedMap();

  constructor({ inAll = Number.POSITIVE_INFINITY, ofOne = Number.POSITIVE_INFINITY }: SlotLimits) {
    this.#inAll = inAll;
    this.#ofOne = ofOne;
  }

  get taken(): CountedMap {
    return this.#taken;
  }

  get waiting(): CountedMap {
    return this.#waitingOf;
  }

  /** The function that frees the slots, however often it is called; or the limit that is reached. */
  take(owner = '', count = 1): (() => void) | 'in all' | 'of one' {
    const free = this.#inAll - this.#taken.total;
    const max = this.#ofOne === 'as many as are free' ? free : this.#ofOne;
    if (this.#taken.of(owner) + count > max) return 'of one';
    if (count > free) return 'in all';
    this.#taken.add(owner, count);
    let isTaken = true;
    return () => {
      if (!isTaken) return;
      isTaken = false;
      this.#taken.add(owner, -count);
      this.#admit();
    };
  }

  /** Takes slots, all of them together, as soon as they are free. Null if `signal` ends the wait. */
  async enter(
    owner = '',
    { count = 1, signal }: { count?: number; signal?: AbortSignal } = {},
  ): Promise<(() => void) | null> {
    if (signal?.aborted) return null;
    const free = this.#waitingOf.of(owner) === 0 && this.take(owner, count);
    if (typeof free === 'function') return free;
    return new Promise((resolve) => {
      const stop = () => {
        waiting.end(null);
        // The next in line may need fewer slots.
        this.#admit();
      };
      const waiting: Waiting = {
        owner,
        count,
        end: (freed) => {
          signal?.removeEventListener('abort', stop);
          this.#waiting.delete(waiting);
          this.#waitingOf.add(owner, -1);
          resolve(freed);
        },
      };
      signal?.addEventListener('abort', stop);
      this.#waiting.add(waiting);
      this.#waitingOf.add(owner, 1);
    });
  }

  #admit(): void {
    const passed = new Set<string>();
    for (const waiting of this.#waiting) {
      if (this.#taken.total >= this.#inAll) return;
      if (passed.has(waiting.owner)) continue;
      const free = this.take(waiting.owner, waiting.count);
      if (typeof free === 'function') waiting.end(free);
      else passed.add(waiting.owner);
    }
  }
}

/** Runs at most `max` tasks at once. The others wait, first come, first served. */
export function limitConcurrency(max: number): <T>(task: () => Promise<T>) => Promise<T> {
  const slots = new Slots({ inAll: max });
  return async (task) => {
    const taken = slots.take();
    const free = typeof taken === 'function' ? taken : await slots.enter();
    try {
      return await task();
    } finally {
      free?.();
    }
  };
}
