/**
 * A destination as the runner holds it: what is under way there, what is at hand, which lanes wait, and its gauge.
 *
 * At hand are deliveries that this node has leased and that wait a moment for a connection: as many as there are
 * connections, so that the next is ready when one comes free, or as it takes in a quarter of a second, so that they are
 * fetched by the dozen. All else waits in the database.
 *
 * Where several nodes send, the gauge is of all of them, and what begins here keeps within this node's share of it.
 */
import type { Delivery, Signal } from '../glossary.ts';
import type { Destination, DestinationShape } from '../mail/destination-shape.ts';
import { type Backlogs, createBacklogs } from './backlogs.ts';
import { type Share, whole } from './membership.ts';
import { mergePeerState, type PeerState, toPeerState } from './peer-state.ts';
import {
  afterAttempt,
  afterStart,
  allowed,
  type ConcurrencyState,
  mayProbe,
  newConcurrencyState,
} from './shaping.ts';
import { createThroughput } from './throughput.ts';

export interface ReadyQueue {
  readonly name: string;
  readonly lanes: Backlogs;
  readonly hand: Delivery[];
  readonly gauge: ConcurrencyState;
  readonly inFlight: number;
  /** When a delivery last began or ended. */
  readonly movedAt: number;
  /** The latest reply that asked us to slow down, as long as that holds; null too where it was another node's. */
  readonly busyReply: string | null;
  /** The last thing that the other side said, for the operator. */
  readonly lastReply: { text: string; at: number } | null;
  /** A look-up may have brought another shape. */
  reshape(shape: DestinationShape): void;
  /** What other nodes say of it. */
  hear(told: PeerState[]): void;
  /** What they are told; `sockets`: connections there, idle ones too. */
  tell(sockets: number): PeerState;
  /** This node's part of what is allowed at once. */
  limit(): number;
  /** Nothing is sent there by this node now: others have all that there is to share. */
  isElsewhere(): boolean;
  /** Whether one more may begin now. */
  mayStart(now: number): boolean;
  /** Nothing is sent there now but a probe: its circuit is open. */
  isBroken(): boolean;
  /** Why nothing may start for a good while, in words; null where it may. What is leased is better given back. */
  rest(now: number): string | null;
  /** A retry has fallen due of its own: it may probe an open circuit, though the time has not come. */
  probe(now: number): void;
  /** How many more may be leased for it, what is promised already counted. */
  room(now: number): number;
  /** It has room for so many that fetching them is worth it. */
  isLow(now: number): boolean;
  /** A place is kept for a delivery that is about to be leased; `unpromise` gives it up. */
  promise(): void;
  unpromise(): void;
  started(now: number): void;
  /** `reason`: what was said or went wrong. */
  ended(signal: Signal, reason: string, now: number): void;
  /** When a start becomes possible that is not possible now; infinite where no time makes a difference. */
  wakeAt(now: number): number;
  isIdle(): boolean;
}

/** Deliveries at hand wait this long for a start; what has longer to wait does so in the database. */
const longestWaitMs = 5_000;

const ofRate = (perMinute: number) => Math.ceil((perMinute * longestWaitMs) / 60_000);

