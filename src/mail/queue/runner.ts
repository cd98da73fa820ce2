/**
 * The runner keeps as many deliveries under way as the limits allow. It builds the queue's parts, starts and stops them, and
 * ends each delivery: it records the outcome, and releases the lease if there was no attempt.
 *
 * The claimer leases due deliveries, the dispatcher starts them, the poller wakes the claimer. No transaction is open in
 * between. A delivery that has just been accepted skips the claim if there is room (`admit`). Memory holds leased deliveries
 * and the names of backlogs, so it does not grow with the queue. What a dead process was sending is found by its lease and
 * recorded as an interrupted attempt.
 */

import type { Clock } from '#platform/base/clock.ts';
import { pause } from '#platform/base/waits.ts';
import type { Attempt, Backlog, Delivery } from '#platform/values/glossary.ts';
import { Claimer } from './claimer.ts';
import { type Attempts, Dispatcher } from './dispatcher.ts';
import { HeldLeases } from './held-leases.ts';
import { LeasePolicy } from './lease-policy.ts';
import { Poller } from './poller.ts';
import { ReadyQueues, type ReadyQueuesParts } from './ready-queues.ts';
import type { Ownership, Peers } from './share.ts';
import type { Store } from './store.ts';

/** server/delivery.ts builds them. */
export interface RunnerParts extends Omit<ReadyQueuesParts, 'requestClaim' | 'stopping'> {
  store: Store;
  peers: Peers;
  ownership: Ownership;
  attempts: Attempts;
  /** Commits the outcome of an attempt (mail/record/record.ts). The time of the next attempt, or null if there is none. */
  record(delivery: Delivery, attempt: Attempt): Promise<number | null>;
  onError(what: string, error: unknown): void;
  clock: Clock;
  /** Attempts under way at once, over all destinations. */
  concurrency: number;
  leaseMs: number;
  maxQuietMs: number;
}

/**
 * The decision, made before a send's commit, whether its mail starts at once (leased) or waits in the database (due).
 * `settle` must be called after the commit, with null if it failed.
 */
export interface DispatchAdmission {
  startState: 'leased' | 'due';
  settle(delivery: Delivery | null): void;
}

type Mode = 'new' | 'running' | 'stopping' | 'stopped';

const nextMode: Record<Mode, Mode | null> = {
  new: 'running',
  running: 'stopping',
  stopping: 'stopped',
  stopped: null,
};

const retryDelayMs = 1000;

export class QueueRunner {
  readonly #parts: RunnerParts;
  readonly #leases: HeldLeases;
  readonly #readyQueues: ReadyQueues;
  readonly #policy: LeasePolicy;
  readonly #dispatcher: Dispatcher;
  readonly #poller: Poller;
  readonly #claimer: Claimer;
  /** Ends look-ups when a stop begins. */
  readonly #stopping = new AbortController();
  /** Cuts the attempts short when the grace period of a stop is over. */
  readonly #aborting = new AbortController();
  #mode: Mode = 'new';
  #roundsSeen = 0;

