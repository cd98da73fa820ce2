/**
 * The ready queues of all destinations that this node sends to, the backlogs that are known to have due mail for each, and
 * what blocks it: the operator's suspensions and the queue's own limits.
 *
 * Backlogs are noted by the scans, by other nodes, and for the mail that this node itself has put there; those of mail that
 * another node sends are not. If a destination is unknown, it is looked up first, for a bounded number of backlogs at a time,
 * so that a long queue of unknown domains does not hold up the look-ups of new mail.
 */

import { type Clock, isRecent } from '#platform/base/clock.ts';
import { limitConcurrency } from '#platform/base/limits/slots.ts';
import { orAborted } from '#platform/base/waits.ts';
import type { Destination } from '#platform/values/destination-shape.ts';
import type { Backlog } from '#platform/values/glossary.ts';
import { ReadyQueue } from './ready-queue.ts';
import { noPeers, type Ownership, type Peers } from './share.ts';

export interface Suspension {
  /** A recipient domain or a destination's name. */
  destination: string;
  reason: string;
  until: number;
}

export interface ReadyQueuesParts {
  /** The destination of a domain (mail/deliver/route/route-cache.ts); null if it has to be looked up first. */
  destinationOf(domain: string): Destination | null;
  /** Looks up a domain that `destinationOf` does not know. Never rejects. */
  resolve(domain: string): Promise<Destination>;
  /** Mail for this domain waits for this destination: for the operator's view (mail/record/destination-publisher.ts). */
  onWaiting(domain: string, destination: string): void;
  /** Tells other nodes that mail waits in this backlog, which this node leaves to them (mail/queue/rows/notify.ts). */
  notifyOthers(backlog: Backlog): void;
  ownership: Pick<Ownership, 'isOurs'>;
  peers?: Pick<Peers, 'share' | 'states'>;
  /** There is room for mail of a backlog. */
  requestClaim(): void;
  /** Ends the look-ups. */
  stopping: AbortSignal;
  clock: Clock;
}

/** Backlogs that other nodes serve are remembered this long, in case this node gets a share. */
const keepBacklogsMs = 30_000;
const maxLookUps = 100;
/** Above this number, idle ready queues are forgotten with what they have learned. */
const maxReadyQueues = 5_000;

export class ReadyQueues {
  /** Ready queues with backlogs or ready deliveries; no other needs a look. Served in turn, from the front. */
  readonly active = new Set<ReadyQueue>();
  readonly #parts: ReadyQueuesParts;
  readonly #peers: Pick<Peers, 'share' | 'states'>;
  readonly #clock: Clock;
  readonly #byName = new Map<string, ReadyQueue>();
  /** Backlogs whose destination is being looked up, and whether each was noted as a retry. */
  readonly #unknown = new Map<string, boolean>();
  readonly #inTurn = limitConcurrency(maxLookUps);
  #suspensions = new Map<string, Suspension>();
  #clearedAt: number;

  constructor(parts: ReadyQueuesParts) {
    this.#parts = parts;
    this.#peers = parts.peers ?? noPeers;
    this.#clock = parts.clock;
    this.#clearedAt = parts.clock.now();
  }

