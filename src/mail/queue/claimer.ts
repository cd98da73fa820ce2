/**
 * Claims due deliveries: leases them in one commit and hands them to the dispatcher, as many as there is room for, however
 * long the queue is.
 *
 * One loop claims at a time. A request that comes meanwhile makes it go round once more; so does each claim that found
 * mail. Before a claim it may scan for mail that has fallen due (due-scanner.ts), starts scheduled mail, and once a second
 * also claims mail at its maximum age. Database errors are reported, and retried by the poller a second later.
 */
import { type Clock, isRecent } from '#platform/base/clock.ts';
import type { Backlog, Delivery } from '#platform/values/glossary.ts';
import type { Dispatcher } from './dispatcher.ts';
import { createDueScanner } from './due-scanner.ts';
import { type LeasePolicy, maxPerClaim } from './lease-policy.ts';
import { type Poller, pollMs } from './poller.ts';
import type { ReadyQueues } from './ready-queues.ts';
import type { Store } from './store.ts';

/** All but the clock are the runner's. */
export interface ClaimerParts {
  store: Store;
  policy: LeasePolicy;
  dispatcher: Dispatcher;
  readyQueues: ReadyQueues;
  poller: Poller;
  isRunning(): boolean;
  onError(what: string, error: unknown): void;
  clock: Clock;
}

export class Claimer {
  readonly #parts: ClaimerParts;
  readonly #clock: Clock;
  readonly #dueScanner: ReturnType<typeof createDueScanner>;
  #claiming: Promise<void> | null = null;
  #isScanRequested = false;
  #isClaimRequested = false;
  #hasChanged = false;
  /** The last claim left mail behind because the node's limit was reached. */
  #wasCut = false;
  #scannedAt = Number.NEGATIVE_INFINITY;
  /** The next scan overlaps and claims expired mail, even within the second. */
  #isFullScanRequested = true;
  #rounds = 0;
  /** When the next scheduled mail is due, as far as this node knows. */
  #scheduledAt = Number.POSITIVE_INFINITY;

