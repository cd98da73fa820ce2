/**
 * The leases that this node holds, each from the moment its delivery is in memory until its outcome is recorded or it is
 * released. They are renewed for that long, because an SMTP session may last longer than a lease.
 *
 * A lease that could not be renewed runs out, and no attempt starts on it, because another node may have the delivery by
 * then. An attempt that is under way continues; its outcome is ignored if another node has taken over
 * (mail/queue/rows/outcomes.ts). Leases of other nodes are taken over only after this node has renewed its own twice in a
 * row: after an outage of the database, a node that is alive must be able to renew its leases first.
 *
 * Leases that cannot be used are released, many in one commit, until that is done: no other node frees them while this one
 * is alive.
 */

import { type Clock, isRecent } from '#platform/base/clock.ts';
import { pause } from '#platform/base/waits.ts';
import type { Delivery } from '#platform/values/glossary.ts';
import type { Store } from './store.ts';

export interface HeldLeasesParts {
  store: Pick<Store, 'renewLeases' | 'freeOrphans' | 'releaseLeases'>;
  /** Takes over the expired leases of other nodes. */
  takeOver(): Promise<void>;
  /** The delivery waits in its backlog again. */
  onReleased(delivery: Delivery): void;
  leaseMs: number;
  onError(what: string, error: unknown): void;
  clock: Clock;
  /** There is no time left to retry. */
  stopped: AbortSignal;
}

const renewRetryMs = 5_000;
const releaseRetryMs = 1_000;
const roundsBeforeTakeOver = 2;
const maxPerRelease = 200;

export class HeldLeases {
  readonly #parts: HeldLeasesParts;
  readonly #held = new Map<string, { delivery: Delivery; until: number }>();
  readonly #releasing = new Map<string, Delivery>();
  readonly #intervalMs: number;
  /** Shorter than the lease, to allow for the time that the database's answer takes and for clocks that differ a little. */
  readonly #usableMs: number;
  #rounds = 0;
  #renewedAt = 0;
  #isStopping = false;
  #renewal = Promise.resolve();
  #release: Promise<void> | null = null;
  #cancelTimer = () => {};

  constructor(parts: HeldLeasesParts) {
    this.#parts = parts;
    this.#intervalMs = parts.leaseMs / 6;
    this.#usableMs = parts.leaseMs - this.#intervalMs;
  }

  start(): void {
    this.#renewedAt = this.#parts.clock.now();
    this.#schedule(this.#intervalMs);
  }

  begin(delivery: Delivery): void {
    // It could be leased, so it has been released, even if the answer to that was lost.
    this.#releasing.delete(delivery.id);
    this.#held.set(delivery.id, { delivery, until: this.#parts.clock.now() + this.#usableMs });
  }

  /** Its outcome is recorded. */
  end(delivery: Delivery): void {
    if (this.#held.get(delivery.id)?.delivery === delivery) this.#held.delete(delivery.id);
  }

  isGood(delivery: Delivery): boolean {
    const lease = this.#held.get(delivery.id);
    return lease?.delivery === delivery && this.#parts.clock.now() < lease.until;
  }

  release(delivery: Delivery): void {
    this.#releasing.set(delivery.id, delivery);
    // Starts in the next microtask, so that leases released together share a commit.
    this.#release ??= Promise.resolve()
      .then(() => this.#releaseAll())
      .finally(() => {
        this.#release = null;
      });
  }

  async stop(): Promise<void> {
    while (this.#release) await this.#release;
    this.#isStopping = true;
    this.#cancelTimer();
    await this.#renewal;
  }

  #schedule(ms: number): void {
    this.#cancelTimer = this.#parts.clock.after(ms, () => {
      this.#renewal = this.#renew();
    });
  }

  async #renew(): Promise<void> {
    const { store, takeOver, onError, clock } = this.#parts;
    // After a leap of the clock, leases whose commit is under way seem to be old.
    const isOnTime = isRecent(this.#renewedAt, clock.now(), 2 * this.#intervalMs);
    this.#renewedAt = clock.now();
    try {
      await this.#renewAll();
      if (isOnTime) await store.freeOrphans();
      if (this.#rounds >= roundsBeforeTakeOver) await takeOver();
      this.#rounds += 1;
    } catch (error) {
      this.#rounds = 0;
      onError('leases could not be renewed; retrying in 5 s', error);
    }
    if (!this.#isStopping) this.#schedule(this.#rounds > 0 ? this.#intervalMs : renewRetryMs);
  }

  async #renewAll(): Promise<void> {
    const leases = [...this.#held];
    if (leases.length === 0) return;
    const startedAt = this.#parts.clock.now();
    const renewed = await this.#parts.store.renewLeases(leases.map(([id]) => id));
    for (const [id, lease] of leases) lease.until = renewed.has(id) ? startedAt + this.#usableMs : startedAt;
  }

  async #releaseAll(): Promise<void> {
    const { store, onError, clock, stopped } = this.#parts;
    while (this.#releasing.size > 0) {
      const deliveries = [...this.#releasing.values()].slice(0, maxPerRelease);
      try {
        await store.releaseLeases(deliveries);
        this.#onReleased(deliveries);
      } catch (error) {
        onError('leases could not be released; retrying in a second', error);
        if (stopped.aborted) return;
        await pause(clock, releaseRetryMs, stopped);
      }
    }
  }

  #onReleased(deliveries: Delivery[]): void {
    for (const delivery of deliveries) {
      if (this.#releasing.get(delivery.id) === delivery) this.#releasing.delete(delivery.id);
    }
    for (const delivery of deliveries) {
      this.end(delivery);
      // Mail that was put off is found when it falls due.
      if (delivery.dueAt <= this.#parts.clock.now()) this.#parts.onReleased(delivery);
    }
  }
}
