/**
 * Retries a commit whose answer was lost with its connection: it may have succeeded, and the caller must not be told that it
 * failed. Retries until the database answers or `giveUpAfterMs` has passed. `markAsRetry` marks the item as a retry, so that the
 * commit looks for what its first try wrote.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { isAway, isInDoubt } from './unavailable.ts';

const retryDelayMs = 250;

export function retryInDoubt<Item, Answer>(
  commit: (item: Item) => Promise<Answer>,
  { markAsRetry, giveUpAfterMs }: { markAsRetry(item: Item): Item; giveUpAfterMs: number },
): (item: Item) => Promise<Answer> {
  return async (item) => {
    try {
      return await commit(item);
    } catch (error) {
      if (!isInDoubt(error)) throw error;
    }
    const end = performance.now() + giveUpAfterMs;
    for (;;) {
      await sleep(retryDelayMs);
      try {
        return await commit(markAsRetry(item));
      } catch (error) {
        if (!isAway(error) || performance.now() >= end) throw error;
      }
    }
  };
}
