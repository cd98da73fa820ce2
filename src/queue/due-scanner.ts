/**
 * Which lanes have due mail, besides those that this node has put mail into itself: by looks at what has fallen due
 * since the look before, and now and then by a walk along all lanes, page by page and in the gaps that all else leaves.
 *
 * A look is cheap because little falls due in a moment. What is more than a look can take (an operator's order has made
 * a whole queue due), what was due before the start, and what another node has left behind is found by the walk.
 */
import type { Clock } from '../base/clock.ts';
import type { Backlog } from './backlogs.ts';

export interface DueScannerParts {
  /** The lanes of what fell due after `after`, with the last time that a retry did; null: it is more than `most`. */
  findDue(range: {
    after: number;
    now: number;
    max: number;
  }): Promise<(Backlog & { retryAt: number | null })[] | null>;
  /** Of the lanes that follow `after` a page; those of them in which something is due, and where the next begins. */
  listBacklogs(page: {
    after: Backlog | null;
    now: number;
    limit: number;
  }): Promise<{ due: Backlog[]; last: Backlog | null }>;
  noteBacklog(backlog: Backlog, isRetry?: boolean): void;
  onError(what: string, error: unknown): void;
  clock: Clock;
}

/** What is committed a little after it was due, or by a clock that is a little behind, is seen by a second look. */
const overlapMs = 2000;
const maxPerScan = 10_000;
/** From the end of one walk to the next; and walking takes no more than a tenth of the time. */
const scanIntervalMs = 10_000;
const rescanDelayMs = 1000;
const pageSize = 200;

export function createDueScanner({ findDue, listBacklogs, noteBacklog, onError, clock }: DueScannerParts) {
  /** What fell due until then has been seen; before the start, by the first walk. */
  let seenUntil = clock.now();
  let scannedAt = Number.NEGATIVE_INFINITY;
  let scanMs = 0;
  /** Something was too much for a look. */
  let scanSoon = false;
  let scanning: Promise<void> | null = null;
  let stopping = false;

  async function scanAll(): Promise<void> {
    const begun = clock.now();
    scanSoon = false;
    let after: Backlog | null = null;
    try {
      do {
        const page = await listBacklogs({ after, now: clock.now(), limit: pageSize });
        for (const backlog of page.due) noteBacklog(backlog);
        after = page.last;
      } while (after && !stopping);
    } catch (error) {
      onError('the lanes of the queue cannot be read; trying again soon', error);
    }
    scanning = null;
    scannedAt = clock.now();
    scanMs = scannedAt - begun;
  }

  return {
    /** `isThorough`: also a little further back. */
    async scanNewlyDue(withOverlap: boolean): Promise<void> {
      const now = clock.now();
      const before = Math.min(seenUntil, now);
      const due = await findDue({ after: withOverlap ? before - overlapMs : before, now, max: maxPerScan });
      seenUntil = now;
      if (due === null) scanSoon = true;
      for (const { retryAt, ...backlog } of due ?? [])
        noteBacklog(backlog, retryAt !== null && retryAt > before);
    },
    /** Begins a walk where it is time for one; nobody waits for it. */
    tick(): void {
      const restMs = Math.max(scanSoon ? rescanDelayMs : scanIntervalMs, 9 * scanMs);
      if (Math.abs(clock.now() - scannedAt) >= restMs) scanning ??= scanAll();
    },
    /** There may be lanes that were passed over before. */
    scanSoon(): void {
      scanSoon = true;
    },
    async stop(): Promise<void> {
      stopping = true;
      await scanning;
    },
  };
}
