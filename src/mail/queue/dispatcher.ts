/**
 * Decides which leased delivery starts next: a delivery goes to its destination's ready queue, and starts when that
 * queue's limits and the limit for the whole node allow.
 *
 * Holds only what this node has leased. A lease that cannot be used now (its destination is suspended, its circuit is open)
 * is released: the delivery waits in its backlog in the database until its turn. Never touches the database itself. The
 * methods follow a delivery from top to bottom.
 */
import type { Clock } from '#platform/base/clock.ts';
import type { Attempt, Delivery } from '#platform/values/glossary.ts';
import type { HeldLeases } from './held-leases.ts';
import type { LeasePolicy } from './lease-policy.ts';
import { PutBack } from './put-back.ts';
import type { ReadyQueue } from './ready-queue.ts';
import type { ReadyQueues } from './ready-queues.ts';
import type { Ownership } from './share.ts';

/** One attempt, and the records of mail that is not tried; deliver.ts. */
export interface Attempts {
  /** `connections`: how many its destination may have at once now. `stopped` cuts the attempt short. */
  deliver(delivery: Delivery, stopped: AbortSignal, connections: number): Promise<Attempt>;
  /** The attempt of a process that ended before it could record it. */
  interrupted(delivery: Delivery): Attempt;
  /** The attempt that was not made, and why: the mail reached its maximum age while it was blocked. */
  notAttempted(destination: string, reason: string): Attempt;
  /** The record of a mail that a rule of the operator bounces. */
  refused(destination: string, reason: string): Attempt;
}

/** All but the attempts, the ownership and the clock are the runner's. */
export interface DispatcherParts {
  attempts: Pick<Attempts, 'deliver' | 'notAttempted'>;
  ownership: Ownership;
  readyQueues: ReadyQueues;
  policy: LeasePolicy;
  leases: Pick<HeldLeases, 'begin' | 'isGood' | 'release'>;
  /** Records the outcome and retries until it is recorded. Never rejects. */
  recordOutcome(delivery: Delivery, attempt: Attempt): Promise<void>;
  /** There is room for mail that waits in the database. */
  requestClaim(): void;
  /** Whether the last claim left mail behind because the node's limit was reached. */
  wasClaimCut(): boolean;
  isRunning(): boolean;
  clock: Clock;
  /** Attempts under way at once, over all destinations. */
  concurrency: number;
  /** Cuts attempts short. */
  stopped: AbortSignal;
}

/** Ready deliveries keep their messages in memory, up to this many bytes each, and in all. */
const maxKeptBytes = 256 * 1024;
const maxReadyBytes = 32 * 1024 * 1024;
/** Why mail that is too old is not tried a last time. */
const notOurs = 'no running node has a source address in the IP pool of this organization';
/** The reason why mail with a deadline was not tried before it, if nothing blocks it now. */
const wasPaused = 'the operator had paused the organization';
const notServed = 'no server that could send it was running';
const noTurn = 'it waited for a free connection to the destination, or for its turn';
/** Mail past its maximum age waits this long for another node to try it a last time. */
const lastAttemptGraceMs = 60_000;

export class Dispatcher {
  readonly #parts: DispatcherParts;
  readonly #clock: Clock;
  readonly #startedAt: number;
  /** Ready queues that could start a delivery if the node's limit allowed it; they take turns. */
  readonly #starved = new Set<ReadyQueue>();
  /** Attempts, look-ups and recordings of outcomes under way. */
  readonly #tasks = new Set<Promise<void>>();
  readonly #putBack = new PutBack();
  #attempting = 0;
  /** The bytes of the messages in memory. */
  #messageBytes = 0;

  constructor(parts: DispatcherParts) {
    this.#parts = parts;
    this.#clock = parts.clock;
    this.#startedAt = parts.clock.now();
  }

