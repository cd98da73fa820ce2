/**
 * Group commit: callers hand in one item each and get their own answer, while one transaction serves all that came
 * in meanwhile; so a crowd shares the disk sync, and the statements, which cost more. While a group is being committed
 * the next one gathers. A lone item starts at once; where company is known to be coming, it
 * is waited for, a moment.
 *
 * When a group fails, its members are tried again each alone: one poisoned item fails by itself. Where the database is
 * away, none of them would fare better.
 */
import { isAway } from './unavailable.ts';

const largestGroup = 200;

/** Whether more items are coming than are worth going without, and for how long they are waited for at most. */
interface Company {
  isComing(gathered: number): boolean;
  maxWaitMs: number;
}

const nobody: Company = { isComing: () => false, maxWaitMs: 0 };

export function groupCommit<Item, Answer>(
  commit: (items: Item[]) => Promise<Answer[]>,
  company = nobody,
): (item: Item) => Promise<Answer> {
  type Waiting = { item: Item; resolve(answer: Answer): void; reject(error: unknown): void };
  const gathering: Waiting[] = [];
  let running = false;
  /** Called when there is nobody more to wait for. */
  let goOn = () => {};

  async function run(): Promise<void> {
    running = true;
    while (gathering.length > 0) {
      if (isWorthWaiting()) await moment();
      const group = gathering.splice(0, largestGroup);
      if (!(await settle(group))) for (const one of group) await settle([one]);
    }
    running = false;
  }

  const isWorthWaiting = () => gathering.length < largestGroup && company.isComing(gathering.length);

  function moment(): Promise<void> {
    return new Promise((resolve) => {
      const timer = setTimeout(resolve, company.maxWaitMs);
      goOn = () => {
        clearTimeout(timer);
        resolve();
      };
    });
  }

  /** False where a group of several failed and its members still wait. */
  async function settle(group: Waiting[]): Promise<boolean> {
    try {
      const answers = await commit(group.map(({ item }) => item));
      // What callers do with their answers is long, of a crowd: the next group is on its way to the disk before it.
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
      if (!isWorthWaiting()) goOn();
      // Items that arrived in the same turn of the event loop ride in the first group already.
      if (!running) {
        running = true;
        setImmediate(run);
      }
    });
}
