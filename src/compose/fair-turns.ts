/**
 * Whose order is composed next. Organizations take turns by what their orders cost (start-time fair queueing): each has
 * a mark that moves on by the cost of every order that is taken, and who has the lowest is next. So whoever has few small
 * orders goes before the rest of another's many or large ones. One that comes anew begins where the others are now; what
 * it has been given before is not held against it once nobody waits.
 *
 * Small and large orders are taken apart, for they go to threads of their own; of an organization's own, each kind is in
 * the order of arrival.
 */
interface Turn<Item> {
  orgId: string;
  cost: number;
  isLarge: boolean;
  item: Item;
}

interface Turns<Item> {
  add(turn: Turn<Item>): void;
  /** The next of the large ones, or of the others; null where there is none. */
  take(isLarge: boolean): Turn<Item> | null;
  count(isLarge: boolean): number;
  /** How many orders of the organization wait. */
  countOf(orgId: string): number;
  /** How many organizations wait, this one among them. */
  waitingOrgs(orgId: string): number;
  /** Takes all. */
  clear(): Item[];
}

interface Account<Item> {
  virtualTime: number;
  small: Turn<Item>[];
  large: Turn<Item>[];
}

export function createTurns<Item>(): Turns<Item> {
  const shares = new Map<string, Account<Item>>();
  const counts = { small: 0, large: 0 };
  /** Where the last one stood that was taken. */
  let now = 0;

  const kindOf = (isLarge: boolean) => (isLarge ? 'large' : 'small');
  const isEmpty = ({ small, large }: Account<Item>) => small.length + large.length === 0;

  function lowest(kind: 'small' | 'large'): Account<Item> | null {
    let found: Account<Item> | null = null;
    for (const [orgId, share] of shares) {
      if (isEmpty(share) && share.virtualTime <= now) shares.delete(orgId);
      else if (share[kind].length > 0 && (found === null || share.virtualTime < found.virtualTime))
        found = share;
    }
    return found;
  }

  function reset(): void {
    shares.clear();
    now = 0;
  }

  return {
    add(turn) {
      const { orgId, isLarge } = turn;
      const share = shares.get(orgId) ?? { virtualTime: now, small: [], large: [] };
      if (isEmpty(share)) share.virtualTime = Math.max(share.virtualTime, now);
      share[kindOf(isLarge)].push(turn);
      counts[kindOf(isLarge)] += 1;
      shares.set(orgId, share);
    },
    take(isLarge) {
      const kind = kindOf(isLarge);
      const share = lowest(kind);
      if (!share) return null;
      const turn = share[kind].shift()!;
      counts[kind] -= 1;
      now = Math.max(now, share.virtualTime);
      share.virtualTime += turn.cost;
      if (counts.small + counts.large === 0) reset();
      return turn;
    },
    count: (isLarge) => counts[kindOf(isLarge)],
    countOf(orgId) {
      const share = shares.get(orgId);
      return share ? share.small.length + share.large.length : 0;
    },
    waitingOrgs(orgId) {
      const others = [...shares].filter(([other, share]) => other !== orgId && !isEmpty(share));
      return others.length + 1;
    },
    clear() {
      const items = [...shares.values()].flatMap(({ small, large }) =>
        [...small, ...large].map(({ item }) => item),
      );
      reset();
      counts.small = 0;
      counts.large = 0;
      return items;
    },
  };
}
