/** The timeouts of a session, and the timer for the one reply that is awaited. */
import type { Phase } from '../outcome.ts';

/** Milliseconds to wait for each reply; `tls` is for the handshake. */
export interface Timeouts {
  greeting: number;
  ehlo: number;
  tls: number;
  mail: number;
  rcpt: number;
  data: number;
  dot: number;
}

export interface Deadline {
  set(awaited: Phase | 'tls'): void;
  /** Restarts the timer if it is running. */
  extend(): void;
  clear(): void;
}

export function createDeadline(timeouts: Timeouts, onLate: (ms: number) => void): Deadline {
  let timer: NodeJS.Timeout | undefined;
  return {
    set(awaited) {
      const ms = timeouts[awaited === 'quit' || awaited === 'starttls' ? 'ehlo' : awaited];
      clearTimeout(timer);
      timer = setTimeout(onLate, ms, ms);
    },
    extend() {
      timer?.refresh();
    },
    clear() {
      clearTimeout(timer);
      timer = undefined;
    },
  };
}
