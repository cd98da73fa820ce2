/**
 * Adds a visit to a delivery's counts (how often people opened or clicked, and when first and last) and creates its event.
 * Pure; mail/record/rows/engagement.ts stores the result.
 */
import { type Visitor, type VisitorKind, visitorKind } from './visitor.ts';

/** A person or a program fetched a delivery's pixel or followed one of its links. */
export interface Visit extends Omit<Visitor, 'sinceDelivery' | 'wasOpened'> {
  deliveryId: string;
  at: number;
  ip: string;
  /** The target of the click. */
  url: string | null;
}

/** Opens or clicks of a delivery. `scans` counts those by programs, which `count` and the times leave out. */
export interface Tally {
  count: number;
  firstAt: number | null;
  lastAt: number | null;
  scans: number;
}

/** The state of the delivery before the visit. */
export interface Visited {
  isSending: boolean;
  deliveredAt: number | null;
  open: Tally;
  click: Tally;
}

export interface VisitEvent {
  /** Opens and clicks of the recipient's mail, by a person. */
  first?: true;
  kind: VisitorKind;
  userAgent: string;
  ip: string;
  url?: string;
}

/** The maximum number of events of a delivery for each kind: opens by people, opens by programs, and so on. */
const maxEvents = 100;

/** Returns the new counts, and the event unless the delivery has its maximum of such events. */
export function recordVisit(before: Visited, visit: Visit): { after: Visited; event: VisitEvent | null } {
  const { event, at, userAgent, ip, url } = visit;
  const kind = visitorKind({ ...visit, sinceDelivery: since(before, at), wasOpened: before.open.count > 0 });
  const tally = before[event];
  const isScan = kind === 'scanner';
  const isFirst = !isScan && tally.count === 0;
  const hasEvent = (isScan ? tally.scans : tally.count) < maxEvents;
  return {
    after: { ...before, [event]: isScan ? { ...tally, scans: tally.scans + 1 } : counted(tally, at) },
    event: hasEvent
      ? { ...(isFirst && { first: isFirst }), kind, userAgent, ip, ...(url !== null && { url }) }
      : null,
  };
}

function since({ isSending, deliveredAt }: Visited, at: number): number | null {
  if (isSending) return 0;
  return deliveredAt === null ? null : at - deliveredAt;
}

function counted({ count, firstAt, lastAt, scans }: Tally, at: number): Tally {
  return {
    count: count + 1,
    firstAt: Math.min(firstAt ?? at, at),
    lastAt: Math.max(lastAt ?? at, at),
    scans,
  };
}
