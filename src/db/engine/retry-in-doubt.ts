/**
 * A commit whose answer is lost with its connection may have gone through. It is asked for again until the database
 * says, for a while: so nobody is told that nothing was taken when it was. `again` makes of the item what is asked for
 * then; by it the commit knows to look for what it did before.
 */
import { setTimeout as rest } from 'node:timers/promises';
import { isAway, isInDoubt } from './unavailable.ts';

const retryDelayMs = 250;

export function retryInDoubt<Item, Answer>(
  commit: (item: Item) => Promise<Answer>,
  { again, giveUpAfterMs }: { again(item: Item): Item; giveUpAfterMs: number },
): (item: Item) => Promise<Answer> {
  return async (item) => {
    try {
      return await commit(item);
    } catch (error) {
      if (!isInDoubt(error)) throw error;
    }
    const end = performance.now() + giveUpAfterMs;
    for (;;) {
      await rest(retryDelayMs);
      try {
        return await commit(again(item));
      } catch (error) {
        if (!isAway(error) || performance.now() >= end) throw error;
      }
    }
  };
}
