/**
 * Leases that cannot be used now are given back, many in one commit, and tried again until that is done: nobody else
 * would free them while this node lives.
 */
import { pause } from '../abort.ts';
import type { Clock } from '../clock.ts';
import type { Delivery } from '../nouns.ts';

/** The mail is parked in its lane, or (where we stop) due at once. */
export type How = 'parked' | 'due';

export interface ReturnsParts {
  commit(deliveries: Delivery[], how: How, now: number): Promise<void>;
  onReturned(deliveries: Delivery[], how: How): void;
  onTrouble(what: string, error: unknown): void;
  clock: Clock;
  stopped: AbortSignal;
}

const mostACommit = 200;
const againMs = 1000;

export function createReturns(parts: ReturnsParts) {
  const { clock, stopped } = parts;
  let queued: { delivery: Delivery; how: How }[] = [];
  let working: Promise<void> | null = null;

  async function work(): Promise<void> {
    while (queued.length > 0) {
      const { how } = queued[0]!;
      const batch = queued.filter((one) => one.how === how).slice(0, mostACommit);
      const deliveries = batch.map(({ delivery }) => delivery);
      if (!(await committed(deliveries, how))) return;
      queued = queued.filter((one) => !batch.includes(one));
      parts.onReturned(deliveries, how);
    }
  }

  /** False: the time to stop has come, and it could not be done. */
  async function committed(deliveries: Delivery[], how: How): Promise<boolean> {
    for (;;) {
      try {
        await parts.commit(deliveries, how, clock.now());
        return true;
      } catch (error) {
        parts.onTrouble('leases could not be given back; trying again', error);
        if (stopped.aborted) return false;
        await pause(clock, againMs, stopped);
      }
    }
  }

  return {
    add(delivery: Delivery, how: How): void {
      queued.push({ delivery, how });
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
