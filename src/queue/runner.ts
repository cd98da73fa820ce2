/**
 * The runner keeps as many deliveries under way as the limits allow, however long the queue is.
 *
 * It claims due deliveries from backlogs (leases them in one commit), hands each to its destination's ready queue
 * (dispatcher.ts), and records the outcome; no transaction is open in between. A delivery that has just been accepted
 * skips the claim if there is room. Memory holds leased deliveries and the names of backlogs, so it does not grow with
 * the queue.
 *
 * It scans for deliveries that have fallen due (due-scanner.ts) when the next one does, and once a second, because the
 * command line and other nodes change the queue without telling this node; while the database tells that nothing has
 * changed, it skips that. Scheduled mail starts in the same scans. Database errors are reported and retried. What a dead
 * process was sending is found by its lease and recorded as an interrupted attempt.
 */
import { pause } from '../base/abort.ts';
import type { Clock } from '../base/clock.ts';
import type { Attempt, Delivery } from '../glossary.ts';
import type { Backlog } from './backlogs.ts';
import { type DispatchAdmission, Dispatcher, type DispatcherParts } from './dispatcher.ts';
import { createDueScanner, type DueScannerParts } from './due-scanner.ts';
import { createHeldLeases, type HeldLeases } from './held-leases.ts';
import { createLeaseRelease } from './lease-release.ts';
import type { ReadyQueue } from './ready-queue.ts';
import type { Suspension } from './ready-queues.ts';
import type { Peers } from './share.ts';

export interface Store extends Pick<DueScannerParts, 'findDue' | 'listBacklogs'> {
  /** Leases due deliveries of these backlogs, the longest due first. */
  claimBacklogs(now: number, backlogs: (Backlog & { limit: number })[]): Promise<Delivery[]>;
  /** Leases deliveries that have reached their maximum age. */
  claimExpired(now: number, limit: number): Promise<Delivery[]>;
  /** Starts scheduled mail that is due: its backlogs, and when the next one is due. */
  startScheduled(now: number): Promise<{ backlogs: Backlog[]; nextAt: number | null }>;
  /** Leases mail that a rule of the operator bounces, with the reason. */
  claimRefused(now: number, limit: number): Promise<{ delivery: Delivery; reason: string }[]>;
  releaseLeases(deliveries: Delivery[]): Promise<void>;
  /** Until when a poll would find nothing new here; minus infinity if that is not known. */
  quietUntil(): Promise<number>;
  suspensions(now: number): Promise<Suspension[]>;
  /** Reads the pool assignments and the paused organizations; true if they have changed. */
  readPools(now: number): Promise<boolean>;
  /** Saves what the operator and the other nodes see of the destinations. */
  publish(readyQueues: Iterable<ReadyQueue>, now: number): Promise<void>;
  /** The ids of the leases that this node still had, and so were renewed. */
  renewLeases(ids: string[]): Promise<Set<string>>;
  freeOrphans(): Promise<void>;
  /** Leases what an earlier process of this node, or a node whose leases have run out, was sending. */
  takeBack(which: 'own' | 'expired'): Promise<Delivery[]>;
}

export interface RunnerParts
  extends Pick<
    DispatcherParts,
    | 'destinationOf'
    | 'resolve'
    | 'deliver'
    | 'notAttempted'
    | 'onWaiting'
    | 'isOurs'
    | 'isPaused'
    | 'pausedUntil'
    | 'notifyOthers'
  > {
  store: Store;
  peers: Peers;
  /** The attempt of a process that ended before it could record it. */
  interrupted(delivery: Delivery): Attempt;
  /** The record of a mail that a rule of the operator bounces. */
  refused(destination: string, reason: string): Attempt;
  /** Commits the outcome of an attempt. The time of the next attempt, or null if there is none. */
  record(delivery: Delivery, attempt: Attempt): Promise<number | null>;
  onError(what: string, error: unknown): void;
  clock: Clock;
  concurrency: number;
  leaseMs: number;
}

type Mode = 'new' | 'running' | 'stopping' | 'stopped';

const nextMode: Record<Mode, Mode | null> = {
  new: 'running',
  running: 'stopping',
  stopping: 'stopped',
  stopped: null,
};

