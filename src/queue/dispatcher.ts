/**
 * Who is served next: leased deliveries go to their destination's line, and from there into the air as its gauge and
 * the room in all allow.
 *
 * Holds only what this node has leased, and the names of lanes. A lease that cannot be used now (the destination is
 * suspended, its circuit is open) is given back: the delivery waits in its lane in the database, and is fetched when its
 * turn has come. Never touches the database itself.
 */
import { orAborted } from '../base/abort.ts';
import type { Clock } from '../base/clock.ts';
import { type Attempt, type Delivery, largestAtHand } from '../glossary.ts';
import type { Destination } from '../mail/destination-shape.ts';
import type { Backlog } from './backlogs.ts';
import { createDestinationLookup } from './destination-lookup.ts';
import type { createHeldLeases } from './held-leases.ts';
import { createLeasePolicy } from './lease-policy.ts';
import type { ReadyQueue } from './ready-queue.ts';
import { createReadyQueues, type ReadyQueuesParts, type Suspension } from './ready-queues.ts';

export interface DispatcherParts extends ReadyQueuesParts {
  /** Finds out where `destinationOf` does not know. Never rejects. */
  resolve(domain: string): Promise<Destination>;
  /** `connections`: as many as its destination is given at once, now. */
  deliver(delivery: Delivery, stopped: AbortSignal, connections: number): Promise<Attempt>;
  /** The attempt that was not made, and why: the mail has reached its maximum age while we held it back. */
  notAttempted(destination: string, reason: string): Attempt;
  /** Keeps the outcome; never rejects. */
  recordOutcome(delivery: Delivery, attempt: Attempt): Promise<void>;
  release(delivery: Delivery): void;
  /** Mail waits in this lane that other nodes are to send. */
  notifyOthers(backlog: Backlog): void;
  leases: Pick<ReturnType<typeof createHeldLeases>, 'begin' | 'isGood'>;
  /** Whether this node has addresses that the organization's mail may leave from. All other mail is left to nodes that have. */
  isOurs(orgId: string): boolean;
  /** The operator has paused the organization: its mail waits, and does not grow old. Then `isOurs` is false too. */
  isPaused(orgId: string): boolean;
  /** Somebody should claim: there is room again for what waits in the database. */
  requestClaim(): void;
  /** Whether the last claim took all that there was room for in all. */
  wasClaimCut(): boolean;
  clock: Clock;
  concurrency: number;
  stopped: AbortSignal;
}

/** Where the mail of a send goes, decided before its commit; `settle` after it, with null where it was not accepted. */
export interface DispatchPlace {
  disposition: 'leased' | 'due';
  settle(delivery: Delivery | null): void;
}

/** What waits for a connection keeps its message in memory, up to this much of them in all. */
const maxBytesAtHand = 32 * 1024 * 1024;
/** Why mail that has grown too old is not tried once more. */
const notOurs = 'no node that runs has a source address of the pool that its organization sends from';
/** Mail that is past its maximum age, and that others are to try once more, waits so long for one of them. */
const othersLastMs = 60_000;
/** A 421 while other connections work is our haste: such a delivery goes back to its line this often. */
const maxReturns = 3;

