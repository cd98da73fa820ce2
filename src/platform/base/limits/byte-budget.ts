/**
 * Bounds the bytes of bodies and messages that are in memory, in all and for each owner. Bytes count when they arrive, not when
 * they are announced. What does not fit waits; after the timeout it is refused, so that half-received ones never wait for each
 * other for ever. A part of all bytes is reserved for small ones, so that large ones cannot block them.
 */
import type { Clock } from '#platform/base/clock.ts';
import { CountedMap } from './counted-map.ts';

export interface ByteBudgetParts {
  /** Bytes in all. */
  max: number;
  /** The part of them for what is at most `smallSize` bytes long. */
  reserve: number;
  /**
   * Bytes of one owner; or as many as are free beside its own (half of all if it is alone, a third if another owner does the
   * same), which does not bound what is small.
   */
  ofOne: number | 'as many as are free';
  timeoutMs: number;
  clock: Pick<Clock, 'after'>;
}

/** One body on its way: `add` when bytes of it arrive, `release` when its memory is free again. */
export interface ByteHold {
  /** Counts bytes. A promise means that they do not fit now; it resolves to false if they did not fit in time. */
  add(bytes: number): true | Promise<boolean>;
  release(): void;
}

interface Holder {
  owner: string;
  line: string;
  bytes: number;
  /** Increases with each holder. */
  number: number;
}

interface Waiting {
  holder: Holder;
  /** The bytes that the holder needs beside those that it has. */
  bytes: number;
  end(isGiven: boolean): void;
}

const smallSize = 64 * 1024;

export class ByteBudget {
  readonly #parts: ByteBudgetParts;
  readonly #held = new CountedMap();
  readonly #waiting = new Set<Waiting>();
  #opened = 0;

  constructor(parts: ByteBudgetParts) {
    this.#parts = parts;
  }

  /**
   * `line`: with whom it waits, if not with all of its owner. What waits is behind those of its line only, and is refused for the
   * sake of those only: senders that have hung up, which cannot be noticed while they wait, must not cost others their place.
   */
  open(owner: string, line = owner): ByteHold {
    this.#opened += 1;
    const holder = { owner, line, bytes: 0, number: this.#opened };
    return {
      add: (bytes) => this.#take(holder, bytes) || this.#wait(holder, bytes),
      release: () => this.#release(holder),
    };
  }

  #take(holder: Holder, bytes: number): boolean {
    if (this.#isBehind(holder, bytes) || !this.#fits(holder, bytes)) return false;
    this.#held.add(holder.owner, bytes);
    holder.bytes += bytes;
    return true;
  }

  #fits(holder: Holder, bytes: number): boolean {
    const { max, reserve, ofOne } = this.#parts;
    const isSmall = holder.bytes + bytes <= smallSize;
    const free = (isSmall ? max : max - reserve) - this.#held.total;
    if (bytes > free) return false;
    const own = this.#held.of(holder.owner) + bytes;
    return ofOne === 'as many as are free' ? isSmall || own <= free : own <= ofOne;
  }

  /** If several of one line fill its share, they would all wait for each other, so the oldest goes first. */
  #isBehind(one: Holder, bytes: number): boolean {
    if (this.#waiting.size === 0 || one.bytes + bytes <= smallSize) return false;
    return this.#waitingIn(one.line).some(({ holder }) => holder.number < one.number);
  }

  #waitingIn(line: string): Waiting[] {
    return [...this.#waiting].filter(({ holder }) => holder.line === line);
  }

  #release(holder: Holder): void {
    for (const waiting of this.#waiting) if (waiting.holder === holder) waiting.end(false);
    this.#held.add(holder.owner, -holder.bytes);
    holder.bytes = 0;
    for (const waiting of [...this.#waiting].sort((a, b) => a.holder.number - b.holder.number))
      if (this.#take(waiting.holder, waiting.bytes)) waiting.end(true);
  }

  #wait(holder: Holder, bytes: number): Promise<boolean> {
    const { clock, timeoutMs } = this.#parts;
    return new Promise((resolve) => {
      const timeUp = () => {
        const refused = this.#youngestIn(holder.line);
        refused.end(false);
        if (refused !== waiting) cancel = clock.after(timeoutMs, timeUp);
      };
      let cancel = clock.after(timeoutMs, timeUp);
      const waiting: Waiting = {
        holder,
        bytes,
        end: (isGiven) => {
          cancel();
          this.#waiting.delete(waiting);
          resolve(isGiven);
        },
      };
      this.#waiting.add(waiting);
    });
  }

  /** It loses least when it is refused. */
  #youngestIn(line: string): Waiting {
    return this.#waitingIn(line).reduce((a, b) => (a.holder.number > b.holder.number ? a : b));
  }
}