  of(destination: Destination): ReadyQueue {
    const known = this.#byName.get(destination.name);
    if (known) {
      known.setShape(destination.shape);
      return known;
    }
    const readyQueue = new ReadyQueue(destination, this.#peers.share(destination.name));
    this.#byName.set(destination.name, readyQueue);
    readyQueue.mergePeerStates(this.#peers.states(destination.name));
    return readyQueue;
  }

  find(domain: string): ReadyQueue | null {
    const destination = this.#parts.destinationOf(domain);
    return destination && this.of(destination);
  }

  /** The ready queue of a domain that `find` does not know; null if this node stops before the answer. */
  async lookUp(domain: string): Promise<ReadyQueue | null> {
    const { resolve, stopping } = this.#parts;
    if (stopping.aborted) return null;
    const destination = await orAborted(resolve(domain), stopping).catch((error) => {
      if (stopping.aborted) return null;
      throw error;
    });
    return destination && this.of(destination);
  }

  all(): Iterable<ReadyQueue> {
    return this.#byName.values();
  }

  /** Mail in this backlog is due. `isRetry`: some of it has just fallen due for another attempt. */
  note(backlog: Backlog, isRetry = false): void {
    if (!this.#parts.ownership.isOurs(backlog.orgId)) return;
    const readyQueue = this.find(backlog.domain);
    if (readyQueue) this.#add(readyQueue, backlog, isRetry);
    else void this.#addUnknown(backlog, isRetry);
  }

  /**
   * If the backlog belongs to another destination than that of `from` by now, its queue gets it: true. While the route is
   * unknown the backlog keeps its place, because thousands of domains of one destination would lose their turns together.
   */
  handOver(from: ReadyQueue, backlog: Backlog): boolean {
    const current = this.find(backlog.domain);
    if (current === null || current === from) return false;
    if (this.#parts.ownership.isOurs(backlog.orgId)) this.#add(current, backlog, false);
    return true;
  }

  /** This node has put mail into the backlog. Other nodes do not know of it yet. */
  announce(backlog: Backlog): void {
    this.note(backlog);
    this.#tellOthers(backlog);
  }

  /**
   * A lease was released: the mail waits in its backlog again. Asks for no claim, or one that must be released again would
   * follow at once.
   */
  noteReleased(backlog: Backlog): void {
    const readyQueue = this.#parts.ownership.isOurs(backlog.orgId) ? this.find(backlog.domain) : null;
    if (readyQueue) this.#put(readyQueue, backlog);
    else this.note(backlog);
    this.#tellOthers(backlog);
  }

  #tellOthers(backlog: Backlog): void {
    const isOurs = this.#parts.ownership.isOurs(backlog.orgId);
    if (!isOurs || this.find(backlog.domain)?.hasNoShare()) this.#parts.notifyOthers(backlog);
  }

  #add(readyQueue: ReadyQueue, backlog: Backlog, isRetry: boolean): void {
    const now = this.#clock.now();
    this.#put(readyQueue, backlog);
    if (this.suspension(readyQueue, backlog.domain)) return;
    if (isRetry) readyQueue.allowProbe(now);
    if (readyQueue.freeSlots(now) > 0) this.#parts.requestClaim();
  }

  #put(readyQueue: ReadyQueue, { domain, orgId }: Backlog): void {
    readyQueue.backlogs.add({ domain, orgId });
    this.active.add(readyQueue);
    this.#parts.onWaiting(domain, readyQueue.name);
  }

  async #addUnknown({ domain, orgId }: Backlog, isRetry: boolean): Promise<void> {
    const name = `${orgId} ${domain}`;
    const wasRetry = this.#unknown.get(name);
    this.#unknown.set(name, isRetry || wasRetry === true);
    if (wasRetry !== undefined) return;
    const readyQueue = await this.#inTurn(() => this.lookUp(domain));
    const isRetryNow = this.#unknown.get(name)!;
    this.#unknown.delete(name);
    if (readyQueue && this.#parts.ownership.isOurs(orgId))
      this.#add(readyQueue, { domain, orgId }, isRetryNow);
  }

  removeBacklogsOf(isGone: (orgId: string) => boolean): void {
    for (const readyQueue of this.active) readyQueue.backlogs.removeOf(isGone);
  }

  /** Ready mail waits under the limits of today, not of the time when it was leased. */
  refreshShapes(): void {
    for (const { ready } of this.active) if (ready[0]) this.find(ready[0].domain);
  }

  /** It has been served: the others come first now. */
  moveToBack(readyQueue: ReadyQueue): void {
    this.active.delete(readyQueue);
    this.active.add(readyQueue);
  }

  suspend(suspensions: Suspension[]): void {
    this.#suspensions = new Map(suspensions.map((one) => [one.destination, one]));
  }

  suspension(readyQueue: ReadyQueue, domain: string): Suspension | null {
    const found = this.#suspensions.get(readyQueue.name) ?? this.#suspensions.get(domain);
    return found && found.until > this.#clock.now() ? found : null;
  }

  /** There is room for mail of a backlog that may be served. */
  mayClaim(readyQueue: ReadyQueue, now: number): boolean {
    const { backlogs, name } = readyQueue;
    if (backlogs.size === 0 || readyQueue.freeSlots(now) <= 0) return false;
    return (
      this.suspension(readyQueue, name) === null &&
      backlogs.hasOpen((domain) => this.suspension(readyQueue, domain) === null)
    );
  }

  /** Something could start, or be claimed, at once. */
  hasWork(): boolean {
    const now = this.#clock.now();
    for (const readyQueue of this.active) {
      if (readyQueue.ready.length > 0 && readyQueue.mayStart(now)) return true;
      if (this.mayClaim(readyQueue, now)) return true;
    }
    return false;
  }

  /** Why mail of this domain cannot start within the next seconds; null if it can. */
  blockedReason(readyQueue: ReadyQueue, domain: string): string | null {
    const suspension = this.suspension(readyQueue, domain);
    if (suspension) return `suspended by the operator: ${suspension.reason}`;
    return readyQueue.blockedReason(this.#clock.now());
  }

  /** Takes over what other nodes have published, and now and then forgets the backlogs that they serve. */
  mergePeerStates(): void {
    for (const readyQueue of this.#byName.values()) {
      readyQueue.mergePeerStates(this.#peers.states(readyQueue.name));
    }
    const now = this.#clock.now();
    if (isRecent(this.#clearedAt, now, keepBacklogsMs)) return;
    this.#clearedAt = now;
    for (const readyQueue of this.#byName.values()) {
      if (readyQueue.hasNoShare() && !readyQueue.isCircuitOpen()) readyQueue.backlogs.clear();
    }
  }

  /** When something can start that cannot start now, always later than now; infinite if time alone changes nothing. */
  wakeAt(now: number): number {
    let at = Number.POSITIVE_INFINITY;
    for (const readyQueue of this.active) at = Math.min(at, readyQueue.wakeAt(now));
    return at;
  }

  forgetIdle(): void {
    for (const readyQueue of this.#byName.values()) {
      if (this.#byName.size <= maxReadyQueues) return;
      if (readyQueue.isIdle()) this.#byName.delete(readyQueue.name);
    }
  }
}
