/**
 * Leases that cannot be used now are given back, many in one commit, and tried again until that is done: nobody else
 * would free them while this node lives.
 */
import { pause } from '../base/abort.ts';
import type { Clock } from '../base/clock.ts';
import type { Delivery } from '../glossary.ts';

export interface LeaseReleaseParts {
  commit(deliveries: Delivery[]): Promise<void>;
  /** They wait in their lanes again. */
  onReleased(deliveries: Delivery[]): void;
  onError(what: string, error: unknown): void;
  clock: Clock;
  stopped: AbortSignal;
}

const maxPerCommit = 200;
const retryDelayMs = 1000;

export function createLeaseRelease(parts: LeaseReleaseParts) {
  const { clock, stopped } = parts;
  const pending = new Map<string, Delivery>();
  let working: Promise<void> | null = null;

  async function commitAll(): Promise<void> {
    while (pending.size > 0) {
      const deliveries = [...pending.values()].slice(0, maxPerCommit);
      try {
        await parts.commit(deliveries);
        for (const delivery of deliveries) remove(delivery);
        parts.onReleased(deliveries);
      } catch (error) {
        parts.onError('leases could not be given back; trying again', error);
        // The time to stop has come, and it could not be done.
        if (stopped.aborted) return;
        await pause(clock, retryDelayMs, stopped);
      }
    }
  }

  function remove(delivery: Delivery): void {
    if (pending.get(delivery.id) === delivery) pending.delete(delivery.id);
  }

  return {
    add(delivery: Delivery): void {
      pending.set(delivery.id, delivery);
      // In a moment, so that what is given back together is one commit.
      working ??= Promise.resolve()
        .then(commitAll)
        .finally(() => {
          working = null;
        });
    },
    /** It has been claimed anew: what is queued of it must not undo that. */
    forget(id: string): void {
      pending.delete(id);
    },
    async done(): Promise<void> {
      while (working) await working;
    },
  };
}
