/**
 * One destination as this node sees it: its concurrency state, the deliveries under way, the leased deliveries that are ready, and
 * the backlogs that wait in the database.
 *
 * Ready deliveries wait a moment for a connection: as many as there are connections, so that the next one is at hand, or as many
 * as start in a quarter of a second, so that they are claimed by the dozen. All other mail waits in the database.
 *
 * With several nodes, the concurrency state is that of all nodes together, and this node starts only its share of it.
 */

import type { Destination, DestinationShape } from '#platform/values/destination-shape.ts';
import type { Delivery, Signal } from '#platform/values/glossary.ts';
import { Backlogs } from './backlogs.ts';
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

/** Ready deliveries wait at most this long for a start; a longer wait is spent in the database. */
const maxWaitMs = 5_000;

export class ReadyQueue {
  readonly name: string;
  readonly backlogs = new Backlogs();
  /** Leased deliveries that wait for a connection; the next one first. */
  readonly ready: Delivery[] = [];
  readonly #share: Share;
  readonly #throughput = createThroughput();
  #shape: DestinationShape;
  #concurrency: ConcurrencyState;
  #inFlight = 0;
  #reserved = 0;
  /** Connections that other nodes have to this destination. */
  #peerConnections = 0;
  #lastActivityAt = Number.NEGATIVE_INFINITY;
  #busyReply: string | null = null;
  #lastReply: { text: string; at: number } | null = null;

  constructor(destination: Destination, share: Share = whole) {
    this.name = destination.name;
    this.#share = share;
    this.#shape = destination.shape;
    this.#concurrency = newConcurrencyState(destination.shape);
  }

  get concurrency(): ConcurrencyState {
    return this.#concurrency;
  }

  get inFlight(): number {
    return this.#inFlight;
  }

  /** When a delivery last started or finished. */
  get lastActivityAt(): number {
    return this.#lastActivityAt;
  }

  /** The latest reply that asked us to slow down, while we still do; null also if another node received it. */
  get busyReply(): string | null {
    return this.#concurrency.busySince === null ? null : this.#busyReply;
  }

  /** The latest reply of the destination, for the operator. */
  get lastReply(): { text: string; at: number } | null {
    return this.#lastReply;
  }

