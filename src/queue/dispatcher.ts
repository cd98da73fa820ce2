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
  withheld(destination: string, reason: string): Attempt;
  /** Keeps the outcome; never rejects. */
  keep(delivery: Delivery, attempt: Attempt): Promise<void>;
  giveBack(delivery: Delivery): void;
  /** Mail waits in this lane that other nodes are to send. */
  passOn(lane: Backlog): void;
  leases: Pick<ReturnType<typeof createHeldLeases>, 'begin' | 'isGood'>;
  /** Whether this node has addresses that the organization's mail may leave from. All other mail is left to nodes that have. */
  isOurs(orgId: string): boolean;
  /** The operator has paused the organization: its mail waits, and does not grow old. Then `isOurs` is false too. */
  isPaused(orgId: string): boolean;
  /** Somebody should claim: there is room again for what waits in the database. */
  hungry(): void;
  /** Whether the last claim took all that there was room for in all. */
  isMore(): boolean;
  clock: Clock;
  concurrency: number;
  stopped: AbortSignal;
}

/** Where the mail of a send goes, decided before its commit; `settle` after it, with null where it was not accepted. */
export interface DispatchPlace {
  entry: 'leased' | 'due';
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
  const lines = createReadyQueues(parts);
  const leasing = createLeasePolicy(lines, clock, concurrency);
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
  function arrive(delivery: Delivery): void {
    hold(delivery);
    const line = lines.known(delivery.domain);
    if (line) enter(line, delivery);
    else track(enterUnresolved(delivery));
  }

  async function enterUnresolved(delivery: Delivery): Promise<void> {
    leasing.countUnresolved(delivery.domain, 1);
    const destination = await resolve(delivery.domain);
    leasing.countUnresolved(delivery.domain, -1);
    if (destination) enter(lines.of(destination), delivery);
    else giveBack(delivery);
  }

  function enter(line: ReadyQueue, delivery: Delivery): void {
    const reason = parts.isOurs(delivery.orgId) ? lines.obstacle(line, delivery.domain) : notOurs;
    const expiresAt = delivery.expiresAt + (line.isElsewhere() ? othersLastMs : 0);
    if (stopping || parts.isPaused(delivery.orgId)) giveBack(delivery);
    else if (reason === null) queue(line, delivery);
    else if (expiresAt > clock.now()) giveBack(delivery);
    else expire(line, delivery, reason);
  }

  function enterAnew(line: ReadyQueue): void {
    for (const delivery of line.hand.splice(0)) enter(line, delivery);
  }

