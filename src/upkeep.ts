/**
 * Forgetting what no longer counts, a little at a time, between sends and never in their way. Each chore deletes a
 * bounded number of rows and answers how many; it is called again at once while it finds any, then after a while.
 */
import type { Clock } from './clock.ts';

export interface Chore {
  name: string;
  run(): Promise<number>;
}

const everyMs = 10 * 60_000;

/** Returns what stops it. */
export function startUpkeep(
  chores: Chore[],
  clock: Clock,
  onTrouble: (what: string, error: unknown) => void,
): () => Promise<void> {
  let stopped = false;
  let running: Promise<void> = Promise.resolve();
  let cancel = () => {};

  async function round(): Promise<void> {
    for (const { name, run } of chores) {
      try {
        while (!stopped && (await run()) > 0);
      } catch (error) {
        onTrouble(`upkeep (${name}) failed; trying again later`, error);
      }
    }
    if (!stopped) later();
  }

  function later(): void {
    cancel = clock.after(everyMs, () => {
      running = round();
    });
  }

  later();
  return async () => {
    stopped = true;
    cancel();
    await running;
  };
}