export function createDispatcher(parts: DispatcherParts) {
  const { clock, concurrency, stopped } = parts;
  const readyQueues = createReadyQueues(parts);
  const leasing = createLeasePolicy(readyQueues, clock, concurrency);
  /** Lines that could start one but for the room in all; they take turns. */
  const starved = new Set<ReadyQueue>();
  const inTheAir = new Set<Promise<void>>();
  const returns = new Map<string, number>();
  const ending = new AbortController();
  let inFlight = 0;
  /** Of the messages in memory. */
  let heldBytes = 0;
  let stopping = false;

  /** Null: we stop, and nobody waits for the answer. */
  const resolve = (domain: string) =>
    orAborted(parts.resolve(domain), ending.signal).catch((error) => {
      if (ending.signal.aborted) return null;
      throw error;
    });

  function track(work: Promise<void>): void {
    inTheAir.add(work);
    work.finally(() => inTheAir.delete(work));
  }

  /** A delivery that this node has leased. */
  function addLeased(delivery: Delivery): void {
    hold(delivery);
    const readyQueue = readyQueues.find(delivery.domain);
    if (readyQueue) enter(readyQueue, delivery);
    else track(enterUnresolved(delivery));
  }

  async function enterUnresolved(delivery: Delivery): Promise<void> {
    leasing.countUnresolved(delivery.domain, 1);
    const destination = await resolve(delivery.domain);
    leasing.countUnresolved(delivery.domain, -1);
    if (destination) enter(readyQueues.of(destination), delivery);
    else release(delivery);
  }

  function enter(readyQueue: ReadyQueue, delivery: Delivery): void {
    const reason = parts.isOurs(delivery.orgId)
      ? readyQueues.blockedReason(readyQueue, delivery.domain)
      : notOurs;
    const expiresAt = delivery.expiresAt + (readyQueue.hasNoShare() ? othersLastMs : 0);
    if (stopping || parts.isPaused(delivery.orgId)) release(delivery);
    else if (reason === null) queue(readyQueue, delivery);
    else if (expiresAt > clock.now()) release(delivery);
    else expire(readyQueue, delivery, reason);
  }

  function enterAnew(readyQueue: ReadyQueue): void {
    for (const delivery of readyQueue.ready.splice(0)) enter(readyQueue, delivery);
  }

  function queue(readyQueue: ReadyQueue, delivery: Delivery): void {
    readyQueue.ready.push(delivery);
    readyQueues.active.add(readyQueue);
    drain(readyQueue);
    const isTooMuch = sizeOf(delivery) > largestAtHand || heldBytes > maxBytesAtHand;
    if (isTooMuch && readyQueue.ready.includes(delivery)) forgetMessage(delivery);
  }

  function hold(delivery: Delivery): void {
    parts.leases.begin(delivery);
    leasing.count(1);
    heldBytes += sizeOf(delivery);
  }

  function letGo(delivery: Delivery): void {
    leasing.count(-1);
    heldBytes -= sizeOf(delivery);
  }

  /** It is read when its turn comes. */
  function forgetMessage(delivery: Delivery): void {
    heldBytes -= sizeOf(delivery);
    delete delivery.message;
  }

  function expire(readyQueue: ReadyQueue, delivery: Delivery, reason: string): void {
    letGo(delivery);
    track(parts.recordOutcome(delivery, parts.notAttempted(readyQueue.name, reason)));
  }

  function release(delivery: Delivery): void {
    letGo(delivery);
    parts.release(delivery);
  }

  /** Starts what may start. What is at hand of a line that rests goes back. */
  function drain(readyQueue: ReadyQueue): void {
    if (readyQueue.ready.length === 0 && readyQueue.backlogs.size > 0) return;
    const now = clock.now();
    while (readyQueue.ready.length > 0 && readyQueue.mayStart(now)) {
      if (!hasRoom()) {
        starved.add(readyQueue);
        break;
      }
      const delivery = readyQueue.ready.shift()!;
      if (parts.leases.isGood(delivery) && parts.isOurs(delivery.orgId)) launch(readyQueue, delivery);
      else release(delivery);
    }
    if (readyQueue.blockedReason(now) !== null) enterAnew(readyQueue);
    if (readyQueue.ready.length === 0 && readyQueue.backlogs.size === 0)
      readyQueues.active.delete(readyQueue);
  }

  /** Outcomes that cannot be recorded hold up new attempts, so that they do not pile up. */
  const hasRoom = () => !stopping && inFlight < concurrency && inTheAir.size < 3 * concurrency;

  function launch(readyQueue: ReadyQueue, delivery: Delivery): void {
    readyQueue.attemptStarted(clock.now());
    inFlight += 1;
    track(fly(readyQueue, delivery));
  }

  async function fly(readyQueue: ReadyQueue, delivery: Delivery): Promise<void> {
    const attempt = await parts.deliver(delivery, stopped, Math.max(readyQueue.limit(), 1));
    readyQueue.attemptFinished(attempt.signal, attempt.verdict.diagnostic, clock.now());
    inFlight -= 1;
    const isOurHaste = attempt.signal === 'busy' && attempt.reply?.code === 421 && readyQueue.inFlight > 0;
    const hasReturned = isOurHaste && !stopping && comeBack(readyQueue, delivery);
    landed(readyQueue);
    if (hasReturned) return;
    letGo(delivery);
    returns.delete(delivery.id);
    await parts.recordOutcome(delivery, attempt);
  }

  function comeBack(readyQueue: ReadyQueue, delivery: Delivery): boolean {
    const count = (returns.get(delivery.id) ?? 0) + 1;
    if (count > maxReturns) return false;
    returns.set(delivery.id, count);
    readyQueue.ready.unshift(delivery);
    readyQueues.active.add(readyQueue);
    return true;
  }

  /** Room has come free: for those first that have waited longest. */
  function landed(readyQueue: ReadyQueue): void {
    starved.add(readyQueue);
    for (const next of starved) {
      if (!hasRoom()) break;
      starved.delete(next);
      drain(next);
    }
    const hasRoomForLanes = readyQueue.backlogs.size > 0 && readyQueue.needsRefill(clock.now());
    if (hasRoomForLanes || (parts.wasClaimCut() && leasing.isHalfFree())) parts.requestClaim();
  }

  const search = createDestinationLookup(resolve, (destination, backlog, isRetry) => {
    if (parts.isOurs(backlog.orgId)) addLane(readyQueues.of(destination), backlog, isRetry);
  });

  /** Mail waits there that is due; `isRetry`: some of it has just fallen due again. */
  function noteBacklog(backlog: Backlog, isRetry = false): void {
    if (!parts.isOurs(backlog.orgId)) return;
    const readyQueue = readyQueues.find(backlog.domain);
    if (readyQueue) addLane(readyQueue, backlog, isRetry);
    else search.add(backlog, isRetry);
  }

  /** Mail that this node has put there itself: nobody else knows. */
  function announceBacklog(backlog: Backlog): void {
    noteBacklog(backlog);
    if (!parts.isOurs(backlog.orgId) || readyQueues.find(backlog.domain)?.hasNoShare())
      parts.notifyOthers(backlog);
  }

  function addLane(readyQueue: ReadyQueue, backlog: Backlog, isRetry: boolean): void {
    readyQueues.addBacklog(readyQueue, backlog);
    if (isRetry && !readyQueues.suspension(readyQueue, backlog.domain)) readyQueue.allowProbe(clock.now());
    if (readyQueue.freeSlots(clock.now()) > 0) parts.requestClaim();
  }

  /** A place is kept for what will be leased, until it is known whether it was. */
  function promised(readyQueue: ReadyQueue | null, domain: string): DispatchPlace['settle'] {
    if (readyQueue) readyQueue.reserve();
    else leasing.countUnresolved(domain, 1);
    return (delivery) => {
      if (readyQueue) readyQueue.cancelReservation();
      else leasing.countUnresolved(domain, -1);
      if (delivery) addLeased(delivery);
    };
  }

  return {
    addLeased,
    pickBacklogs: (max: number) => leasing.pickBacklogs(Math.min(max, leasing.freeLeases())),
    /** How many more may be leased. */
    freeLeases: leasing.freeLeases,
    /** Before a send is committed: whether its delivery may be leased at once, or has to wait in its lane. */
    admit(domain: string, orgId: string): DispatchPlace {
      const readyQueue = readyQueues.find(domain);
      const isLeased = !stopping && parts.isOurs(orgId) && leasing.mayLease(readyQueue, domain);
      if (isLeased) return { disposition: 'leased', settle: promised(readyQueue, domain) };
      const settle = (delivery: Delivery | null) => {
        if (delivery) announceBacklog({ domain, orgId });
      };
      return { disposition: 'due', settle };
    },
    noteBacklog,
    announceBacklog,
    mergePeerStates: readyQueues.mergePeerStates,
    /** Whose mail is ours has changed. */
    recheckOwnership(): void {
      for (const readyQueue of readyQueues.active) {
        readyQueue.backlogs.removeOf((orgId) => !parts.isOurs(orgId));
        enterAnew(readyQueue);
      }
    },
    suspend(list: Suspension[]): void {
      readyQueues.suspend(list);
      if (list.length > 0) for (const readyQueue of readyQueues.active) enterAnew(readyQueue);
    },
    drainAll(): void {
      for (const readyQueue of readyQueues.active) drain(readyQueue);
    },
    /** When to look again although nobody calls; infinite where no time makes a difference. */
    wakeAt(now: number): number {
      let at = Number.POSITIVE_INFINITY;
      for (const readyQueue of readyQueues.active) at = Math.min(at, readyQueue.wakeAt(now));
      return at;
    },
    readyQueues: readyQueues.all,
    forgetIdle: readyQueues.forgetIdle,
    /** Nothing starts any more; what is at hand is given back. Resolves when nothing is in the air. */
    async stop(): Promise<void> {
      stopping = true;
      ending.abort();
      for (const readyQueue of readyQueues.active)
        for (const delivery of readyQueue.ready.splice(0)) release(delivery);
      while (inTheAir.size > 0) await Promise.all(inTheAir);
    },
  };
}

const sizeOf = ({ message }: Delivery) => message?.length ?? 0;
