/**
 * Decides which order is composed next: start-time fair queueing over organizations. Each has a virtual time, which
 * advances by the cost of every order that is taken; the organization with the lowest is next. So an organization with few
 * small orders goes before the rest of another's many or large ones. An organization that had no orders starts at the
 * current virtual time; all start again at zero when no order waits.
 *
 * Small and large orders are taken separately, because they go to different threads. Within an organization, each kind is
 * taken in the order of arrival.
 */
interface Turn<Item> {
  orgId: string;
  cost: number;
  isLarge: boolean;
  item: Item;
}

interface OrgTurns<Item> {
  virtualTime: number;
  small: Turn<Item>[];
  large: Turn<Item>[];
}

export class FairTurns<Item> {
  readonly #orgs = new Map<string, OrgTurns<Item>>();
  readonly #counts = { small: 0, large: 0 };
  /** The virtual time of the turn that was taken last. */
  #now = 0;

  add(turn: Turn<Item>): void {
    const { orgId, isLarge } = turn;
    const org = this.#orgs.get(orgId) ?? { virtualTime: this.#now, small: [], large: [] };
    if (isEmpty(org)) org.virtualTime = Math.max(org.virtualTime, this.#now);
    org[kindOf(isLarge)].push(turn);
    this.#counts[kindOf(isLarge)] += 1;
    this.#orgs.set(orgId, org);
  }

  /** The next large turn, or the next of the others; null if there is none. */
  take(isLarge: boolean): Turn<Item> | null {
    const kind = kindOf(isLarge);
    const org = this.#lowest(kind);
    if (!org) return null;
    const turn = org[kind].shift()!;
    this.#counts[kind] -= 1;
    this.#now = Math.max(this.#now, org.virtualTime);
    org.virtualTime += turn.cost;
    if (this.#counts.small + this.#counts.large === 0) this.#reset();
    return turn;
  }

  count(isLarge: boolean): number {
    return this.#counts[kindOf(isLarge)];
  }

  /** The number of waiting orders of the organization. */
  countOf(orgId: string): number {
    const org = this.#orgs.get(orgId);
    return org ? org.small.length + org.large.length : 0;
  }

  /** The number of organizations with waiting orders, including this one. */
  waitingOrgs(orgId: string): number {
    return [...this.#orgs].filter(([other, org]) => other !== orgId && !isEmpty(org)).length + 1;
  }

  /** Removes and returns all. */
  clear(): Item[] {
    const turns = [...this.#orgs.values()].flatMap(({ small, large }) => [...small, ...large]);
    this.#reset();
    this.#counts.small = 0;
    this.#counts.large = 0;
    return turns.map(({ item }) => item);
  }

  #lowest(kind: 'small' | 'large'): OrgTurns<Item> | null {
    let found: OrgTurns<Item> | null = null;
    for (const [orgId, org] of this.#orgs) {
      if (isEmpty(org) && org.virtualTime <= this.#now) this.#orgs.delete(orgId);
      else if (org[kind].length > 0 && (found === null || org.virtualTime < found.virtualTime)) found = org;
    }
    return found;
  }

  #reset(): void {
    this.#orgs.clear();
    this.#now = 0;
  }
}

function kindOf(isLarge: boolean): 'small' | 'large' {
  return isLarge ? 'large' : 'small';
}

function isEmpty({ small, large }: OrgTurns<unknown>): boolean {
  return small.length + large.length === 0;
}
