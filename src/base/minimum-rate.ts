/**
 * The slowest that a client may send what it has begun to send: a body over HTTP, a form, a mail after DATA. It has
 * `graceMs` at first; each byte that arrives gives it 1 / bytesPerSecond more seconds, and never more than graceMs from
 * then on, so a client that sent fast cannot stop and keep its memory. Postfix's smtpd_min_data_rate is the same rule.
 */
import { type Clock, systemClock } from './clock.ts';

interface RateRule {
  clock: Clock;
  bytesPerSecond: number;
  graceMs: number;
}

/** Times one transfer: count each chunk with `received`, and call `stop` when the transfer has ended. */
interface TransferTimer {
  received(bytes: number): void;
  stop(): void;
}

export interface MinimumRate {
  /** Starts to time one transfer. `onTooSlow` is called once at most, and never after `stop`. */
  watch(onTooSlow: () => void): TransferTimer;
}

export function createMinimumRate({ clock, bytesPerSecond, graceMs }: RateRule): MinimumRate {
  return {
    watch(onTooSlow) {
      let deadline = clock.now() + graceMs;
      let cancel = clock.after(graceMs, check);

      // One timer for each grace period, not one for each chunk: a deadline that was moved is looked at again later.
      function check(): void {
        const leftMs = deadline - clock.now();
        if (leftMs > 0) cancel = clock.after(leftMs, check);
        else onTooSlow();
      }

      return {
        received(bytes) {
          deadline = Math.min(deadline + (bytes / bytesPerSecond) * 1000, clock.now() + graceMs);
        },
        stop: () => cancel(),
      };
    },
  };
}

/** What every transfer from a client must keep up: 16 KB a second after the first ten seconds. */
export const transferRate = createMinimumRate({
  clock: systemClock,
  bytesPerSecond: 16 * 1024,
  graceMs: 10_000,
});
