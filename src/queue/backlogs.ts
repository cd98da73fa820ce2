/**
 * Which lanes a destination has due mail in: an organization's mail for one domain each. Names only; the mail is
 * rows of the database. Organizations take turns, and so do the domains of one, so that the one mail of a small
 * tenant goes before the rest of a large tenant's ten thousand.
 */
export interface Backlog {
  domain: string;
  orgId: string;
}

/** A lane that was picked; `stamp` tells whether anything has come to wait there since. */
export interface PickedBacklog extends Backlog {
  stamp: number;
}

export interface Backlogs {
  readonly size: number;
  add(backlog: Backlog): void;
  /** Up to `count` lanes whose turn it is, each once. `isOpen`: whether the domain may be served. */
  pick(count: number, isOpen: (domain: string) => boolean): PickedBacklog[];
  /** The lane was found empty when it was picked. */
  remove(pick: PickedBacklog): void;
  /** Forgets the lanes of these organizations. */
  removeOf(isGone: (orgId: string) => boolean): void;
  clear(): void;
  /** The domains that have lanes here. */
  domains(): Set<string>;
}

export function createBacklogs(): Backlogs {
  // Maps keep the order of insertion: whose turn has passed is put in again at the end.
  const orgs = new Map<string, Map<string, number>>();
  let size = 0;
  let stamps = 0;

  function turn(orgId: string, isOpen: (domain: string) => boolean): PickedBacklog | null {
    const domains = orgs.get(orgId)!;
    orgs.delete(orgId);
    orgs.set(orgId, domains);
    for (const [domain, stamp] of domains) {
      if (!isOpen(domain)) continue;
      domains.delete(domain);
      domains.set(domain, stamp);
      return { domain, orgId, stamp };
    }
    return null;
  }

  return {
    get size() {
      return size;
    },
    add({ domain, orgId }) {
      const domains = orgs.get(orgId) ?? new Map<string, number>();
      if (!domains.has(domain)) size += 1;
      domains.set(domain, ++stamps);
      orgs.set(orgId, domains);
    },
    pick(count, isOpen) {
      const picked: PickedBacklog[] = [];
      const seen = new Set<string>();
      const isPickable = (orgId: string) => (domain: string) =>
        isOpen(domain) && !seen.has(`${orgId} ${domain}`);
      let skipped = 0;
      while (picked.length < count && skipped < orgs.size) {
        const orgId = orgs.keys().next().value!;
        const pick = turn(orgId, isPickable(orgId));
        skipped = pick ? 0 : skipped + 1;
        if (!pick) continue;
        picked.push(pick);
        seen.add(`${orgId} ${pick.domain}`);
      }
      return picked;
    },
    remove({ domain, orgId, stamp }) {
      const domains = orgs.get(orgId);
      if (domains?.get(domain) !== stamp) return;
      domains.delete(domain);
      size -= 1;
      if (domains.size === 0) orgs.delete(orgId);
    },
    removeOf(isGone) {
      for (const [orgId, domains] of [...orgs]) {
        if (!isGone(orgId)) continue;
        orgs.delete(orgId);
        size -= domains.size;
      }
    },
    clear() {
      orgs.clear();
      size = 0;
    },
    domains: () => new Set([...orgs.values()].flatMap((domains) => [...domains.keys()])),
  };
}
