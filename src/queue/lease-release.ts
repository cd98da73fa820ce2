/**
 * Releases leases that cannot be used now, many in one commit, and retries until that is done: no other node frees them
 * while this one is alive.
 */
import { pause } from '../base/abort.ts';
import type { Clock } from '../base/clock.ts';
import type { Delivery } from '../glossary.ts';

export interface LeaseReleaseParts {
  commit(deliveries: Delivery[]): Promise<void>;
  /** The deliveries wait in their backlogs again. */
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
        parts.onError('leases could not be released; retrying in a second', error);
        // At a stop there is no time left to retry.
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
      // Starts in the next microtask, so that leases released together share a commit.
      working ??= Promise.resolve()
        .then(commitAll)
        .finally(() => {
          working = null;
        });
    },
    /** The delivery has been claimed again: a pending release must not undo that. */
    forget(id: string): void {
      pending.delete(id);
    },
    async done(): Promise<void> {
      while (working) await working;
    },
  };
}