const pollMs = 1000;
/** After this time, a poll looks even if the database has nothing new. */
const maxQuietMs = 10_000;
const maxPerClaim = 200;

export class QueueRunner {
  readonly #parts: RunnerParts;
  readonly #clock: Clock;
  readonly #leases: HeldLeases;
  readonly #dispatcher: Dispatcher;
  readonly #leaseRelease: ReturnType<typeof createLeaseRelease>;
  readonly #dueScanner: ReturnType<typeof createDueScanner>;
  /** Cuts the attempts short when the grace period of a stop is over. */
  readonly #aborting = new AbortController();
  #mode: Mode = 'new';
  #claiming: Promise<void> | null = null;
  #isScanRequested = false;
  #isClaimRequested = false;
  /** The last claim left mail behind because the node's limit was reached. */
  #wasClaimCut = false;
  #scannedAt = Number.NEGATIVE_INFINITY;
  #tickedAt = Number.NEGATIVE_INFINITY;
  #wakeAt = Number.POSITIVE_INFINITY;
  /** When the next scheduled mail is due, as far as this node knows. */
  #scheduledAt = Number.POSITIVE_INFINITY;
  #cancelTimer = () => {};

  constructor(parts: RunnerParts) {
    const { store, clock, onError, leaseMs } = parts;
    const stopped = this.#aborting.signal;
    this.#parts = parts;
    this.#clock = clock;
    this.#leases = createHeldLeases({
      renew: store.renewLeases,
      freeOrphans: store.freeOrphans,
      takeOver: () => this.#recover('expired'),
      leaseMs,
      onError,
      clock,
    });
    this.#dispatcher = new Dispatcher({
      ...parts,
      leases: this.#leases,
      recordOutcome: (delivery, attempt) => this.#recordOutcome(delivery, attempt),
      release: (delivery) => this.#leaseRelease.add(delivery),
      requestClaim: () => this.#requestClaim(),
      wasClaimCut: () => this.#wasClaimCut,
      stopped,
    });
    this.#leaseRelease = createLeaseRelease({
      commit: store.releaseLeases,
      onReleased: (deliveries) => this.#onReleased(deliveries),
      onError,
      clock,
      stopped,
    });
    this.#dueScanner = createDueScanner({
      findDue: store.findDue,
      listBacklogs: store.listBacklogs,
      noteBacklog: (backlog, isRetry) => this.#dispatcher.noteBacklog(backlog, isRetry),
      onError,
      clock,
    });
  }

  async start(): Promise<void> {
    this.#enter('running');
    await this.#parts.store.readPools(this.#clock.now());
    await this.#recover('own');
    await this.#parts.peers.exchange();
    this.#leases.start();
    this.wake();
  }

  /** Mail may be due. */
  wake(): void {
    this.#isScanRequested = true;
    this.#requestClaim();
  }

  /** Another node says that mail in this backlog is due. */
  noteBacklog(backlog: Backlog): void {
    if (this.#mode === 'running') this.#dispatcher.noteBacklog(backlog);
  }

  /** Mail was accepted that starts at this time. */
  noteScheduled(at: number): void {
    this.#scheduledAt = Math.min(this.#scheduledAt, at);
    // Later mail is found by the scans before its time.
    if (at < this.#clock.now() + pollMs) this.#wakeUpAt(at);
  }

  admit(domain: string, orgId: string): DispatchAdmission {
    return this.#dispatcher.admit(domain, orgId);
  }

  /** Claims nothing more, gives the attempts under way `graceMs` to end, then aborts them. */
  async stop(graceMs: number): Promise<void> {
    this.#enter('stopping');
    this.#cancelTimer();
    const timer = setTimeout(() => this.#aborting.abort(), graceMs);
    const finished = this.#dispatcher.stop();
    await this.#claiming;
    await finished;
    clearTimeout(timer);
    await this.#dueScanner.stop();
    await this.#leaseRelease.done();
    await this.#leases.stop();
    await this.#parts.peers.leave();
    this.#enter('stopped');
  }

  #enter(mode: Mode): void {
    if (nextMode[this.#mode] !== mode) throw new Error(`the runner is ${this.#mode}, it cannot be ${mode}`);
    this.#mode = mode;
  }

  /** There is room for mail that waits in backlogs, or a new backlog for which there is room. */
  #requestClaim(): void {
    this.#isClaimRequested = true;
    if (this.#mode !== 'running') return;
    this.#claiming ??= this.#claimWhileRequested().finally(() => {
      this.#claiming = null;
      // A request that came after the loop had ended, and before this, would be lost otherwise.
      if (this.#isClaimRequested) this.#requestClaim();
    });
  }

  /** Claims until nothing is due or there is no room, then sets the timer for the next time. */
  async #claimWhileRequested(): Promise<void> {
    try {
      while (this.#isClaimRequested && this.#mode === 'running') {
        await this.#tick();
        const isScanRequested = this.#isScanRequested;
        this.#isScanRequested = false;
        this.#isClaimRequested = false;
        this.#dispatcher.drainAll();
        if (isScanRequested) await this.#scan();
        await this.#claim();
      }
    } catch (error) {
      this.#isClaimRequested = false;
      this.#scannedAt = this.#clock.now();
      this.#parts.onError('the queue cannot be read; trying again in a second', error);
    }
    const now = this.#clock.now();
    this.#wakeUpAt(Math.max(this.#dispatcher.wakeAt(now), now + 1));
    this.#wakeUpAt(Math.min(this.#scannedAt, this.#tickedAt, now) + pollMs);
  }

  #wakeUpAt(at: number): void {
    if (this.#mode !== 'running' || at >= this.#wakeAt) return;
    this.#cancelTimer();
    this.#wakeAt = at;
    const poll = () => {
      this.#wakeAt = Number.POSITIVE_INFINITY;
      void this.#poll();
    };
    const wait = at - this.#clock.now();
    if (wait > 0) this.#cancelTimer = this.#clock.after(wait, poll);
    else poll();
  }

  /** Time has passed. While this node has nothing to do and the database has nothing new, only the next poll is set. */
  async #poll(): Promise<void> {
    const quietUntil = this.#isIdle() ? await this.#quietUntil() : Number.NEGATIVE_INFINITY;
    const now = this.#clock.now();
    if (quietUntil > now && this.#isIdle()) this.#wakeUpAt(Math.min(now + pollMs, quietUntil));
    else this.wake();
  }

  #isIdle(): boolean {
    return this.#claiming === null && this.#dispatcher.isIdle();
  }

  /** At most ten seconds, because destinations in trouble are published again and again. */
  async #quietUntil(): Promise<number> {
    // The look after an error reports it.
    const at = await this.#parts.store.quietUntil().catch(() => Number.NEGATIVE_INFINITY);
    return Math.min(at, this.#tickedAt + maxQuietMs);
  }

  /** Once a second: reads what the operator and the other nodes have changed, and publishes this node's state. */
  async #tick(): Promise<void> {
    if (!this.#isSecondSince(this.#tickedAt)) return;
    const { store, peers } = this.#parts;
    const now = this.#clock.now();
    this.#tickedAt = now;
    this.#dispatcher.suspend(await store.suspensions(now));
    this.#dispatcher.refreshShapes();
    await this.#bounceRefused(now);
    if (await store.readPools(now)) {
      this.#dispatcher.recheckOwnership();
      this.#dueScanner.scanSoon();
    }
    this.#dueScanner.tick();
    // The state comes first: when the others read that this node has given up a share, they can see what it still uses.
    await store.publish(this.#dispatcher.readyQueues(), now);
    await peers.exchange();
    this.#dispatcher.mergePeerStates();
    this.#dispatcher.forgetIdle();
  }

  async #bounceRefused(now: number): Promise<void> {
    const refused = await this.#parts.store.claimRefused(now, maxPerClaim);
    for (const { delivery, reason } of refused)
      this.#dispatcher.end(delivery, this.#parts.refused(delivery.domain, reason));
  }

  /** True also if the clock was set back, so that this stops nothing. */
  #isSecondSince(time: number): boolean {
    return Math.abs(this.#clock.now() - time) >= pollMs;
  }

  /** Once a second the scan overlaps the one before, and mail at its maximum age is claimed as well. */
  async #scan(): Promise<void> {
    const now = this.#clock.now();
    const isFull = this.#isSecondSince(this.#scannedAt);
    if (isFull) this.#scannedAt = now;
    if (isFull || now >= this.#scheduledAt) await this.#startScheduled(now);
    await this.#dueScanner.scanNewlyDue(isFull);
    if (!isFull) return;
    const limit = Math.min(maxPerClaim, this.#dispatcher.freeLeases());
    const expired = limit > 0 ? await this.#parts.store.claimExpired(now, limit) : [];
    for (const delivery of expired) this.#addLeased(delivery);
    // There may be more, so the next scan claims expired mail too.
    if (limit > 0 && expired.length === limit) {
      this.#scannedAt = Number.NEGATIVE_INFINITY;
      this.wake();
    }
  }

  async #startScheduled(now: number): Promise<void> {
    const { backlogs, nextAt } = await this.#parts.store.startScheduled(now);
    this.#scheduledAt = Number.POSITIVE_INFINITY;
    for (const backlog of backlogs) this.#dispatcher.announceBacklog(backlog);
    // If other nodes hold all rows that are due, the next scan is soon enough.
    if (nextAt !== null && (backlogs.length > 0 || nextAt > now)) this.noteScheduled(nextAt);
  }

  async #claim(): Promise<void> {
    const { claims, isCut } = this.#dispatcher.pickBacklogs(maxPerClaim);
    this.#wasClaimCut = isCut;
    if (claims.length === 0) return;
    const wanted = claims.map(({ backlog: { domain, orgId }, limit }) => ({ domain, orgId, limit }));
    const claimed = await this.#parts.store.claimBacklogs(this.#clock.now(), wanted);
    const counts = new Map<string, number>();
    for (const delivery of claimed) {
      counts.set(keyOf(delivery), (counts.get(keyOf(delivery)) ?? 0) + 1);
    }
    for (const { readyQueue, backlog, limit } of claims) {
      if ((counts.get(keyOf(backlog)) ?? 0) < limit) readyQueue.backlogs.remove(backlog);
    }
    for (const delivery of claimed) this.#addLeased(delivery);
    if (claimed.length > 0) this.#requestClaim();
  }

  /** A delivery that could be claimed has been released, even if the answer to the release was lost. */
  #addLeased(delivery: Delivery): void {
    this.#leaseRelease.forget(delivery.id);
    this.#dispatcher.addLeased(delivery);
  }

  /** Retries for as long as it takes: a delivered mail must not be sent again because the disk was full. */
  async #recordOutcome(delivery: Delivery, attempt: Attempt): Promise<void> {
    for (let tries = 0; ; tries++) {
      try {
        const nextAt = await this.#parts.record(delivery, attempt);
        this.#leases.end(delivery);
        if (nextAt !== null) this.#noteNextAttempt(delivery, nextAt);
        return;
      } catch (error) {
        const what = `the outcome of delivery ${delivery.id} cannot be recorded; retrying every second until it can`;
        if (tries === 0) this.#parts.onError(what, error);
        if (this.#aborting.signal.aborted) return;
        await pause(this.#clock, pollMs, this.#aborting.signal);
      }
    }
  }

  /** If the commit took longer than the wait, the scans have passed the time of the next attempt, or the maximum age. */
  #noteNextAttempt(delivery: Delivery, nextAt: number): void {
    if (nextAt <= this.#clock.now()) {
      this.#dispatcher.noteBacklog(delivery, true);
      this.#scannedAt = Number.NEGATIVE_INFINITY;
    }
    this.#wakeUpAt(nextAt);
  }

  #onReleased(deliveries: Delivery[]): void {
    for (const delivery of deliveries) {
      this.#leases.end(delivery);
      this.#dispatcher.announceBacklog(delivery);
    }
  }

  /** Records what a dead process was sending as interrupted attempts. */
  async #recover(which: 'own' | 'expired'): Promise<void> {
    let deliveries: Delivery[];
    do {
      deliveries = await this.#parts.store.takeBack(which);
      for (const delivery of deliveries) this.#leases.begin(delivery);
      await Promise.all(
        deliveries.map((delivery) => this.#recordOutcome(delivery, this.#parts.interrupted(delivery))),
      );
    } while (deliveries.length > 0);
  }
}

/** A node that does not deliver has another implementation (server/disabled-roles.ts). */
export type Runner = Pick<QueueRunner, keyof QueueRunner>;

const keyOf = ({ orgId, domain }: Backlog) => `${orgId} ${domain}`;