  /** A later look-up may have found another shape. */
  setShape(shape: DestinationShape): void {
    this.#shape = shape;
    if (this.#concurrency.limit > shape.connections)
      this.#concurrency = { ...this.#concurrency, limit: shape.connections };
  }

  mergePeerStates(peers: PeerState[]): void {
    this.#peerConnections = 0;
    for (const peer of peers) {
      this.#peerConnections += peer.open;
      this.#concurrency = mergePeerState(this.#concurrency, this.#shape, peer);
    }
  }

  /** The state that this node publishes about the destination. `sockets`: its connections there, idle ones included. */
  ownState(sockets: number): PeerState {
    return toPeerState(this.#concurrency, Math.max(this.#inFlight, sockets));
  }

  /** This node's share of the concurrency limit. */
  limit(): number {
    return this.#share.of(this.#concurrency.limit);
  }

  /** This node sends nothing there for now, because the other nodes have all of the limit. */
  hasNoShare(): boolean {
    const { circuit } = this.#concurrency;
    // The nodes take turns to probe: if one of them cannot reach the destination, another one may.
    const own = circuit ? this.#share.of(1, circuit.failures) : this.limit();
    return own === 0 || this.#perMinute() === 0;
  }

  isCircuitOpen(): boolean {
    return this.#concurrency.circuit !== null;
  }

  mayStart(now: number): boolean {
    if (this.hasNoShare() || !this.#share.isTrusted(now) || now < this.#startAt()) return false;
    // Connections that other nodes have not closed yet are not available, whatever this node's share is.
    const free = this.#concurrency.circuit
      ? allowed(this.#concurrency, now)
      : Math.min(this.limit(), this.#shape.connections - this.#peerConnections);
    return this.#inFlight < free;
  }

  /** Nothing can start within the next seconds. Leases are better released then. */
  isBlocked(now: number): boolean {
    if (this.hasNoShare() || this.#startAt() > now + maxWaitMs) return true;
    return this.isCircuitOpen() && !this.mayStart(now);
  }

  /** Null if it is not blocked. */
  blockedReason(now: number): string | null {
    const { circuit, busySince } = this.#concurrency;
    if (!this.isBlocked(now)) return null;
    if (circuit && !this.mayStart(now))
      return `no connection to this destination succeeded ${circuit.failures} times in a row; last error: ${circuit.reason}`;
    if (this.hasNoShare()) return 'other nodes use all of the connections or the rate of this destination';
    return busySince === null
      ? 'the rate limit for this destination is used up'
      : 'the destination asked us to slow down';
  }

  /** How many more deliveries may be leased. */
  freeSlots(now: number): number {
    if (this.isBlocked(now)) return 0;
    const taken = this.ready.length + this.#reserved;
    if (this.isCircuitOpen()) return 1 - taken;
    // With a rate limit, deliveries that cannot start within moments are not worth a lease.
    const rate = this.#perMinute();
    const soon = rate === null ? Number.POSITIVE_INFINITY : Math.ceil((rate * maxWaitMs) / 60_000);
    return Math.min(this.limit() + this.#targetLength(now) - this.#inFlight, soon) - taken;
  }

  /** There are enough free slots for a claim to be worthwhile. */
  needsRefill(now: number): boolean {
    return this.freeSlots(now) > this.#targetLength(now) / 2;
  }

  /** Keeps a slot for a delivery that is about to be leased. */
  reserve(): void {
    this.#reserved += 1;
  }

  cancelReservation(): void {
    this.#reserved -= 1;
  }

  /** A retry has fallen due: it may probe an open circuit before the next probe is due. */
  allowProbe(now: number): void {
    if (this.#inFlight > 0 || this.hasNoShare() || !mayProbe(this.#concurrency, now)) return;
    const circuit = { ...this.#concurrency.circuit!, nextProbeAt: now };
    this.#concurrency = { ...this.#concurrency, circuit };
  }

  attemptStarted(now: number): void {
    this.#inFlight += 1;
    this.#lastActivityAt = now;
    this.#concurrency = afterStart(this.#concurrency, this.#perMinute(), now);
  }

  /** `diagnostic`: the reply, or what went wrong. */
  attemptFinished(signal: Signal, diagnostic: string, now: number): void {
    const observation = {
      signal,
      inUse: this.#inFlight + this.#peerConnections,
      isFull: this.#concurrency.circuit === null && this.#inFlight >= this.limit(),
      reason: diagnostic,
    };
    this.#concurrency = afterAttempt(this.#concurrency, this.#shape, observation, now);
    this.#inFlight -= 1;
    this.#lastActivityAt = now;
    this.#throughput.count(now);
    if (signal === 'throttled') this.#busyReply = diagnostic;
    if (signal !== null) this.#lastReply = { text: diagnostic, at: now };
  }

  /** When a start that is impossible now becomes possible, always later than now; infinite if time alone does not do it. */
  wakeAt(now: number): number {
    const { circuit } = this.#concurrency;
    const isEmpty = this.ready.length + this.backlogs.size === 0;
    const isLeftToOthers = this.hasNoShare() || !this.#share.isTrusted(now);
    if (circuit?.probing || isEmpty || isLeftToOthers) return Number.POSITIVE_INFINITY;
    const at = Math.max(circuit?.nextProbeAt ?? now, this.#startAt());
    return at > now ? at : Number.POSITIVE_INFINITY;
  }

  isIdle(): boolean {
    return this.#inFlight + this.#reserved + this.ready.length + this.backlogs.size === 0;
  }

  /** This node's share of the rate limit; null if there is none. */
  #perMinute(): number | null {
    return this.#shape.perMinute && this.#share.of(this.#shape.perMinute);
  }

  /** The earliest next start. A node whose share of a rate has just grown waits first, because others used it until now. */
  #startAt(): number {
    const { nextStartAt } = this.#concurrency;
    const rate = this.#perMinute();
    return rate ? Math.max(nextStartAt, this.#share.since + 60_000 / rate) : nextStartAt;
  }

  /** How many deliveries should be ready. */
  #targetLength(now: number): number {
    return Math.max(this.limit(), Math.ceil(this.#throughput.perSecond(now) / 4));
  }
}
