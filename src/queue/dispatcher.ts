/**
 * Decides which leased delivery starts next: a delivery goes to its destination's ready queue, and starts when that
 * queue's limits and the limit for the whole node allow.
 *
 * Holds only what this node has leased, and the names of backlogs. A lease that cannot be used now (its destination is
 * suspended, its circuit is open) is released: the delivery waits in its backlog in the database until its turn. Never
 * touches the database itself. The methods follow a delivery from top to bottom.
 */
import { orAborted } from '../base/abort.ts';
import type { Clock } from '../base/clock.ts';
import type { Attempt, Delivery } from '../glossary.ts';
import type { Destination } from '../mail/destination-shape.ts';
import type { Backlog } from './backlogs.ts';
import { createDestinationLookup } from './destination-lookup.ts';
import type { HeldLeases } from './held-leases.ts';
import { type BacklogClaim, LeasePolicy } from './lease-policy.ts';
import type { ReadyQueue } from './ready-queue.ts';
import { ReadyQueues, type ReadyQueuesParts, type Suspension } from './ready-queues.ts';

export interface DispatcherParts extends ReadyQueuesParts {
  /** Looks up a domain that `destinationOf` does not know. Never rejects. */
  resolve(domain: string): Promise<Destination>;
  /** `connections`: how many its destination may have at once now. `stopped` cuts the attempt short. */
  deliver(delivery: Delivery, stopped: AbortSignal, connections: number): Promise<Attempt>;
  /** The attempt that was not made, and why: the mail reached its maximum age while it was blocked. */
  notAttempted(destination: string, reason: string): Attempt;
  /** Records the outcome and retries until it is recorded. Never rejects. */
  recordOutcome(delivery: Delivery, attempt: Attempt): Promise<void>;
  release(delivery: Delivery): void;
  /** Tells other nodes that mail waits in this backlog, which this node leaves to them. */
  notifyOthers(backlog: Backlog): void;
  leases: Pick<HeldLeases, 'begin' | 'isGood'>;
  /** Whether this node has source addresses for the organization's mail. All other mail is left to nodes that have. */
  isOurs(orgId: string): boolean;
  /** The operator has paused the organization: its mail waits and does not age. Then `isOurs` is false too. */
  isPaused(orgId: string): boolean;
  /** When the organization was last seen to be paused; minus infinity: never since this node started. */
  pausedUntil(orgId: string): number;
  /** There is room for mail that waits in the database. */
  requestClaim(): void;
  /** Whether the last claim left mail behind because the node's limit was reached. */
  wasClaimCut(): boolean;
  clock: Clock;
  /** Attempts under way at once, over all destinations. */
  concurrency: number;
  stopped: AbortSignal;
}

/**
 * The decision, made before a send's commit, whether its mail starts at once (leased) or waits in the database (due).
 * `settle` must be called after the commit, with null if it failed.
 */
export interface DispatchAdmission {
  disposition: 'leased' | 'due';
  settle(delivery: Delivery | null): void;
}

type Mode = 'running' | 'stopping' | 'stopped';

const nextMode: Record<Mode, Mode | null> = { running: 'stopping', stopping: 'stopped', stopped: null };

/** Ready deliveries keep their messages in memory, up to this many bytes each, and in all. */
const maxKeptBytes = 256 * 1024;
const maxReadyBytes = 32 * 1024 * 1024;
/** Why mail that is too old is not tried a last time. */
const notOurs = 'no running node has a source address in the IP pool of this organization';
/** What kept mail with a deadline from being tried before it, if nothing blocks it now. */
const wasPaused = 'the operator had paused the organization';
const notServed = 'no server that could send it was running';
const noTurn = 'it waited for a free connection to the destination, or for its turn';
/** Mail past its maximum age waits this long for another node to try it a last time. */
const lastAttemptGraceMs = 60_000;
/** A 421 while other connections work means that we were too fast: the delivery is put back this often. */
const maxRequeues = 3;

export class Dispatcher {
  readonly #parts: DispatcherParts;
  readonly #clock: Clock;
  readonly #startedAt: number;
  readonly #readyQueues: ReadyQueues;
  readonly #policy: LeasePolicy;
  readonly #lookup: ReturnType<typeof createDestinationLookup>;
  /** Ready queues that could start a delivery if the node's limit allowed it; they take turns. */
  readonly #starved = new Set<ReadyQueue>();
  /** Attempts, look-ups and recordings of outcomes under way. */
  readonly #tasks = new Set<Promise<void>>();
  readonly #requeues = new Map<string, number>();
  readonly #stopping = new AbortController();
  #mode: Mode = 'running';
  #attempting = 0;
  /** The bytes of the messages in memory. */
  #messageBytes = 0;

