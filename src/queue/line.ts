/**
 * A destination as the runner holds it: what is under way there, what is at hand, which lanes wait, and its gauge.
 *
 * At hand are deliveries that this node has leased and that wait a moment for a connection; no more than there are
 * connections, so that memory is bounded and the next is ready when one comes free. All else waits in the database.
 */
import type { Delivery, Signal } from '../nouns.ts';
import type { Destination, Shape } from '../shape.ts';
import { createLanes, type Lanes } from './lanes.ts';
import { afterAttempt, afterStart, allowed, type Gauge, mayProbe, newGauge } from './shaping.ts';

export interface Line {
  readonly name: string;
  readonly lanes: Lanes;
  readonly hand: Delivery[];
  readonly gauge: Gauge;
  readonly underWay: number;
  /** The last thing that the other side said, for the operator. */
  readonly lastReply: { text: string; at: number } | null;
  /** A look-up may have brought another shape. */
  reshape(shape: Shape): void;
  /** Whether one more may begin now. */
  mayStart(now: number): boolean;
  /** Nothing is sent there now but a probe: its circuit is open. */
  isBroken(): boolean;
  /** Why nothing may start for a good while, in words; null where it may. What is leased is better given back. */
  rest(now: number): string | null;
  /** A delivery has fallen due of its own: true where it may probe the open circuit, which it then must do. */
  probe(now: number): boolean;
  /** How many more may be leased for it, what is promised already counted. */
  room(now: number): number;
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

const paced = (perMinute: number) => Math.ceil((perMinute * longestWaitMs) / 60_000);

export function createLine(destination: Destination): Line {
  const { name } = destination;
  let { shape } = destination;
  let gauge = newGauge(shape);
  let underWay = 0;
  let promised = 0;
  let lastReply: Line['lastReply'] = null;
  const lanes = createLanes();
  const hand: Delivery[] = [];

  const mayStart = (now: number) => underWay < allowed(gauge, now) && now >= gauge.nextStartAt;

  function rest(now: number): string | null {
    const { circuit, nextStartAt, busySince } = gauge;
    if (circuit && !mayStart(now)) {
      return `nothing answered there ${circuit.failures} times in a row, last: ${circuit.reason}`;
    }
    if (nextStartAt <= now + longestWaitMs) return null;
    return busySince === null ? 'its rate is used up' : 'it asks to be sent less';
  }

  return {
    name,
    lanes,
    hand,
    get gauge() {
      return gauge;
    },
    get underWay() {
      return underWay;
    },
    get lastReply() {
      return lastReply;
    },
    reshape(next) {
      shape = next;
      if (gauge.limit > next.connections) gauge = { ...gauge, limit: next.connections };
    },
    mayStart,
    isBroken: () => gauge.circuit !== null,
    rest,
    probe(now) {
      if (underWay > 0 || !mayProbe(gauge, now)) return false;
      gauge = { ...gauge, circuit: { ...gauge.circuit!, nextProbeAt: now } };
      return true;
    },
    room(now) {
      if (rest(now) !== null) return 0;
      if (gauge.circuit) return 1 - hand.length - promised;
      // With a pace there is no use in holding what is more than moments away.
      const soon = shape.perMinute === null ? Number.POSITIVE_INFINITY : paced(shape.perMinute);
      return Math.min(2 * gauge.limit - underWay, soon) - hand.length - promised;
    },
    promise() {
      promised += 1;
    },
    unpromise() {
      promised -= 1;
    },
    started(now) {
      underWay += 1;
      gauge = afterStart(gauge, shape, now);
    },
    ended(signal, reason, now) {
      gauge = afterAttempt(gauge, shape, { signal, inUse: underWay, reason }, now);
      underWay -= 1;
      if (signal !== null) lastReply = { text: reason, at: now };
    },
    wakeAt(now) {
      const { circuit, nextStartAt } = gauge;
      if (circuit?.probing || hand.length + lanes.size === 0) return Number.POSITIVE_INFINITY;
      if (circuit) return Math.max(circuit.nextProbeAt, nextStartAt);
      return nextStartAt > now ? nextStartAt : Number.POSITIVE_INFINITY;
    },
    isIdle: () => underWay + promised + hand.length + lanes.size === 0,
  };
}
