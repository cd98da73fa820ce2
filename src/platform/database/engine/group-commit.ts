/**
 * Group commit: each caller passes one item and gets its own answer, while one transaction commits all items that have arrived.
 * So many items share a disk sync and the statements, which cost more. While a group is being committed, the next one gathers.
 * A single item starts at once, unless more items are known to be coming, which it then waits for briefly, or until there is
 * an occasion to be committed along with something else.
 *
 * If a group fails, each member is retried alone, so that a bad item fails by itself; but not if the database is away.
 */
import { isAway } from './unavailable.ts';

const maxGroupSize = 200;

interface Expectation {
  /** Whether enough items are coming, besides those gathered, to wait for them. */
  isComing(gathered: number): boolean;
  maxWaitMs: number;
  /** Is given `end`, which ends the wait: the items can be committed together with other work now. False: nothing waits. */
  onOccasion?(end: () => boolean): void;
}

export function groupCommit<Item, Answer>(
  commit: (items: Item[]) => Promise<Answer[]>,
  expectation: Expectation = { isComing: () => false, maxWaitMs: 0 },
): (item: Item) => Promise<Answer> {
  type Waiting = { item: Item; resolve(answer: Answer): void; reject(error: unknown): void };
  const gathering: Waiting[] = [];
  let running = false;
  /** Ends the wait for more items; null: there is none. */
  let endWait: (() => void) | null = null;
  expectation.onOccasion?.(() => {
    const isWaiting = endWait !== null;
    endWait?.();
    return isWaiting;
  });

  async function run(): Promise<void> {
    running = true;
    while (gathering.length > 0) {
      if (isWorthWaiting()) await waitForMore();
      const group = gathering.splice(0, maxGroupSize);
      if (!(await settle(group))) for (const one of group) await settle([one]);
    }
    running = false;
  }

  const isWorthWaiting = () => gathering.length < maxGroupSize && expectation.isComing(gathering.length);

  function waitForMore(): Promise<void> {
    return new Promise((resolve) => {
      endWait = () => {
        clearTimeout(timer);
        endWait = null;
        resolve();
      };
      const timer = setTimeout(endWait, expectation.maxWaitMs);
    });
  }

  /** False if a group of several failed; its members still wait. */
  async function settle(group: Waiting[]): Promise<boolean> {
    try {
      const answers = await commit(group.map(({ item }) => item));
      // Many callers take long to handle their answers, so the next commit is started first.
      setImmediate(() => {
        for (const [index, { resolve }] of group.entries()) resolve(answers[index]!);
      });
      return true;
    } catch (error) {
      if (group.length > 1 && !isAway(error)) return false;
      for (const { reject } of group) reject(error);
      return true;
    }
  }

  return (item) =>
    new Promise((resolve, reject) => {
      gathering.push({ item, resolve, reject });
      if (!isWorthWaiting()) endWait?.();
      // Items that arrive in the same turn of the event loop join the first group.
      if (!running) {
        running = true;
        setImmediate(run);
      }
    });
}
