/**
 * Who is served next: leased deliveries go to their destination's line, and from there into the air as its gauge and
 * the room in all allow.
 *
 * Holds only what this node has leased, and the names of lanes. A lease that cannot be used now (the destination is
 * suspended, its circuit is open) is given back: the delivery is parked in its lane in the database, and fetched when
 * its turn has come. Never touches the database itself.
 */
import type { Clock } from '../clock.ts';
import type { Attempt, Delivery } from '../nouns.ts';
import type { Destination } from '../shape.ts';
import type { Lane } from './lanes.ts';
import { createLeasing, type LanePick } from './leasing.ts';
import type { Line } from './line.ts';
import { createLines, type LinesParts, type Suspension } from './lines.ts';
import type { How } from './returns.ts';

export interface DispatcherParts extends LinesParts {
  /** Finds out where `destinationOf` does not know. Never rejects. */
  resolve(domain: string): Promise<Destination>;
  /** `connections`: as many as its destination is given at once, now. */
  deliver(delivery: Delivery, stopped: AbortSignal, connections: number): Promise<Attempt>;
  /** The attempt that was not made, and why: the mail has reached its maximum age while we held it back. */
  withheld(destination: string, reason: string): Attempt;
  /** Keeps the outcome; never rejects. */
  keep(delivery: Delivery, attempt: Attempt): Promise<void>;
  giveBack(delivery: Delivery, how: How): void;
  /** Somebody should claim: there is room again for what waits in the database. */
  hungry(): void;
  /** Something is due. */
  wake(): void;
  /** Whether more is due than was claimed. */
  isMoreDue(): boolean;
  clock: Clock;
  concurrency: number;
  stopped: AbortSignal;
}

/** Where the mail of a send goes, decided before its commit; `settle` after it, with null where it was not accepted. */
export interface Place {
  entry: 'leased' | 'parked' | 'due';
  settle(delivery: Delivery | null): void;
}

/** A larger message is read again when its turn comes, so that a full line stays small. */
const largestAtHand = 64 * 1024;
/** A 421 while other connections work is our haste: such a delivery goes back to its line this often. */
const mostReturns = 3;

