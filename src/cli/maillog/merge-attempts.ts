/**
 * Leaves out the line of an attempt if the line of its outcome says the same, so that a person reads it once. The line waits
 * for the outcome, which is written when it is committed; of several hosts that were tried, only the decisive one is left out.
 */
import type { LogLine } from './log-filter.ts';

/** An outcome that is not there by then is not waited for: the process may have died in between. */
const maxWaitMs = 2000;
/** Attempts of so many deliveries wait at once. */
const maxWaiting = 10_000;

const outcomes = new Set(['delivered', 'deferred', 'bounced', 'expired']);

/** `state`: the event of a line, or `expired`. */
export const isOutcome = (state: string) => outcomes.has(state);

export interface AttemptMerge {
  /** The lines to show now. */
  add(line: LogLine): LogLine[];
  /** The lines that have waited for too long; without a time, all. */
  flush(now?: number): LogLine[];
}

export function createAttemptMerge(): AttemptMerge {
  /** Keyed by delivery, the oldest first. */
  const waiting = new Map<string, LogLine[]>();

  function take(deliveryId: string): LogLine[] {
    const lines = waiting.get(deliveryId) ?? [];
    waiting.delete(deliveryId);
    return lines;
  }

  return {
    add(line) {
      const { deliveryId, event } = line;
      if (typeof deliveryId !== 'string') return [line];
      if (event === 'attempted') {
        const [eldest] = waiting.size >= maxWaiting ? waiting.keys() : [];
        const tooMany = eldest === undefined ? [] : take(eldest);
        waiting.set(deliveryId, [...(waiting.get(deliveryId) ?? []), line]);
        return tooMany;
      }
      if (!isOutcome(event)) return [line];
      return [...take(deliveryId).filter((attempted) => !isSame(attempted, line)), line];
    },
    flush(now = Number.POSITIVE_INFINITY) {
      const ids = [...waiting].filter(([, [first]]) => Date.parse(first!.time) + maxWaitMs < now);
      return ids.flatMap(([id]) => take(id));
    },
  };
}

function isSame(attempted: LogLine, outcome: LogLine): boolean {
  return attempted.host === outcome.host && attempted.reply === outcome.reply;
}