  constructor(parts: ClaimerParts) {
    this.#parts = parts;
    this.#clock = parts.clock;
    this.#dueScanner = createDueScanner({
      findDue: parts.store.findDue,
      listBacklogs: parts.store.listBacklogs,
      dueAmong: parts.store.dueAmong,
      noteBacklog: (backlog, isRetry) => parts.readyQueues.note(backlog, isRetry),
      onError: parts.onError,
      clock: parts.clock,
    });
  }

  get isClaiming(): boolean {
    return this.#claiming !== null;
  }

  get wasCut(): boolean {
    return this.#wasCut;
  }

  /** Grows at least every 20 seconds while the loop is alive, also if the database does not answer. */
  get rounds(): number {
    return this.#rounds;
  }

  /** Mail may be due. `hasChanged`: not only because of the time. */
  requestScan(hasChanged = true): void {
    this.#isScanRequested = true;
    this.#hasChanged ||= hasChanged;
    this.request();
  }

  /** When a full scan is due. */
  nextScanAt(): number {
    return this.#dueScanner.nextAt();
  }

  /** There is room for mail that waits in backlogs, or a new backlog for which there is room. */
  request(): void {
    this.#isClaimRequested = true;
    if (!this.#parts.isRunning()) return;
    this.#claiming ??= this.#claimWhileRequested().finally(() => {
      this.#claiming = null;
      // A request that came after the loop had ended, and before this, would be lost otherwise.
      if (this.#isClaimRequested) this.request();
    });
  }

  /** Backlogs that a notification names. */
  noteNotified(backlogs: Backlog[]): void {
    this.#dueScanner.noteNotified(backlogs);
  }

  /** Mail was accepted that starts at this time. */
  noteScheduled(at: number): void {
    this.#scheduledAt = Math.min(this.#scheduledAt, at);
    const now = this.#clock.now();
    if (at <= now) this.requestScan();
    // Later mail is found by the scans before its time.
    else if (at < now + pollMs) this.#parts.poller.wakeUpAt(at);
  }

  /** If the commit took longer than the wait, the scans have passed the time of the next attempt, or the maximum age. */
  noteNextAttempt(delivery: Delivery, nextAt: number): void {
    if (nextAt <= this.#clock.now()) {
      this.#parts.readyQueues.note(delivery, true);
      this.#isFullScanRequested = true;
      this.requestScan();
    }
    this.#parts.poller.wakeUpAt(nextAt);
  }

  /** Resolves when no claim and no scan is under way. */
  async stop(): Promise<void> {
    await this.#claiming;
    await this.#dueScanner.stop();
  }

  /** Claims until nothing is due or there is no room, then sets the timer for the next time. */
  async #claimWhileRequested(): Promise<void> {
    const { poller, dispatcher, isRunning, onError } = this.#parts;
    try {
      while (this.#isClaimRequested && isRunning()) {
        this.#rounds++;
        if (await poller.readChanges()) this.#dueScanner.scanSoon();
        this.#dueScanner.startIfDue(this.#hasChanged);
        this.#hasChanged = false;
        const isScanRequested = this.#isScanRequested;
        this.#isScanRequested = false;
        this.#isClaimRequested = false;
        dispatcher.drainAll();
        if (isScanRequested) await this.#scan();
        await this.#claim();
      }
    } catch (error) {
      this.#isClaimRequested = false;
      this.#scannedAt = this.#clock.now();
      onError('the queue cannot be read; trying again in a second', error);
    }
    poller.schedule(this.#scannedAt);
  }

  /** Once a second the scan overlaps the one before, and mail at its maximum age is claimed as well. */
  async #scan(): Promise<void> {
    const now = this.#clock.now();
    const isFull = this.#isFullScanRequested || !isRecent(this.#scannedAt, now, pollMs);
    this.#isFullScanRequested = false;
    if (!isFull) {
      if (now >= this.#scheduledAt) await this.#startScheduled(now);
      return this.#dueScanner.scanNewlyDue(false);
    }
    this.#scannedAt = now;
    const first = await this.#parts.store.firstTimes(this.#dueScanner.overlapsFrom());
    this.#scheduledAt = first.scheduledAt;
    if (first.scheduledAt <= now) await this.#startScheduled(now);
    else this.noteScheduled(first.scheduledAt);
    if (first.dueAt <= now) await this.#dueScanner.scanNewlyDue(true);
    if (first.expiresAt <= now) await this.#claimExpired(now);
  }

  async #claimExpired(now: number): Promise<void> {
    const { store, policy, dispatcher } = this.#parts;
    const limit = Math.min(maxPerClaim, policy.freeLeases());
    const expired = limit > 0 ? await store.claimExpired(now, limit) : [];
    let kept = 0;
    for (const delivery of expired) if (dispatcher.addLeased(delivery)) kept += 1;
    // There may be more, so the next scan claims expired mail too. Released mail would only be claimed again.
    if (limit === 0 || kept < limit) return;
    this.#isFullScanRequested = true;
    this.requestScan();
  }

  async #startScheduled(now: number): Promise<void> {
    const { backlogs, nextAt } = await this.#parts.store.startScheduled(now);
    this.#scheduledAt = Number.POSITIVE_INFINITY;
    for (const backlog of backlogs) this.#parts.readyQueues.announce(backlog);
    // If other nodes hold all rows that are due, the next scan is soon enough.
    if (nextAt !== null && (backlogs.length > 0 || nextAt > now)) this.noteScheduled(nextAt);
  }

  async #claim(): Promise<void> {
    const { store, policy, dispatcher } = this.#parts;
    const { claims, isCut } = policy.pickBacklogs(Math.min(maxPerClaim, policy.freeLeases()));
    this.#wasCut = isCut;
    if (claims.length === 0) return;
    const wanted = claims.map(({ backlog: { domain, orgId }, limit }) => ({ domain, orgId, limit }));
    const claimed = await store.claimBacklogs(this.#clock.now(), wanted).catch((error) => {
      // One backlog that the database does not take must not stop the others: the full scan finds those that exist again.
      for (const { readyQueue, backlog } of claims) readyQueue.backlogs.remove(backlog);
      this.#dueScanner.scanSoon();
      throw error;
    });
    const byBacklog = Map.groupBy(claimed, nameOf);
    let hasKept = false;
    for (const { readyQueue, backlog, limit } of claims) {
      const deliveries = byBacklog.get(nameOf(backlog)) ?? [];
      // Two queues may both have had it, if its route is unknown.
      byBacklog.delete(nameOf(backlog));
      if (deliveries.length < limit) readyQueue.backlogs.remove(backlog);
      for (const delivery of deliveries) if (dispatcher.addLeased(delivery, readyQueue)) hasKept = true;
    }
    // Mail that was released at once would only be claimed and released again.
    if (hasKept) this.request();
  }
}

const nameOf = ({ orgId, domain }: Backlog) => `${orgId} ${domain}`;
