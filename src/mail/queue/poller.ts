/**
 * Decides when the claimer looks at the queue without being told to, and reads what others have changed.
 *
 * Time lets mail fall due, and allows a start at a destination that has a rate or asked us to slow down. And once a second
 * the poller asks whether the database has anything new, because the command line and other nodes change the queue without
 * telling this node. While it has not, nothing is read again: a poll claims what may start now, such as the probe of an open
 * circuit, and otherwise only sets the next poll, whatever waits.
 */
import { type Clock, isRecent, untilPoll } from '#platform/base/clock.ts';
import type { Attempts, Dispatcher } from './dispatcher.ts';
import { maxPerClaim } from './lease-policy.ts';
import type { ReadyQueues } from './ready-queues.ts';
import type { Ownership, Peers } from './share.ts';
import type { Store } from './store.ts';

/** All but the clock are the runner's. */
export interface PollerParts {
  store: Pick<Store, 'lookFor' | 'suspensions' | 'claimRefused' | 'readPools' | 'publish'>;
  peers: Peers;
  ownership: Ownership;
  attempts: Pick<Attempts, 'refused'>;
  readyQueues: ReadyQueues;
  dispatcher: Dispatcher;
  isRunning(): boolean;
  /** A claim is under way. */
  isClaiming(): boolean;
  /** Time has come to look; `hasChanged`: and something may have been committed since the last look. */
  onTime(hasChanged: boolean): void;
  /** Nothing is new, but mail that is known may start. */
  onRoom(): void;
  /** When a scan of all backlogs is due. */
  nextScanAt(): number;
  clock: Clock;
  /** After this time, a poll looks even if nothing has changed: the others must hear of this node. */
  maxQuietMs: number;
}

export const pollMs = 1000;

export class Poller {
  readonly #parts: PollerParts;
  readonly #clock: Clock;
  #readAt = Number.NEGATIVE_INFINITY;
  /** At this time nothing had been committed since the last read and scan. */
  #unchangedAt = Number.NEGATIVE_INFINITY;
  #scannedAt = Number.NEGATIVE_INFINITY;
  #wakeAt = Number.POSITIVE_INFINITY;
  #cancelTimer = () => {};

  constructor(parts: PollerParts) {
    this.#parts = parts;
    this.#clock = parts.clock;
  }

  /** A time that has passed is ignored: it changes nothing by itself, and would make poll follow poll. */
  wakeUpAt(at: number): void {
    const wait = at - this.#clock.now();
    if (!this.#parts.isRunning() || wait <= 0 || at >= this.#wakeAt) return;
    this.#cancelTimer();
    this.#wakeAt = at;
    this.#cancelTimer = this.#clock.after(wait, () => {
      this.#wakeAt = Number.POSITIVE_INFINITY;
      void this.#poll();
    });
  }

  /** The claimer has done all that it could: wakes up when more is possible, and a second after the last scan. */
  schedule(scannedAt: number): void {
    const now = this.#clock.now();
    this.#scannedAt = scannedAt;
    this.wakeUpAt(this.#parts.readyQueues.wakeAt(now));
    const nextAt = Math.min(Math.max(Math.min(scannedAt, this.#readAt), this.#unchangedAt), now) + pollMs;
    this.wakeUpAt(nextAt);
    // The work took longer than a second. The scan and the reading that follow renew both times.
    if (nextAt <= now) this.#parts.onTime(true);
  }

  /**
   * Once a second: reads what the operator and the other nodes have changed, and publishes this node's state. True if there
   * may be mail that this node did not send before.
   */
  async readChanges(): Promise<boolean> {
    const now = this.#clock.now();
    if (isRecent(Math.max(this.#readAt, this.#unchangedAt), now, pollMs)) return false;
    this.#readAt = now;
    await this.#followRules(now);
    const hasPools = await this.#readPools(now);
    await this.#exchangeStates(now);
    return hasPools;
  }

  stop(): void {
    this.#cancelTimer();
  }

  async #followRules(now: number): Promise<void> {
    const { store, attempts, readyQueues, dispatcher } = this.#parts;
    const suspensions = await store.suspensions(now);
    readyQueues.suspend(suspensions);
    if (suspensions.length > 0) dispatcher.placeReadyAgain();
    readyQueues.refreshShapes();
    for (const { delivery, reason } of await store.claimRefused(now, maxPerClaim))
      dispatcher.end(delivery, attempts.refused(delivery.domain, reason));
  }

  /** True if the organizations whose mail this node sends have changed. */
  async #readPools(now: number): Promise<boolean> {
    const { store, ownership, readyQueues, dispatcher } = this.#parts;
    const hasChanged = await store.readPools(now);
    if (hasChanged) {
      readyQueues.removeBacklogsOf((orgId) => !ownership.isOurs(orgId));
      dispatcher.placeReadyAgain();
    }
    return hasChanged;
  }

  /** The state comes first: when the others read that this node has given up a share, they can see what it still uses. */
  async #exchangeStates(now: number): Promise<void> {
    const { store, peers, readyQueues } = this.#parts;
    await store.publish(readyQueues.all(), now);
    await peers.exchange();
    readyQueues.mergePeerStates();
    readyQueues.forgetIdle();
  }

  async #poll(): Promise<void> {
    const { readyQueues, onTime, onRoom } = this.#parts;
    const quietUntil = this.#isAlone() ? await this.#quietUntil() : Number.NEGATIVE_INFINITY;
    const now = this.#clock.now();
    if (quietUntil <= now || !this.#isAlone()) return onTime(quietUntil === Number.NEGATIVE_INFINITY);
    this.#unchangedAt = now;
    if (readyQueues.hasWork()) onRoom();
    else this.wakeUpAt(Math.min(now + untilPoll(now, pollMs), quietUntil, readyQueues.wakeAt(now)));
  }

  /** No claim is under way and no other node counts, so this node's state can be used as it is. */
  #isAlone(): boolean {
    const { isClaiming, peers } = this.#parts;
    return !isClaiming() && !peers.hasOthers();
  }

  async #quietUntil(): Promise<number> {
    const { store, maxQuietMs, nextScanAt } = this.#parts;
    try {
      const { hasChanged, nextAt } = await store.lookFor(this.#scannedAt);
      if (!hasChanged) return Math.min(await nextAt(), this.#readAt + maxQuietMs, nextScanAt());
    } catch {
      // The look reports it.
    }
    return Number.NEGATIVE_INFINITY;
  }
}
