/**
 * Reads the bytes of messages for their delivery. Small messages are read together. Large ones are read one at a time,
 * with a pause after each: reading, scanning and writing one takes milliseconds of the only thread, and ten in a row would
 * delay everyone else's mail.
 */
import { setTimeout as sleep } from 'node:timers/promises';

/** Two or three times as long as the work takes. It still allows 80 MB a second, most of a 1 Gbit/s link. */
const pauseMsPerMegabyte = 12;

/** `readSmall` resolves to null if the message is large. */
export function createReads(
  readSmall: (id: string) => Promise<Buffer | null>,
  readLarge: (id: string) => Promise<Buffer>,
): (id: string) => Promise<Buffer> {
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
