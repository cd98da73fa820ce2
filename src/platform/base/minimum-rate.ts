/**
 * The minimum rate at which a client must send a body over HTTP, a form, or a mail after DATA. A transfer starts with
 * `graceMs`; each byte that arrives adds 1 / bytesPerSecond seconds, up to `graceMs` from that moment, so that a client
 * cannot send fast at first and then keep the connection and its memory. Postfix's smtpd_min_data_rate is the same rule.
 */
import { type Clock, systemClock } from './clock.ts';

interface RateRule {
  clock: Clock;
  bytesPerSecond: number;
  graceMs: number;
}

const maxLateMs = 100;

export type MinimumRate = ReturnType<typeof createMinimumRate>;

export function createMinimumRate({ clock, bytesPerSecond, graceMs }: RateRule) {
  return {
    /**
     * Times one transfer: count each chunk with `received`, and call `stop` when the transfer has ended. `onTooSlow` is
     * called at most once, and never after `stop`.
     */
    watch(onTooSlow: () => void) {
      let deadline = clock.now() + graceMs;
      let looksAt = deadline;
      let cancel = clock.after(graceMs, check);

      // One timer for each grace period, not for each chunk: when it fires, it checks whether the deadline has moved.
      function check(): void {
        const now = clock.now();
        // This thread was busy and read nothing, but the client may have sent: it gets that time again.
        if (now - looksAt > maxLateMs) deadline = Math.max(deadline, now) + now - looksAt;
        const leftMs = deadline - now;
        looksAt = deadline;
        if (leftMs > 0) cancel = clock.after(leftMs, check);
        else onTooSlow();
      }

      return {
        received(bytes: number): void {
          deadline = Math.min(deadline + (bytes / bytesPerSecond) * 1000, clock.now() + graceMs);
        },
        stop: (): void => cancel(),
      };
    },
  };
}

/** The rate that every transfer from a client must keep: 16 KB a second after the first ten seconds. */
export const transferRate = createMinimumRate({
  clock: systemClock,
  bytesPerSecond: 16 * 1024,
  graceMs: 10_000,
});
