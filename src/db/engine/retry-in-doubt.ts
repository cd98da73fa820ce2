/**
 * A commit whose answer is lost with its connection may have gone through. It is asked for again until the database
 * says, for a while: so nobody is told that nothing was taken when it was. `again` makes of the item what is asked for
 * then; by it the commit knows to look for what it did before.
 */
import { setTimeout as rest } from 'node:timers/promises';
import { isAway, isInDoubt } from './unavailable.ts';

const againMs = 250;

export function untilSure<Item, Answer>(
  commit: (item: Item) => Promise<Answer>,
  { again, patienceMs }: { again(item: Item): Item; patienceMs: number },
): (item: Item) => Promise<Answer> {
  return async (item) => {
    try {
      return await commit(item);
    } catch (error) {
      if (!isInDoubt(error)) throw error;
    }
    const end = performance.now() + patienceMs;
    for (;;) {
      await rest(againMs);
      try {
        return await commit(again(item));
      } catch (error) {
        if (!isAway(error) || performance.now() >= end) throw error;
      }
    }
  };
}