  constructor(parts: RunnerParts) {
    const stopping = this.#stopping.signal;
    const stopped = this.#aborting.signal;
    const isRunning = () => this.#mode === 'running';
    const requestClaim = () => this.#claimer.request();
    this.#parts = parts;
    this.#leases = new HeldLeases({
      ...parts,
      takeOver: () => this.#recover('expired'),
      onReleased: (delivery) => this.#readyQueues.noteReleased(delivery),
      stopped,
    });
    const readyQueues = new ReadyQueues({ ...parts, requestClaim, stopping });
    const policy = new LeasePolicy(readyQueues, parts.clock, parts.concurrency);
    const dispatcher = new Dispatcher({
      ...parts,
      readyQueues,
      policy,
      leases: this.#leases,
      recordOutcome: (delivery, attempt) => this.#recordOutcome(delivery, attempt),
      requestClaim,
      wasClaimCut: () => this.#claimer.wasCut,
      isRunning,
      stopped,
    });
    this.#poller = new Poller({
      ...parts,
      readyQueues,
      dispatcher,
      isRunning,
      isClaiming: () => this.#claimer.isClaiming,
      onTime: (hasChanged) => this.#claimer.requestScan(hasChanged),
      onRoom: requestClaim,
      nextScanAt: () => this.#claimer.nextScanAt(),
    });
    this.#claimer = new Claimer({
      ...parts,
      readyQueues,
      policy,
      dispatcher,
      poller: this.#poller,
      isRunning,
    });
    this.#readyQueues = readyQueues;
    this.#policy = policy;
    this.#dispatcher = dispatcher;
  }

  async start(): Promise<void> {
    this.#enter('running');
    await this.#parts.store.readPools(this.#parts.clock.now());
    await this.#recover('own');
    await this.#parts.peers.exchange();
    this.#leases.start();
    this.wake();
  }

  /** Mail may be due. */
  wake(): void {
    this.#claimer.requestScan();
  }

  /** Whether a read of the queue was tried since the last call. Calls that are minutes apart show whether the runner works. */
  hasProgressed(): boolean {
    const before = this.#roundsSeen;
    this.#roundsSeen = this.#claimer.rounds;
    return this.#roundsSeen !== before;
  }

  /** A notification says that mail in these backlogs is due. */
  noteNotified(backlogs: Backlog[]): void {
    if (this.#mode === 'running') this.#claimer.noteNotified(backlogs);
  }

  /** Mail was accepted that starts at this time. */
  noteScheduled(at: number): void {
    this.#claimer.noteScheduled(at);
  }

  /** Before a send is committed: whether its delivery is leased at once, or waits in its backlog. */
  admit(domain: string, orgId: string): DispatchAdmission {
    const readyQueue = this.#readyQueues.find(domain);
    const isOurs = this.#mode === 'running' && this.#parts.ownership.isOurs(orgId);
    if (!isOurs || !this.#policy.mayLease(readyQueue, domain)) {
      const settle = (delivery: Delivery | null) => {
        if (delivery) this.#readyQueues.announce({ domain, orgId });
      };
      return { startState: 'due', settle };
    }
    // Keeps a slot until it is known whether the delivery was committed.
    const free = this.#policy.reserve(readyQueue, domain);
    const settle = (delivery: Delivery | null) => {
      free();
      if (delivery) this.#dispatcher.addLeased(delivery);
    };
    return { startState: 'leased', settle };
  }

  /** Claims nothing more, gives the attempts under way `graceMs` to end, then aborts them. */
  async stop(graceMs: number): Promise<void> {
    this.#enter('stopping');
    this.#poller.stop();
    this.#stopping.abort();
    const timer = setTimeout(() => this.#aborting.abort(), graceMs);
    const finished = this.#dispatcher.stop();
    await this.#claimer.stop();
    await finished;
    clearTimeout(timer);
    await this.#leases.stop();
    await this.#parts.peers.leave();
    this.#enter('stopped');
  }

  #enter(mode: Mode): void {
    if (nextMode[this.#mode] !== mode) throw new Error(`the runner is ${this.#mode}, it cannot be ${mode}`);
    this.#mode = mode;
  }

  /** Retries for as long as it takes: a delivered mail must not be sent again because the disk was full. */
  async #recordOutcome(delivery: Delivery, attempt: Attempt): Promise<void> {
    for (let tries = 0; ; tries++) {
      try {
        const nextAt = await this.#parts.record(delivery, attempt);
        this.#leases.end(delivery);
        if (nextAt !== null) this.#claimer.noteNextAttempt(delivery, nextAt);
        return;
      } catch (error) {
        const what = `the outcome of delivery ${delivery.id} cannot be recorded; retrying every second until it can`;
        if (tries === 0) this.#parts.onError(what, error);
        if (this.#aborting.signal.aborted) return;
        await pause(this.#parts.clock, retryDelayMs, this.#aborting.signal);
      }
    }
  }

  /** Records what a dead process was sending as interrupted attempts. */
  async #recover(which: 'own' | 'expired'): Promise<void> {
    const { store, attempts } = this.#parts;
    let deliveries: Delivery[];
    do {
      deliveries = await store.takeBack(which);
      for (const delivery of deliveries) this.#leases.begin(delivery);
      await Promise.all(
        deliveries.map((delivery) => this.#recordOutcome(delivery, attempts.interrupted(delivery))),
      );
    } while (deliveries.length > 0);
  }
}

/** A node that does not deliver has another implementation (server/disabled-roles.ts). */
export type Runner = Pick<QueueRunner, keyof QueueRunner>;
