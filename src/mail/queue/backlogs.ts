/**
 * The backlogs of one destination that have due mail, one for each organization and recipient domain. Names only; the mail
 * is rows of the database. Organizations take turns, and so do the domains of each, so that a small tenant's single mail
 * goes before the rest of a large tenant's ten thousand.
 */
import type { Backlog } from '#platform/values/glossary.ts';

/** `stamp` tells whether mail was added to the backlog after it was picked. */
export interface PickedBacklog extends Backlog {
  stamp: number;
}

export class Backlogs {
  /**
   * Keyed by organization, then by domain, each with its stamp. Maps keep the order of insertion: a served entry moves to the
   * end.
   */
  readonly #orgs = new Map<string, Map<string, number>>();
  #size = 0;
  #stamps = 0;

  get size(): number {
    return this.#size;
  }

  add({ domain, orgId }: Backlog): void {
    const domains = this.#orgs.get(orgId) ?? new Map<string, number>();
    if (!domains.has(domain)) this.#size += 1;
    domains.set(domain, ++this.#stamps);
    this.#orgs.set(orgId, domains);
  }

  /**
   * Up to `count` backlogs whose turn it is, each once. `isOpen`: whether the domain may be served. `handOver` returns true if
   * the backlog has gone to the queue of another destination; then it is no longer here.
   */
  pick(
    count: number,
    isOpen: (domain: string) => boolean,
    handOver: (backlog: Backlog) => boolean = () => false,
  ): PickedBacklog[] {
    const picked: PickedBacklog[] = [];
    const seen = new Set<string>();
    const isPickable = ({ domain, orgId }: Backlog) => isOpen(domain) && !seen.has(`${orgId} ${domain}`);
    let skipped = 0;
    while (picked.length < count && skipped < this.#orgs.size) {
      const orgId = this.#orgs.keys().next().value!;
      const next = this.#pickOf(orgId, isPickable, handOver);
      skipped = next ? 0 : skipped + 1;
      if (!next) continue;
      picked.push(next);
      seen.add(`${orgId} ${next.domain}`);
    }
    return picked;
  }

  #pickOf(
    orgId: string,
    isPickable: (backlog: Backlog) => boolean,
    handOver: (backlog: Backlog) => boolean,
  ): PickedBacklog | null {
    const domains = this.#orgs.get(orgId)!;
    this.#orgs.delete(orgId);
    this.#orgs.set(orgId, domains);
    for (const [domain, stamp] of domains) {
      const backlog = { domain, orgId };
      if (!isPickable(backlog)) continue;
      if (handOver(backlog)) {
        this.delete(backlog);
        continue;
      }
      domains.delete(domain);
      domains.set(domain, stamp);
      return { domain, orgId, stamp };
    }
    return null;
  }

  /** Whether `pick` would find any. */
  hasOpen(isOpen: (domain: string) => boolean): boolean {
    for (const domains of this.#orgs.values())
      for (const domain of domains.keys()) if (isOpen(domain)) return true;
    return false;
  }

  /** The claim found the backlog empty. Does nothing if mail was added since it was picked. */
  remove(picked: PickedBacklog): void {
    if (this.#orgs.get(picked.orgId)?.get(picked.domain) === picked.stamp) this.delete(picked);
  }

  delete({ domain, orgId }: Backlog): void {
    const domains = this.#orgs.get(orgId);
    if (!domains?.delete(domain)) return;
    this.#size -= 1;
    if (domains.size === 0) this.#orgs.delete(orgId);
  }

  removeOf(isGone: (orgId: string) => boolean): void {
    for (const [orgId, domains] of [...this.#orgs]) {
      if (!isGone(orgId)) continue;
      this.#orgs.delete(orgId);
      this.#size -= domains.size;
    }
  }

  clear(): void {
    this.#orgs.clear();
    this.#size = 0;
  }
}
