/**
 * The bytes of messages for their delivery. Small ones are read together. Large ones are read one at a time, with a pause
 * after each: to put one together, look through it and write it is milliseconds of the one thread that also serves
 * everybody else's mail, and ten of them in a row would hold that up.
 */
import { setTimeout as sleep } from 'node:timers/promises';

export interface LargeReadsParts {
  /** Null: the message is large. */
  readSmall(id: string): Promise<Buffer | null>;
  readLarge(id: string): Promise<Buffer>;
}

/** Two or three times as long as the work takes; 80 MB a second are still most of a line of 1 Gbit/s. */
const pauseMsPerMegabyte = 12;

export function createReads({ readSmall, readLarge }: LargeReadsParts): (id: string) => Promise<Buffer> {
  let last: Promise<unknown> = Promise.resolve();
  return async (id) => {
    const small = await readSmall(id);
    if (small) return small;
    const read = last.then(() => readLarge(id));
    last = read.then(
      ({ length }) => sleep((length / 1e6) * pauseMsPerMegabyte),
      () => {},
    );
    return read;
  };
}
