/** The timeouts of a session, and the timer for the one reply that is awaited. */
import type { Phase } from '#platform/values/glossary.ts';

/** Milliseconds to wait for each reply; `tls` is for the handshake. */
export interface SessionTimeouts {
  greeting: number;
  ehlo: number;
  tls: number;
  mail: number;
  rcpt: number;
  data: number;
  dot: number;
}

export function createDeadline(timeouts: SessionTimeouts, onLate: (ms: number) => void) {
  let timer: NodeJS.Timeout | undefined;
  return {
    set(awaited: Phase | 'tls'): void {
      const ms = timeouts[awaited === 'rset' || awaited === 'starttls' ? 'ehlo' : awaited];
      clearTimeout(timer);
      timer = setTimeout(onLate, ms, ms);
    },
    /** Restarts the timer if it is running. */
    extend(): void {
      timer?.refresh();
    },
    clear(): void {
      clearTimeout(timer);
      timer = undefined;
    },
  };
}

export type Deadline = ReturnType<typeof createDeadline>;