export function createReadyQueue(destination: Destination, share: Share = whole): ReadyQueue {
  const { name } = destination;
  let { shape } = destination;
  let gauge = newConcurrencyState(shape);
  let inFlight = 0;
  let promised = 0;
  let lastReply: ReadyQueue['lastReply'] = null;
  let busyReply: string | null = null;
  let movedAt = Number.NEGATIVE_INFINITY;
  /** Connections that other nodes have there. */
  let theirs = 0;
  const pace = createThroughput();
  const lanes = createBacklogs();
  const hand: Delivery[] = [];

  const limit = () => share.of(gauge.limit);
  const perMinute = () => shape.perMinute && share.of(shape.perMinute);

  function isElsewhere(): boolean {
    // One node probes, and after each failure the next: that this one cannot get there says little of the others.
    const mine = gauge.circuit ? share.of(1, gauge.circuit.failures) : limit();
    return mine === 0 || perMinute() === 0;
  }

  /** Who has just been given a part of a rate begins with a pause: the others had it until now. */
  function startAt(): number {
    const rate = perMinute();
    return rate ? Math.max(gauge.nextStartAt, share.since + 60_000 / rate) : gauge.nextStartAt;
  }

  function mayStart(now: number): boolean {
    if (isElsewhere() || !share.isGood(now) || now < startAt()) return false;
    // What others have not given up yet is not to be had.
    const free = gauge.circuit ? allowed(gauge, now) : Math.min(limit(), shape.connections - theirs);
    return inFlight < free;
  }

  function rest(now: number): string | null {
    const { circuit, busySince } = gauge;
    if (circuit && !mayStart(now)) {
      return `nothing answered there ${circuit.failures} times in a row, last: ${circuit.reason}`;
    }
    if (isElsewhere()) return 'other nodes have all that there is to share of its limits';
    if (startAt() <= now + longestWaitMs) return null;
    return busySince === null ? 'its rate is used up' : 'it asks to be sent less';
  }

  const atHand = (now: number) => Math.max(limit(), Math.ceil(pace.perSecond(now) / 4));

  function room(now: number): number {
    if (rest(now) !== null) return 0;
    if (gauge.circuit) return 1 - hand.length - promised;
    // With a rate there is no use in holding what is more than moments away.
    const rate = perMinute();
    const soon = rate === null ? Number.POSITIVE_INFINITY : ofRate(rate);
    return Math.min(limit() + atHand(now) - inFlight, soon) - hand.length - promised;
  }

  return {
    name,
    lanes,
    hand,
    get gauge() {
      return gauge;
    },
    get inFlight() {
      return inFlight;
    },
    get movedAt() {
      return movedAt;
    },
    get busyReply() {
      return gauge.busySince === null ? null : busyReply;
    },
    get lastReply() {
      return lastReply;
    },
    reshape(next) {
      shape = next;
      if (gauge.limit > next.connections) gauge = { ...gauge, limit: next.connections };
    },
    hear(told) {
      theirs = 0;
      for (const one of told) {
        theirs += one.open;
        gauge = mergePeerState(gauge, shape, one);
      }
    },
    tell: (sockets) => toPeerState(gauge, Math.max(inFlight, sockets)),
    limit,
    isElsewhere,
    mayStart,
    isBroken: () => gauge.circuit !== null,
    rest,
    probe(now) {
      if (inFlight === 0 && !isElsewhere() && mayProbe(gauge, now))
        gauge = { ...gauge, circuit: { ...gauge.circuit!, nextProbeAt: now } };
    },
    room,
    isLow: (now) => room(now) > atHand(now) / 2,
    promise() {
      promised += 1;
    },
    unpromise() {
      promised -= 1;
    },
    started(now) {
      inFlight += 1;
      movedAt = now;
      gauge = afterStart(gauge, perMinute(), now);
    },
    ended(signal, reason, now) {
      const isFull = gauge.circuit === null && inFlight >= limit();
      const sight = { signal, inUse: inFlight + theirs, isFull, reason };
      gauge = afterAttempt(gauge, shape, sight, now);
      inFlight -= 1;
      movedAt = now;
      pace.count(now);
      if (signal === 'busy') busyReply = reason;
      if (signal !== null) lastReply = { text: reason, at: now };
    },
    wakeAt(now) {
      const { circuit } = gauge;
      const isForOthers = isElsewhere() || !share.isGood(now);
      if (circuit?.probing || hand.length + lanes.size === 0 || isForOthers) return Number.POSITIVE_INFINITY;
      if (circuit) return Math.max(circuit.nextProbeAt, startAt());
      return startAt() > now ? startAt() : Number.POSITIVE_INFINITY;
    },
    isIdle: () => inFlight + promised + hand.length + lanes.size === 0,
  };
}
