/**
 * The leases that this node holds, each from the moment its delivery is in memory until its outcome is recorded or it is
 * released. They are renewed for that long, because an SMTP session may last longer than a lease.
 *
 * A lease that could not be renewed runs out, and no attempt starts on it, because another node may have the delivery by
 * then. An attempt that is under way continues; its outcome is ignored if another node has taken over
 * (db/queue/outcomes.ts). Leases of other nodes are taken over only after this node has renewed its own twice in a
 * row: after an outage of the database, a node that is alive must be able to renew its leases first.
 */
import type { Clock } from '../base/clock.ts';
import type { Delivery } from '../glossary.ts';

export interface HeldLeasesParts {
  /** Returns the ids of the renewed leases; this node has lost the others. */
  renew(ids: string[]): Promise<Set<string>>;
  /** Frees deliveries leased to this node that are not held here: their claim was committed, but the answer was lost. */
  freeOrphans(): Promise<void>;
  /** Takes over the expired leases of other nodes. */
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
  /** Shorter than the lease, to allow for the time that the database's answer takes and for clocks that differ a little. */
  const usableMs = leaseMs - intervalMs;
  let rounds = 0;
  let stopped = false;
  let running = Promise.resolve();
  let cancel = () => {};

  async function renewOnce(): Promise<void> {
    try {
      await renewAll();
      await freeOrphans();
      if (rounds >= roundsBeforeTakeOver) await takeOver();
      rounds += 1;
    } catch (error) {
      rounds = 0;
      onError('leases could not be renewed; retrying in 5 s', error);
    }
    if (!stopped) schedule(rounds > 0 ? intervalMs : retryDelayMs);
  }

  async function renewAll(): Promise<void> {
    const leases = [...held];
    if (leases.length === 0) return;
    const startedAt = clock.now();
    const renewed = await renew(leases.map(([id]) => id));
    for (const [id, lease] of leases) lease.until = renewed.has(id) ? startedAt + usableMs : startedAt;
  }

  function schedule(ms: number): void {
    cancel = clock.after(ms, () => {
      running = renewOnce();
    });
  }

  return {
    start: () => schedule(intervalMs),
    begin(delivery: Delivery): void {
      held.set(delivery.id, { delivery, until: clock.now() + usableMs });
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

export type HeldLeases = ReturnType<typeof createHeldLeases>;