  function queue(line: ReadyQueue, delivery: Delivery): void {
    line.hand.push(delivery);
    lines.waiting.add(line);
    pump(line);
    const isTooMuch = sizeOf(delivery) > largestAtHand || heldBytes > maxBytesAtHand;
    if (isTooMuch && line.hand.includes(delivery)) forgetMessage(delivery);
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

  function expire(line: ReadyQueue, delivery: Delivery, reason: string): void {
    letGo(delivery);
    track(parts.keep(delivery, parts.withheld(line.name, reason)));
  }

  function giveBack(delivery: Delivery): void {
    letGo(delivery);
    parts.giveBack(delivery);
  }

  /** Starts what may start. What is at hand of a line that rests goes back. */
  function pump(line: ReadyQueue): void {
    if (line.hand.length === 0 && line.lanes.size > 0) return;
    const now = clock.now();
    while (line.hand.length > 0 && line.mayStart(now)) {
      if (!hasRoom()) {
        starved.add(line);
        break;
      }
      const delivery = line.hand.shift()!;
      if (parts.leases.isGood(delivery) && parts.isOurs(delivery.orgId)) launch(line, delivery);
      else giveBack(delivery);
    }
    if (line.rest(now) !== null) enterAnew(line);
    if (line.hand.length === 0 && line.lanes.size === 0) lines.waiting.delete(line);
  }

  /** Outcomes that cannot be recorded hold up new attempts, so that they do not pile up. */
  const hasRoom = () => !stopping && inFlight < concurrency && inTheAir.size < 3 * concurrency;

  function launch(line: ReadyQueue, delivery: Delivery): void {
    line.started(clock.now());
    inFlight += 1;
    track(fly(line, delivery));
  }

  async function fly(line: ReadyQueue, delivery: Delivery): Promise<void> {
    const attempt = await parts.deliver(delivery, stopped, Math.max(line.limit(), 1));
    line.ended(attempt.signal, attempt.verdict.diagnostic, clock.now());
    inFlight -= 1;
    const isOurHaste = attempt.signal === 'busy' && attempt.reply?.code === 421 && line.inFlight > 0;
    const hasReturned = isOurHaste && !stopping && comeBack(line, delivery);
    landed(line);
    if (hasReturned) return;
    letGo(delivery);
    returns.delete(delivery.id);
    await parts.keep(delivery, attempt);
  }

  function comeBack(line: ReadyQueue, delivery: Delivery): boolean {
    const count = (returns.get(delivery.id) ?? 0) + 1;
    if (count > maxReturns) return false;
    returns.set(delivery.id, count);
    line.hand.unshift(delivery);
    lines.waiting.add(line);
    return true;
  }

  /** Room has come free: for those first that have waited longest. */
  function landed(line: ReadyQueue): void {
    starved.add(line);
    for (const next of starved) {
      if (!hasRoom()) break;
      starved.delete(next);
      pump(next);
    }
    const hasRoomForLanes = line.lanes.size > 0 && line.isLow(clock.now());
    if (hasRoomForLanes || (parts.isMore() && leasing.hasMuchRoom())) parts.hungry();
  }

  const search = createDestinationLookup(resolve, (destination, lane, isRetry) => {
    if (parts.isOurs(lane.orgId)) addLane(lines.of(destination), lane, isRetry);
  });

  /** Mail waits there that is due; `isRetry`: some of it has just fallen due again. */
  function noteLane(lane: Backlog, isRetry = false): void {
    if (!parts.isOurs(lane.orgId)) return;
    const line = lines.known(lane.domain);
    if (line) addLane(line, lane, isRetry);
    else search.add(lane, isRetry);
  }

  /** Mail that this node has put there itself: nobody else knows. */
  function notePut(lane: Backlog): void {
    noteLane(lane);
    if (!parts.isOurs(lane.orgId) || lines.known(lane.domain)?.isElsewhere()) parts.passOn(lane);
  }

  function addLane(line: ReadyQueue, lane: Backlog, isRetry: boolean): void {
    lines.addLane(line, lane);
    if (isRetry && !lines.suspension(line, lane.domain)) line.probe(clock.now());
    if (line.room(clock.now()) > 0) parts.hungry();
  }

  /** A place is kept for what will be leased, until it is known whether it was. */
  function promised(line: ReadyQueue | null, domain: string): DispatchPlace['settle'] {
    if (line) line.promise();
    else leasing.countUnresolved(domain, 1);
    return (delivery) => {
      if (line) line.unpromise();
      else leasing.countUnresolved(domain, -1);
      if (delivery) arrive(delivery);
    };
  }

  return {
    arrive,
    pickLanes: (max: number) => leasing.pickLanes(Math.min(max, leasing.room())),
    /** How many more may be leased. */
    room: leasing.room,
    /** Before a send is committed: whether its delivery may be leased at once, or has to wait in its lane. */
    admit(domain: string, orgId: string): DispatchPlace {
      const line = lines.known(domain);
      const isLeased = !stopping && parts.isOurs(orgId) && leasing.mayEnter(line, domain);
      if (isLeased) return { entry: 'leased', settle: promised(line, domain) };
      const settle = (delivery: Delivery | null) => {
        if (delivery) notePut({ domain, orgId });
      };
      return { entry: 'due', settle };
    },
    noteLane,
    notePut,
    hear: lines.hear,
    /** Whose mail is ours has changed. */
    sortOut(): void {
      for (const line of lines.waiting) {
        line.lanes.removeOf((orgId) => !parts.isOurs(orgId));
        enterAnew(line);
      }
    },
    suspend(list: Suspension[]): void {
      lines.suspend(list);
      if (list.length > 0) for (const line of lines.waiting) enterAnew(line);
    },
    pumpAll(): void {
      for (const line of lines.waiting) pump(line);
    },
    /** When to look again although nobody calls; infinite where no time makes a difference. */
    alarm(now: number): number {
      let at = Number.POSITIVE_INFINITY;
      for (const line of lines.waiting) at = Math.min(at, line.wakeAt(now));
      return at;
    },
    lines: lines.all,
    forgetIdle: lines.forgetIdle,
    /** Nothing starts any more; what is at hand is given back. Resolves when nothing is in the air. */
    async stop(): Promise<void> {
      stopping = true;
      ending.abort();
      for (const line of lines.waiting) for (const delivery of line.hand.splice(0)) giveBack(delivery);
      while (inTheAir.size > 0) await Promise.all(inTheAir);
    },
  };
}

const sizeOf = ({ message }: Delivery) => message?.length ?? 0;
