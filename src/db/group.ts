/**
 * Group commit: callers hand in one item each and get their own answer, while one transaction serves all that came
 * in meanwhile. A lone item starts at once, and while a group is being committed the next one gathers; so nobody
 * waits for company, and a crowd shares a disk sync.
 *
 * When a group fails, its members are tried again each alone: one poisoned item fails by itself.
 */
const largestGroup = 200;

export function groupCommit<Item, Answer>(
  commit: (items: Item[]) => Promise<Answer[]>,
): (item: Item) => Promise<Answer> {
  type Waiting = { item: Item; resolve(answer: Answer): void; reject(error: unknown): void };
  const gathering: Waiting[] = [];
  let running = false;

  async function run(): Promise<void> {
    running = true;
    while (gathering.length > 0) {
      const group = gathering.splice(0, largestGroup);
      if (!(await settle(group))) for (const one of group) await settle([one]);
    }
    running = false;
  }

  /** False where a group of several failed and its members still wait. */
  async function settle(group: Waiting[]): Promise<boolean> {
    try {
      const answers = await commit(group.map(({ item }) => item));
      for (const [index, { resolve }] of group.entries()) resolve(answers[index]!);
      return true;
    } catch (error) {
      if (group.length > 1) return false;
      group[0]!.reject(error);
      return true;
    }
  }

  return (item) =>
    new Promise((resolve, reject) => {
      gathering.push({ item, resolve, reject });
      // Sends that arrived in the same turn of the event loop ride in the first group already.
      if (!running) {
        running = true;
        setImmediate(run);
      }
    });
}
