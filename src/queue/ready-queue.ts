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
import { mergePeerState, type PeerState, toPeerState } from './peer-state.ts';
import {
  afterAttempt,
  afterStart,
  allowed,
  type ConcurrencyState,
  mayProbe,
  newConcurrencyState,
} from './shaping.ts';
import { type Share, whole } from './share.ts';
import { createThroughput } from './throughput.ts';

export interface ReadyQueue {
  readonly name: string;
  readonly backlogs: Backlogs;
  readonly ready: Delivery[];
  readonly concurrency: ConcurrencyState;
  readonly inFlight: number;
  /** When a delivery last began or ended. */
  readonly lastActivityAt: number;
  /** The latest reply that asked us to slow down, as long as that holds; null too where it was another node's. */
  readonly busyReply: string | null;
  /** The last thing that the other side said, for the operator. */
  readonly lastReply: { text: string; at: number } | null;
  /** A look-up may have brought another shape. */
  setShape(shape: DestinationShape): void;
  /** What other nodes say of it. */
  mergePeerStates(peers: PeerState[]): void;
  /** What they are told; `sockets`: connections there, idle ones too. */
  ownState(sockets: number): PeerState;
  /** This node's part of what is allowed at once. */
  limit(): number;
  /** Nothing is sent there by this node now: others have all that there is to share. */
  hasNoShare(): boolean;
  /** Whether one more may begin now. */
  mayStart(now: number): boolean;
  /** Nothing is sent there now but a probe: its circuit is open. */
  isCircuitOpen(): boolean;
  /** Why nothing may start for a good while, in words; null where it may. What is leased is better given back. */
  blockedReason(now: number): string | null;
  /** A retry has fallen due of its own: it may probe an open circuit, though the time has not come. */
  allowProbe(now: number): void;
  /** How many more may be leased for it, what is promised already counted. */
  freeSlots(now: number): number;
  /** It has room for so many that fetching them is worth it. */
  needsRefill(now: number): boolean;
  /** A place is kept for a delivery that is about to be leased; `unpromise` gives it up. */
  reserve(): void;
  cancelReservation(): void;
  attemptStarted(now: number): void;
  /** `reason`: what was said or went wrong. */
  attemptFinished(signal: Signal, reason: string, now: number): void;
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
  let concurrency = newConcurrencyState(shape);
  let inFlight = 0;
  let reserved = 0;
  let lastReply: ReadyQueue['lastReply'] = null;
  let busyReply: string | null = null;
  let lastActivityAt = Number.NEGATIVE_INFINITY;
  /** Connections that other nodes have there. */
  let peerConnections = 0;
  const throughput = createThroughput();
  const backlogs = createBacklogs();
  const ready: Delivery[] = [];

  const limit = () => share.of(concurrency.limit);
  const perMinute = () => shape.perMinute && share.of(shape.perMinute);

  function hasNoShare(): boolean {
    // One node probes, and after each failure the next: that this one cannot get there says little of the others.
    const mine = concurrency.circuit ? share.of(1, concurrency.circuit.failures) : limit();
    return mine === 0 || perMinute() === 0;
  }

  /** Who has just been given a part of a rate begins with a pause: the others had it until now. */
  function startAt(): number {
    const rate = perMinute();
    return rate ? Math.max(concurrency.nextStartAt, share.since + 60_000 / rate) : concurrency.nextStartAt;
  }

  function mayStart(now: number): boolean {
    if (hasNoShare() || !share.isTrusted(now) || now < startAt()) return false;
    // What others have not given up yet is not to be had.
    const free = concurrency.circuit
      ? allowed(concurrency, now)
      : Math.min(limit(), shape.connections - peerConnections);
    return inFlight < free;
  }

  function blockedReason(now: number): string | null {
    const { circuit, busySince } = concurrency;
    if (circuit && !mayStart(now)) {
      return `nothing answered there ${circuit.failures} times in a row, last: ${circuit.reason}`;
    }
    if (hasNoShare()) return 'other nodes have all that there is to share of its limits';
    if (startAt() <= now + longestWaitMs) return null;
    return busySince === null ? 'its rate is used up' : 'it asks to be sent less';
  }

  const targetLength = (now: number) => Math.max(limit(), Math.ceil(throughput.perSecond(now) / 4));

  function freeSlots(now: number): number {
    if (blockedReason(now) !== null) return 0;
    if (concurrency.circuit) return 1 - ready.length - reserved;
    // With a rate there is no use in holding what is more than moments away.
    const rate = perMinute();
    const soon = rate === null ? Number.POSITIVE_INFINITY : ofRate(rate);
    return Math.min(limit() + targetLength(now) - inFlight, soon) - ready.length - reserved;
  }

  return {
    name,
    backlogs,
    ready,
    get concurrency() {
      return concurrency;
    },
    get inFlight() {
      return inFlight;
    },
    get lastActivityAt() {
      return lastActivityAt;
    },
    get busyReply() {
      return concurrency.busySince === null ? null : busyReply;
    },
    get lastReply() {
      return lastReply;
    },
    setShape(next) {
      shape = next;
      if (concurrency.limit > next.connections) concurrency = { ...concurrency, limit: next.connections };
    },
    mergePeerStates(peers) {
      peerConnections = 0;
      for (const one of peers) {
        peerConnections += one.open;
        concurrency = mergePeerState(concurrency, shape, one);
      }
    },
    ownState: (sockets) => toPeerState(concurrency, Math.max(inFlight, sockets)),
    limit,
    hasNoShare,
    mayStart,
    isCircuitOpen: () => concurrency.circuit !== null,
    blockedReason,
    allowProbe(now) {
      if (inFlight === 0 && !hasNoShare() && mayProbe(concurrency, now))
        concurrency = { ...concurrency, circuit: { ...concurrency.circuit!, nextProbeAt: now } };
    },
    freeSlots,
    needsRefill: (now) => freeSlots(now) > targetLength(now) / 2,
    reserve() {
      reserved += 1;
    },
    cancelReservation() {
      reserved -= 1;
    },
    attemptStarted(now) {
      inFlight += 1;
      lastActivityAt = now;
      concurrency = afterStart(concurrency, perMinute(), now);
    },
    attemptFinished(signal, reason, now) {
      const isFull = concurrency.circuit === null && inFlight >= limit();
      const observation = { signal, inUse: inFlight + peerConnections, isFull, reason };
      concurrency = afterAttempt(concurrency, shape, observation, now);
      inFlight -= 1;
      lastActivityAt = now;
      throughput.count(now);
      if (signal === 'busy') busyReply = reason;
      if (signal !== null) lastReply = { text: reason, at: now };
    },
    wakeAt(now) {
      const { circuit } = concurrency;
      const isForOthers = hasNoShare() || !share.isTrusted(now);
      if (circuit?.probing || ready.length + backlogs.size === 0 || isForOthers)
        return Number.POSITIVE_INFINITY;
      if (circuit) return Math.max(circuit.nextProbeAt, startAt());
      return startAt() > now ? startAt() : Number.POSITIVE_INFINITY;
    },
    isIdle: () => inFlight + reserved + ready.length + backlogs.size === 0,
  };
}
