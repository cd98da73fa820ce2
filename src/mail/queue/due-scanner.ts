/**
 * Finds the backlogs that have due mail, besides those that this node has put mail into itself: short scans of what has
 * fallen due since the last one, and now and then a full scan of all backlogs, page by page, in the background.
 *
 * A short scan is cheap because little falls due in a moment. The full scan finds the rest: more than a short scan
 * can read (an operator has made a whole queue due), mail that was due before the start, and mail that another node left.
 * Backlogs that a notification names are looked up first, because any user of the database can send one.
 */
import { type Clock, isRecent } from '#platform/base/clock.ts';
import type { Backlog } from '#platform/values/glossary.ts';

export interface DueScannerParts {
  /** The backlogs of mail that fell due after `after`, with the latest due time of a retry; null if there are more than `max`. */
  findDue(range: {
    after: number;
    now: number;
    max: number;
  }): Promise<(Backlog & { retryAt: number | null })[] | null>;
  /** Reads one page of backlogs after `after`: those with due mail, and the last one read, after which the next page begins. */
  listBacklogs(page: {
    after: Backlog | null;
    now: number;
    limit: number;
  }): Promise<{ due: Backlog[]; last: Backlog | null }>;
  /** Leaves out backlogs without due mail. */
  dueAmong(backlogs: Backlog[], now: number): Promise<Backlog[]>;
  noteBacklog(backlog: Backlog, isRetry?: boolean): void;
  onError(what: string, error: unknown): void;
  clock: Clock;
}

/** Finds mail that was committed a little after it was due, or by a node whose clock is behind. */
const overlapMs = 2000;
const maxPerScan = 10_000;
/**
 * From the end of one full scan to the next. A full scan also takes at most a tenth of the time, as performance.now()
 * counts it: after a pause of the machine in the middle of a scan, the clock would put the next one off for days.
 */
const scanIntervalMs = 10_000;
const rescanDelayMs = 1000;
/** While nothing is committed, a full scan only finds domains that have other hosts by now; a thousandth of the time is enough. */
const quietIntervalMs = 5 * 60_000;
const pageSize = 200;
/** More are left to the scans. */
const maxNotified = 1000;

export function createDueScanner(parts: DueScannerParts) {
  const { findDue, listBacklogs, noteBacklog, onError, clock } = parts;
  const notified = createNotified(parts);
  /** Mail that fell due until then has been found. The first full scan finds what was due before the start. */
  let seenUntil = clock.now();
  let scannedAt = Number.NEGATIVE_INFINITY;
  let scanMs = 0;
  /** There was too much for a short scan. */
  let scanSoon = false;
  /** Something was committed since the last full scan began. */
  let isStale = true;
  let scanning: Promise<void> | null = null;
  let stopping = false;

  async function scanAll(): Promise<void> {
    const begun = performance.now();
    scanSoon = false;
    isStale = false;
    let after: Backlog | null = null;
    try {
      do {
        const page = await listBacklogs({ after, now: clock.now(), limit: pageSize });
        for (const backlog of page.due) noteBacklog(backlog);
        after = page.last;
      } while (after && !stopping);
    } catch (error) {
      onError('the backlogs of the queue cannot be read; trying again soon', error);
    }
    scanning = null;
    scannedAt = clock.now();
    scanMs = performance.now() - begun;
  }

  /** A scan with an overlap looks for mail that fell due after that. */
  const overlapsFrom = () => Math.min(seenUntil, clock.now()) - overlapMs;

  function restMs(): number {
    if (!isStale && !scanSoon) return Math.max(quietIntervalMs, 999 * scanMs);
    return Math.max(scanSoon ? rescanDelayMs : scanIntervalMs, 9 * scanMs);
  }

  return {
    overlapsFrom,
    /** `withOverlap`: begins a little before the end of the last scan. */
    async scanNewlyDue(withOverlap: boolean): Promise<void> {
      const now = clock.now();
      const before = Math.min(seenUntil, now);
      const due = await findDue({ after: withOverlap ? overlapsFrom() : before, now, max: maxPerScan });
      seenUntil = now;
      if (due === null) scanSoon = true;
      for (const { retryAt, ...backlog } of due ?? [])
        noteBacklog(backlog, retryAt !== null && retryAt > before);
    },
    /** Starts a full scan in the background if it is time for one. */
    startIfDue(hasChanged: boolean): void {
      isStale ||= hasChanged;
      if (!isRecent(scannedAt, clock.now(), restMs())) scanning ??= scanAll();
    },
    /** When it is time for the next full scan. */
    nextAt: () => (scanning ? Number.POSITIVE_INFINITY : scannedAt + restMs()),
    /** This node may serve backlogs that it has ignored until now. */
    scanSoon(): void {
      scanSoon = true;
    },
    async stop(): Promise<void> {
      stopping = true;
      notified.stop();
      await Promise.all([scanning, notified.checked()]);
    },
    noteNotified: notified.note,
  };
}

/** One look-up at a time; the backlogs named meanwhile share the next one. */
function createNotified({ dueAmong, noteBacklog, onError, clock }: DueScannerParts) {
  const named = new Map<string, Backlog>();
  let checking: Promise<void> | null = null;

  async function check(): Promise<void> {
    try {
      while (named.size > 0) {
        const backlogs = [...named.values()];
        named.clear();
        for (const backlog of await dueAmong(backlogs, clock.now())) noteBacklog(backlog);
      }
    } catch (error) {
      onError('the backlogs that another node named cannot be looked up; the next scan finds them', error);
    }
    checking = null;
  }

  return {
    note(backlogs: Backlog[]): void {
      for (const backlog of backlogs) {
        if (named.size >= maxNotified) break;
        named.set(`${backlog.orgId} ${backlog.domain}`, backlog);
      }
      checking ??= check();
    },
    stop: () => named.clear(),
    checked: () => checking,
  };
}
