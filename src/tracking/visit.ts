/**
 * A visit becomes an entry of the delivery's books: how often people opened or clicked, and when first and last, and
 * the event that tells of it. Pure; db/events/engagement.ts keeps the books.
 */
import { type Visitor, type VisitorKind, visitorKind } from './visitor.ts';

/** Somebody, or something, fetched a delivery's pixel or followed one of its links. */
export interface Visit extends Omit<Visitor, 'sinceDelivery' | 'wasOpened'> {
  deliveryId: string;
  at: number;
  ip: string;
  /** Where the click led. */
  url: string | null;
}

/** People's opens, or clicks, of a delivery; `scans` are those of machines, which `count` and the times leave out. */
export interface Tally {
  count: number;
  firstAt: number | null;
  lastAt: number | null;
  scans: number;
}

/** What is known of the delivery when the visit is entered. */
export interface Visited {
  isSending: boolean;
  deliveredAt: number | null;
  open: Tally;
  click: Tally;
}

export interface VisitEvent {
  kind: VisitorKind;
  userAgent: string;
  ip: string;
  url?: string;
}

/** Events of a delivery: so many of people's opens, of machines' opens, and so on. The counts go on. */
const maxEvents = 100;

/** The delivery's books with the visit in them, and its event where there is room for one. */
export function recordVisit(before: Visited, visit: Visit): { after: Visited; event: VisitEvent | null } {
  const { event, at, userAgent, ip, url } = visit;
  const kind = visitorKind({ ...visit, sinceDelivery: since(before, at), wasOpened: before.open.count > 0 });
  const tally = before[event];
  const isScan = kind === 'scanner';
  const hasRoom = (isScan ? tally.scans : tally.count) < maxEvents;
  return {
    after: { ...before, [event]: isScan ? { ...tally, scans: tally.scans + 1 } : counted(tally, at) },
    event: hasRoom ? { kind, userAgent, ip, ...(url !== null && { url }) } : null,
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
