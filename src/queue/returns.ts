/**
 * Leases that cannot be used now are given back, many in one commit, and tried again until that is done: nobody else
 * would free them while this node lives.
 */
import { pause } from '../abort.ts';
import type { Clock } from '../clock.ts';
import type { Delivery } from '../nouns.ts';

export interface ReturnsParts {
  commit(deliveries: Delivery[]): Promise<void>;
  /** They wait in their lanes again. */
  onReturned(deliveries: Delivery[]): void;
  onTrouble(what: string, error: unknown): void;
  clock: Clock;
  stopped: AbortSignal;
}

const mostACommit = 200;
const againMs = 1000;

export function createReturns(parts: ReturnsParts) {
  const { clock, stopped } = parts;
  const queued: Delivery[] = [];
  let working: Promise<void> | null = null;

  async function work(): Promise<void> {
    while (queued.length > 0) {
      const deliveries = queued.slice(0, mostACommit);
      if (!(await committed(deliveries))) return;
      queued.splice(0, deliveries.length);
      parts.onReturned(deliveries);
    }
  }

  /** False: the time to stop has come, and it could not be done. */
  async function committed(deliveries: Delivery[]): Promise<boolean> {
    for (;;) {
      try {
        await parts.commit(deliveries);
        return true;
      } catch (error) {
        parts.onTrouble('leases could not be given back; trying again', error);
        if (stopped.aborted) return false;
        await pause(clock, againMs, stopped);
      }
    }
  }

  return {
    add(delivery: Delivery): void {
      queued.push(delivery);
      // In a moment, so that what is given back together is one commit.
      working ??= Promise.resolve()
        .then(work)
        .finally(() => {
          working = null;
        });
    },
    async done(): Promise<void> {
      while (working) await working;
    },
  };
}