  constructor(parts: DispatcherParts) {
    this.#parts = parts;
    this.#clock = parts.clock;
    this.#startedAt = parts.clock.now();
    this.#readyQueues = new ReadyQueues(parts);
    this.#policy = new LeasePolicy(this.#readyQueues, parts.clock, parts.concurrency);
    this.#lookup = createDestinationLookup(
      (domain) => this.#resolve(domain),
      (destination, backlog, isRetry) => {
        if (parts.isOurs(backlog.orgId))
          this.#addBacklog(this.#readyQueues.of(destination), backlog, isRetry);
      },
    );
  }

  /** Before a send is committed: whether its delivery is leased at once, or waits in its backlog. */
  admit(domain: string, orgId: string): DispatchAdmission {
    const readyQueue = this.#readyQueues.find(domain);
    const mayLease = this.#mode === 'running' && this.#parts.isOurs(orgId);
    if (mayLease && this.#policy.mayLease(readyQueue, domain)) {
      return { disposition: 'leased', settle: this.#reserve(readyQueue, domain) };
    }
    const settle = (delivery: Delivery | null) => {
      if (delivery) this.announceBacklog({ domain, orgId });
    };
    return { disposition: 'due', settle };
  }

  /** Keeps a slot until it is known whether the delivery was committed. */
  #reserve(readyQueue: ReadyQueue | null, domain: string): DispatchAdmission['settle'] {
    if (readyQueue) readyQueue.reserve();
    else this.#policy.countUnresolved(domain, 1);
    return (delivery) => {
      if (readyQueue) readyQueue.cancelReservation();
      else this.#policy.countUnresolved(domain, -1);
      if (delivery) this.addLeased(delivery);
    };
  }

  /** A delivery that this node has just leased. */
  addLeased(delivery: Delivery): void {
    this.#parts.leases.begin(delivery);
    this.#policy.countLeased(1);
    this.#messageBytes += sizeOf(delivery);
    const readyQueue = this.#readyQueues.find(delivery.domain);
    if (readyQueue) this.#place(readyQueue, delivery);
    else this.#track(this.#placeUnresolved(delivery));
  }

  async #placeUnresolved(delivery: Delivery): Promise<void> {
    this.#policy.countUnresolved(delivery.domain, 1);
    const destination = await this.#resolve(delivery.domain);
    this.#policy.countUnresolved(delivery.domain, -1);
    if (destination) this.#place(this.#readyQueues.of(destination), delivery);
    else this.#release(delivery);
  }

  /** Null if the dispatcher stops before the answer. */
  #resolve(domain: string): Promise<Destination | null> {
    const { signal } = this.#stopping;
    return orAborted(this.#parts.resolve(domain), signal).catch((error) => {
      if (signal.aborted) return null;
      throw error;
    });
  }

  /** Makes the delivery ready, or releases it, or ends it if it is blocked and too old to wait. */
  #place(readyQueue: ReadyQueue, delivery: Delivery): void {
    const { orgId, domain } = delivery;
    const reason = this.#parts.isOurs(orgId) ? this.#readyQueues.blockedReason(readyQueue, domain) : notOurs;
    const expiresAt = delivery.expiresAt + (readyQueue.hasNoShare() ? lastAttemptGraceMs : 0);
    if (this.#mode !== 'running') this.#release(delivery);
    else if (this.#isPastDeadline(delivery))
      this.#expire(readyQueue, delivery, this.#whatHeld(delivery, reason));
    else if (this.#parts.isPaused(orgId)) this.#release(delivery);
    else if (reason === null) this.#enqueue(readyQueue, delivery);
    else if (expiresAt > this.#clock.now()) this.#release(delivery);
    else this.#expire(readyQueue, delivery, reason);
  }

  #placeAgain(readyQueue: ReadyQueue): void {
    for (const delivery of readyQueue.ready.splice(0)) this.#place(readyQueue, delivery);
  }

  #enqueue(readyQueue: ReadyQueue, delivery: Delivery): void {
    readyQueue.ready.push(delivery);
    this.#readyQueues.active.add(readyQueue);
    this.#drain(readyQueue);
    const isTooMuch = sizeOf(delivery) > maxKeptBytes || this.#messageBytes > maxReadyBytes;
    if (isTooMuch && readyQueue.ready.includes(delivery)) this.#dropMessage(delivery);
  }

  /** The message is read again when the delivery starts. */
  #dropMessage(delivery: Delivery): void {
    this.#messageBytes -= sizeOf(delivery);
    delete delivery.message;
  }

  /** Starts what may start, and releases what is ready if the queue is blocked. */
  #drain(readyQueue: ReadyQueue): void {
    const { ready, backlogs } = readyQueue;
    if (ready.length === 0 && backlogs.size > 0) return;
    const now = this.#clock.now();
    while (ready.length > 0 && readyQueue.mayStart(now)) {
      if (!this.#mayStart()) {
        this.#starved.add(readyQueue);
        break;
      }
      const delivery = ready.shift()!;
      const isGood = this.#parts.leases.isGood(delivery) && this.#parts.isOurs(delivery.orgId);
      if (!isGood) this.#release(delivery);
      else if (this.#isPastDeadline(delivery))
        this.#expire(readyQueue, delivery, this.#whatHeld(delivery, null));
      else this.#start(readyQueue, delivery);
    }
    if (readyQueue.blockedReason(now) !== null) this.#placeAgain(readyQueue);
    if (ready.length === 0 && backlogs.size === 0) this.#readyQueues.active.delete(readyQueue);
  }

  /** While outcomes cannot be recorded, new attempts wait, so that unrecorded outcomes stay bounded. */
  #mayStart(): boolean {
    const { concurrency } = this.#parts;
    return this.#mode === 'running' && this.#attempting < concurrency && this.#tasks.size < 3 * concurrency;
  }

  #start(readyQueue: ReadyQueue, delivery: Delivery): void {
    readyQueue.attemptStarted(this.#clock.now());
    this.#attempting += 1;
    this.#track(this.#attempt(readyQueue, delivery));
  }

  async #attempt(readyQueue: ReadyQueue, delivery: Delivery): Promise<void> {
    const { deliver, stopped } = this.#parts;
    const attempt = await deliver(delivery, stopped, Math.max(readyQueue.limit(), 1));
    readyQueue.attemptFinished(attempt.signal, attempt.outcome.diagnostic, this.#clock.now());
    this.#attempting -= 1;
    const isRequeued = this.#requeueIfTooFast(readyQueue, delivery, attempt);
    this.#startNext(readyQueue);
    if (!isRequeued) await this.#finish(delivery, attempt);
  }

  #requeueIfTooFast(readyQueue: ReadyQueue, delivery: Delivery, { signal, reply }: Attempt): boolean {
    const wasTooFast = signal === 'throttled' && reply?.code === 421 && readyQueue.inFlight > 0;
    const count = (this.#requeues.get(delivery.id) ?? 0) + 1;
    if (!wasTooFast || this.#mode !== 'running' || count > maxRequeues) return false;
    this.#requeues.set(delivery.id, count);
    readyQueue.ready.unshift(delivery);
    this.#readyQueues.active.add(readyQueue);
    return true;
  }

  /** An attempt has ended: the queues that have waited longest for the node's limit start first. */
  #startNext(readyQueue: ReadyQueue): void {
    this.#starved.add(readyQueue);
    for (const next of this.#starved) {
      if (!this.#mayStart()) break;
      this.#starved.delete(next);
      this.#drain(next);
    }
    const hasSlots = readyQueue.backlogs.size > 0 && readyQueue.needsRefill(this.#clock.now());
    if (hasSlots || (this.#parts.wasClaimCut() && this.#policy.isHalfFree())) this.#parts.requestClaim();
  }

  async #finish(delivery: Delivery, attempt: Attempt): Promise<void> {
    this.#forget(delivery);
    this.#requeues.delete(delivery.id);
    await this.#parts.recordOutcome(delivery, attempt);
  }

  #expire(readyQueue: ReadyQueue, delivery: Delivery, reason: string): void {
    this.#forget(delivery);
    this.#track(this.#parts.recordOutcome(delivery, this.#parts.notAttempted(readyQueue.name, reason)));
  }

  /** What kept mail until its deadline had passed. `blocked`: why it could not start now. */
  #whatHeld({ orgId, expiresAt }: Delivery, blocked: string | null): string {
    // A paused organization is not ours either; and when it was last seen to be paused can be a second before the deadline.
    if (this.#parts.isPaused(orgId) || this.#parts.pausedUntil(orgId) >= expiresAt) return wasPaused;
    return blocked ?? (expiresAt < this.#startedAt ? notServed : noTurn);
  }

  /** A delivery that this node has just leased only to end it. */
  end(delivery: Delivery, attempt: Attempt): void {
    this.#parts.leases.begin(delivery);
    this.#track(this.#parts.recordOutcome(delivery, attempt));
  }

  #isPastDeadline({ hasDeadline, expiresAt }: Delivery): boolean {
    return hasDeadline === true && expiresAt <= this.#clock.now();
  }

  #release(delivery: Delivery): void {
    this.#forget(delivery);
    this.#parts.release(delivery);
  }

  #forget(delivery: Delivery): void {
    this.#policy.countLeased(-1);
    this.#messageBytes -= sizeOf(delivery);
  }

  #track(task: Promise<void>): void {
    this.#tasks.add(task);
    task.finally(() => this.#tasks.delete(task));
  }

  /** Mail in this backlog is due. `isRetry`: some of it has just fallen due for another attempt. */
  noteBacklog(backlog: Backlog, isRetry = false): void {
    if (!this.#parts.isOurs(backlog.orgId)) return;
    const readyQueue = this.#readyQueues.find(backlog.domain);
    if (readyQueue) this.#addBacklog(readyQueue, backlog, isRetry);
    else this.#lookup.add(backlog, isRetry);
  }

  /** This node has put mail into the backlog. Other nodes do not know of it yet. */
  announceBacklog(backlog: Backlog): void {
    this.noteBacklog(backlog);
    const isForOthers =
      !this.#parts.isOurs(backlog.orgId) || this.#readyQueues.find(backlog.domain)?.hasNoShare();
    if (isForOthers) this.#parts.notifyOthers(backlog);
  }

  #addBacklog(readyQueue: ReadyQueue, backlog: Backlog, isRetry: boolean): void {
    const now = this.#clock.now();
    this.#readyQueues.addBacklog(readyQueue, backlog);
    if (isRetry && !this.#readyQueues.suspension(readyQueue, backlog.domain)) readyQueue.allowProbe(now);
    if (readyQueue.freeSlots(now) > 0) this.#parts.requestClaim();
  }

  /** How many more deliveries may be leased. */
  freeLeases(): number {
    return this.#policy.freeLeases();
  }

  /** The backlogs to claim from next, for at most `max` deliveries. */
  pickBacklogs(max: number): { claims: BacklogClaim[]; isCut: boolean } {
    return this.#policy.pickBacklogs(Math.min(max, this.#policy.freeLeases()));
  }

  /** Pool assignments or pauses have changed, and with them which mail this node sends. */
  recheckOwnership(): void {
    for (const readyQueue of this.#readyQueues.active) {
      readyQueue.backlogs.removeOf((orgId) => !this.#parts.isOurs(orgId));
      this.#placeAgain(readyQueue);
    }
  }

  suspend(suspensions: Suspension[]): void {
    this.#readyQueues.suspend(suspensions);
    if (suspensions.length === 0) return;
    for (const readyQueue of this.#readyQueues.active) this.#placeAgain(readyQueue);
  }

  /** What is ready waits under the limits of today, not of the time when it was leased. */
  refreshShapes(): void {
    for (const { ready } of this.#readyQueues.active) if (ready[0]) this.#readyQueues.find(ready[0].domain);
  }

  mergePeerStates(): void {
    this.#readyQueues.mergePeerStates();
  }

  drainAll(): void {
    for (const readyQueue of this.#readyQueues.active) this.#drain(readyQueue);
  }

  /** When something can start that cannot start now; infinite if time alone changes nothing. */
  wakeAt(now: number): number {
    let at = Number.POSITIVE_INFINITY;
    for (const readyQueue of this.#readyQueues.active) at = Math.min(at, readyQueue.wakeAt(now));
    return at;
  }

  /** Nothing is under way or waits in memory. */
  isIdle(): boolean {
    return this.#tasks.size === 0 && this.#readyQueues.areIdle();
  }

  readyQueues(): Iterable<ReadyQueue> {
    return this.#readyQueues.all();
  }

  forgetIdle(): void {
    this.#readyQueues.forgetIdle();
  }

  /** Starts nothing more and releases what is ready. Resolves when no attempt and no recording is under way. */
  async stop(): Promise<void> {
    this.#enter('stopping');
    this.#stopping.abort();
    for (const readyQueue of this.#readyQueues.active) {
      for (const delivery of readyQueue.ready.splice(0)) this.#release(delivery);
    }
    while (this.#tasks.size > 0) await Promise.all(this.#tasks);
    this.#enter('stopped');
  }

  #enter(mode: Mode): void {
    if (nextMode[this.#mode] !== mode)
      throw new Error(`the dispatcher is ${this.#mode}, it cannot be ${mode}`);
    this.#mode = mode;
  }
}

const sizeOf = ({ message }: Delivery) => message?.length ?? 0;
