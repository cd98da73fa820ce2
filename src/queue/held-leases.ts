/**
 * The leases that this node holds, each from the moment the delivery is in its memory until what came of it is recorded,
 * or it is given back. They are renewed for as long as that takes: a conversation may be longer than a lease.
 *
 * A lease that could not be renewed runs out, and nothing is begun on one that has: another node may have it by then.
 * What is under way on it goes on, and its outcome counts for nothing where another node has taken over
 * (db/queue/outcomes.ts). So that nobody is taken for dead who only could not reach the database either, others' leases are
 * taken over only after this node's own have been renewed some times in a row.
 */
import type { Clock } from '../base/clock.ts';
import type { Delivery } from '../glossary.ts';

export interface HeldLeasesParts {
  /** Renews these; answers with the ids of those that were still this node's. */
  renew(ids: string[]): Promise<Set<string>>;
  /** Frees what the database says is leased to this node and is not held: its claim was committed, and nobody heard. */
  freeOrphans(): Promise<void>;
  /** Takes over what nodes that are gone have left. */
  takeOver(): Promise<void>;
  leaseMs: number;
  onError(what: string, error: unknown): void;
  clock: Clock;
}

const retryDelayMs = 5_000;
const roundsBeforeTakeOver = 2;

export function createHeldLeases({ renew, freeOrphans, takeOver, leaseMs, onError, clock }: HeldLeasesParts) {
  const held = new Map<string, { delivery: Delivery; until: number }>();
  const intervalMs = leaseMs / 6;
  /** Less than it is: for the way here from the database, and for clocks that differ a little. */
  const goodMs = leaseMs - intervalMs;
  let rounds = 0;
  let stopped = false;
  let running = Promise.resolve();
  let cancel = () => {};

  async function round(): Promise<void> {
    try {
      await renewAll();
      await freeOrphans();
      if (rounds >= roundsBeforeTakeOver) await takeOver();
      rounds += 1;
    } catch (error) {
      rounds = 0;
      onError('leases could not be renewed; trying again in a moment', error);
    }
    if (!stopped) later(rounds > 0 ? intervalMs : retryDelayMs);
  }

  async function renewAll(): Promise<void> {
    const leases = [...held];
    if (leases.length === 0) return;
    const begun = clock.now();
    const renewed = await renew(leases.map(([id]) => id));
    for (const [id, lease] of leases) lease.until = renewed.has(id) ? begun + goodMs : begun;
  }

  function later(ms: number): void {
    cancel = clock.after(ms, () => {
      running = round();
    });
  }

  return {
    start: () => later(intervalMs),
    begin(delivery: Delivery): void {
      held.set(delivery.id, { delivery, until: clock.now() + goodMs });
    },
    end(delivery: Delivery): void {
      if (held.get(delivery.id)?.delivery === delivery) held.delete(delivery.id);
    },
    isGood(delivery: Delivery): boolean {
      const lease = held.get(delivery.id);
      return lease?.delivery === delivery && clock.now() < lease.until;
    },
    async stop(): Promise<void> {
      stopped = true;
      cancel();
      await running;
    },
  };
}