export function createDispatcher(parts: DispatcherParts) {
  const { clock, concurrency, stopped } = parts;
  const lines = createLines(parts);
  const leasing = createLeasing(lines, clock, concurrency);
  /** Lines that could start one but for the room in all; they take turns. */
  const starved = new Set<Line>();
  const inTheAir = new Set<Promise<void>>();
  const returns = new Map<string, number>();
  const ending = Promise.withResolvers<null>();
  let underWay = 0;
  let stopping = false;

  /** Null: we stop, and nobody waits for the answer. */
  const resolve = (domain: string) => Promise.race([parts.resolve(domain), ending.promise]);

  function track(work: Promise<void>): void {
    inTheAir.add(work);
    work.finally(() => inTheAir.delete(work));
  }

  /** A delivery that this node has leased. */
  function arrive(delivery: Delivery): void {
    leasing.count(1);
    const line = lines.known(delivery.domain);
    if (line) enter(line, delivery);
    else track(enterUnresolved(delivery));
  }

  async function enterUnresolved(delivery: Delivery): Promise<void> {
    leasing.countUnresolved(delivery.domain, 1);
    const destination = await resolve(delivery.domain);
    leasing.countUnresolved(delivery.domain, -1);
    if (destination) enter(lines.of(destination), delivery);
    else giveBack(delivery, 'due');
  }

  function enter(line: Line, delivery: Delivery): void {
    const reason = lines.obstacle(line, delivery.domain);
    if (stopping) giveBack(delivery, 'due');
    else if (reason === null) queue(line, delivery);
    else if (delivery.expiresAt > clock.now()) giveBack(delivery, 'parked');
    else expire(line, delivery, reason);
  }

  function queue(line: Line, delivery: Delivery): void {
    line.hand.push(delivery);
    lines.waiting.add(line);
    pump(line);
    const isBig = delivery.message !== undefined && delivery.message.length > largestAtHand;
    if (isBig && line.hand.includes(delivery)) delete delivery.message;
  }

  function expire(line: Line, delivery: Delivery, reason: string): void {
    leasing.count(-1);
    track(parts.keep(delivery, parts.withheld(line.name, reason)));
  }

  function giveBack(delivery: Delivery, how: How): void {
    leasing.count(-1);
    parts.giveBack(delivery, how);
  }

  /** Starts what may start. What is at hand of a line that rests goes back. */
  function pump(line: Line): void {
    const now = clock.now();
    while (line.hand.length > 0 && line.mayStart(now)) {
      if (!hasRoom()) {
        starved.add(line);
        break;
      }
      launch(line, line.hand.shift()!);
    }
    if (line.rest(now) !== null) for (const delivery of line.hand.splice(0)) enter(line, delivery);
    if (line.hand.length === 0 && line.lanes.size === 0) lines.waiting.delete(line);
  }

  /** Outcomes that cannot be recorded hold up new attempts, so that they do not pile up. */
  const hasRoom = () => !stopping && underWay < concurrency && inTheAir.size < 3 * concurrency;

  function launch(line: Line, delivery: Delivery): void {
    line.started(clock.now());
    underWay += 1;
    track(fly(line, delivery));
  }

  async function fly(line: Line, delivery: Delivery): Promise<void> {
    const attempt = await parts.deliver(delivery, stopped, line.gauge.limit);
    line.ended(attempt.signal, attempt.verdict.diagnostic, clock.now());
    underWay -= 1;
    const isOurHaste = attempt.signal === 'busy' && attempt.reply?.code === 421 && line.underWay > 0;
    const hasReturned = isOurHaste && !stopping && comeBack(line, delivery);
    landed(line);
    if (hasReturned) return;
    leasing.count(-1);
    returns.delete(delivery.id);
    await parts.keep(delivery, attempt);
  }

  function comeBack(line: Line, delivery: Delivery): boolean {
    const count = (returns.get(delivery.id) ?? 0) + 1;
    if (count > mostReturns) return false;
    returns.set(delivery.id, count);
    line.hand.unshift(delivery);
    lines.waiting.add(line);
    return true;
  }

  /** Room has come free: for those first that have waited longest. */
  function landed(line: Line): void {
    starved.add(line);
    for (const next of starved) {
      if (!hasRoom()) break;
      starved.delete(next);
      pump(next);
    }
    const hasRoomForLanes = line.lanes.size > 0 && line.room(clock.now()) > line.gauge.limit / 2;
    if (hasRoomForLanes || (parts.isMoreDue() && leasing.hasMuchRoom())) parts.hungry();
  }

  /** A place is kept for what will be leased, until it is known whether it was. */
  function promised(line: Line | null, domain: string): Place['settle'] {
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
    newPlacing: leasing.newPlacing,
    pickLanes: (most: number): LanePick[] => leasing.pickLanes(Math.min(most, leasing.room())),
    /** How many more may be leased. */
    room: leasing.room,
    /** Before a send is committed: whether its delivery may be leased at once, or has to stand in its lane. */
    admit(domain: string, orgId: string): Place {
      const line = lines.known(domain);
      const entry = stopping ? 'due' : leasing.entryOf(line, domain);
      if (entry === 'leased') return { entry, settle: promised(line, domain) };
      if (entry === 'due' || !line) return { entry, settle: parts.wake };
      const settle = (delivery: Delivery | null) => {
        if (delivery) lines.addLane(line, { domain, orgId });
        if (delivery && line.room(clock.now()) > 0) parts.hungry();
      };
      return { entry, settle };
    },
    /** Mail has been parked there. */
    async noteLane(lane: Lane): Promise<void> {
      const line = lines.known(lane.domain);
      if (line) return lines.addLane(line, lane);
      const destination = await resolve(lane.domain);
      if (!destination) return;
      lines.addLane(lines.of(destination), lane);
      parts.hungry();
    },
    suspend(list: Suspension[]): void {
      lines.suspend(list);
      if (list.length === 0) return;
      for (const line of lines.waiting) {
        for (const delivery of line.hand.splice(0)) enter(line, delivery);
      }
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
      ending.resolve(null);
      for (const line of lines.waiting) for (const delivery of line.hand.splice(0)) giveBack(delivery, 'due');
      while (inTheAir.size > 0) await Promise.all(inTheAir);
    },
  };
}