  /**
   * A delivery that this node has just leased; `from`: the queue whose backlog it was claimed from. False if it was released
   * again at once.
   */
  addLeased(delivery: Delivery, from: ReadyQueue | null = null): boolean {
    this.#parts.leases.begin(delivery);
    this.#parts.policy.countLeased(1);
    this.#messageBytes += sizeOf(delivery);
    const readyQueue = this.#parts.readyQueues.find(delivery.domain);
    if (readyQueue) return this.#placeClaimed(readyQueue, delivery, from);
    this.#track(this.#placeUnresolved(delivery, from));
    return true;
  }

  /** Keeps a slot of `from` meanwhile, so that the look-ups do not exceed its limits. */
  async #placeUnresolved(delivery: Delivery, from: ReadyQueue | null): Promise<void> {
    const { policy, readyQueues } = this.#parts;
    const free = policy.reserve(from, delivery.domain);
    const readyQueue = await readyQueues.lookUp(delivery.domain);
    free();
    if (readyQueue) this.#placeClaimed(readyQueue, delivery, from);
    else this.#release(delivery);
  }

  /** If the look-up has found another destination, the backlog goes there, and so does its mail if there is room. */
  #placeClaimed(readyQueue: ReadyQueue, delivery: Delivery, from: ReadyQueue | null): boolean {
    const { readyQueues } = this.#parts;
    if (from === null || !readyQueues.handOver(from, delivery)) return this.#place(readyQueue, delivery);
    from.backlogs.delete(delivery);
    if (readyQueue.freeSlots(this.#clock.now()) > 0) return this.#place(readyQueue, delivery);
    this.#release(delivery);
    return false;
  }

  /** Makes the delivery ready, or releases it (false), or ends it if it is blocked and too old to wait. */
  #place(readyQueue: ReadyQueue, delivery: Delivery): boolean {
    const { orgId, domain } = delivery;
    const { readyQueues, ownership, isRunning } = this.#parts;
    const reason = ownership.isOurs(orgId) ? readyQueues.blockedReason(readyQueue, domain) : notOurs;
    const expiresAt = delivery.expiresAt + (readyQueue.hasNoShare() ? lastAttemptGraceMs : 0);
    const isPastDeadline = this.#isPastDeadline(delivery);
    const isHeldBack = ownership.isPaused(orgId) || (reason !== null && expiresAt > this.#clock.now());
    if (!isRunning() || (isHeldBack && !isPastDeadline)) {
      this.#release(delivery);
      return false;
    }
    if (isPastDeadline) this.#expire(readyQueue, delivery, this.#whatHeld(delivery, reason));
    else if (reason === null) this.#enqueue(readyQueue, delivery);
    else this.#expire(readyQueue, delivery, reason);
    return true;
  }

  /** Ready mail may have become blocked, or left to other nodes. */
  placeReadyAgain(): void {
    for (const readyQueue of this.#parts.readyQueues.active) this.#placeAgain(readyQueue);
  }

  #placeAgain(readyQueue: ReadyQueue): void {
    for (const delivery of readyQueue.ready.splice(0)) this.#place(readyQueue, delivery);
  }

  #enqueue(readyQueue: ReadyQueue, delivery: Delivery): void {
    readyQueue.ready.push(delivery);
    this.#parts.readyQueues.active.add(readyQueue);
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
    const { leases, ownership } = this.#parts;
    if (ready.length === 0 && backlogs.size > 0) return;
    const now = this.#clock.now();
    while (ready.length > 0 && readyQueue.mayStart(now)) {
      if (!this.#mayStart()) {
        this.#starved.add(readyQueue);
        break;
      }
      const delivery = ready.shift()!;
      const isGood = leases.isGood(delivery) && ownership.isOurs(delivery.orgId);
      if (!isGood) this.#release(delivery);
      else if (this.#isPastDeadline(delivery))
        this.#expire(readyQueue, delivery, this.#whatHeld(delivery, null));
      else this.#start(readyQueue, delivery);
    }
    if (readyQueue.isBlocked(now)) this.#placeAgain(readyQueue);
    if (ready.length === 0 && backlogs.size === 0) this.#parts.readyQueues.active.delete(readyQueue);
  }

  /** While outcomes cannot be recorded, new attempts wait, so that unrecorded outcomes stay bounded. */
  #mayStart(): boolean {
    const { isRunning, concurrency } = this.#parts;
    return isRunning() && this.#attempting < concurrency && this.#tasks.size < 3 * concurrency;
  }

  #start(readyQueue: ReadyQueue, delivery: Delivery): void {
    readyQueue.attemptStarted(this.#clock.now());
    this.#attempting += 1;
    this.#track(this.#attempt(readyQueue, delivery));
  }

  async #attempt(readyQueue: ReadyQueue, delivery: Delivery): Promise<void> {
    const { attempts, stopped } = this.#parts;
    const attempt = await attempts.deliver(delivery, stopped, Math.max(readyQueue.limit(), 1));
    readyQueue.attemptFinished(attempt.signal, attempt.verdict.diagnostic, this.#clock.now());
    this.#attempting -= 1;
    const isPutBack = this.#putBackIfTooFast(readyQueue, delivery, attempt);
    this.#startNext(readyQueue);
    const { rule, retryAfterMs } = attempt.verdict;
    // It waits in the database, as for its next attempt.
    if (rule === 'put-off')
      this.#release(Object.assign(delivery, { dueAt: attempt.endedAt + retryAfterMs! }));
    else if (!isPutBack) await this.#finish(delivery, attempt);
  }

  #putBackIfTooFast(readyQueue: ReadyQueue, delivery: Delivery, attempt: Attempt): boolean {
    const { signal, reply } = attempt;
    const wasTooFast = signal === 'throttled' && reply?.code === 421 && readyQueue.inFlight > 0;
    if (!wasTooFast || !this.#parts.isRunning() || !this.#putBack.note(delivery, attempt)) return false;
    readyQueue.ready.unshift(delivery);
    this.#parts.readyQueues.active.add(readyQueue);
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
    const { wasClaimCut, policy, requestClaim } = this.#parts;
    const hasSlots = readyQueue.backlogs.size > 0 && readyQueue.needsRefill(this.#clock.now());
    if (hasSlots || (wasClaimCut() && policy.isHalfFree())) requestClaim();
  }

  async #finish(delivery: Delivery, attempt: Attempt): Promise<void> {
    const whole = this.#putBack.whole(delivery, attempt);
    this.#forget(delivery);
    await this.#parts.recordOutcome(delivery, whole);
  }

  #expire(readyQueue: ReadyQueue, delivery: Delivery, reason: string): void {
    const { recordOutcome, attempts } = this.#parts;
    this.#forget(delivery);
    this.#track(recordOutcome(delivery, attempts.notAttempted(readyQueue.name, reason)));
  }

  /** The reason why mail waited until its deadline had passed. `blocked`: why it could not start now. */
  #whatHeld({ orgId, expiresAt }: Delivery, blocked: string | null): string {
    const { isPaused, pausedUntil } = this.#parts.ownership;
    // A paused organization is not ours either; and when it was last seen to be paused can be a second before the deadline.
    if (isPaused(orgId) || pausedUntil(orgId) >= expiresAt) return wasPaused;
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
    this.#parts.leases.release(delivery);
  }

  #forget(delivery: Delivery): void {
    this.#parts.policy.countLeased(-1);
    this.#messageBytes -= sizeOf(delivery);
    this.#putBack.forget(delivery);
  }

  #track(task: Promise<void>): void {
    this.#tasks.add(task);
    task.finally(() => this.#tasks.delete(task));
  }

  drainAll(): void {
    for (const readyQueue of this.#parts.readyQueues.active) this.#drain(readyQueue);
  }

  /** Releases what is ready. Resolves when no attempt and no recording is under way. */
  async stop(): Promise<void> {
    for (const readyQueue of this.#parts.readyQueues.active) {
      for (const delivery of readyQueue.ready.splice(0)) this.#release(delivery);
    }
    while (this.#tasks.size > 0) await Promise.all(this.#tasks);
  }
}

const sizeOf = ({ message }: Delivery) => message?.length ?? 0;
