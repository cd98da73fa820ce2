/** The counts of statistics, and the columns of their sums. */

import type { Bounce } from '#platform/values/glossary.ts';
import { latencyBounds } from './latency.ts';

/** The counts and the types of their events. */
export const counted = {
  sent: 'email.queued',
  delivered: 'email.delivered',
  deferred: 'email.deferred',
  bounced: 'email.bounced',
  expired: 'email.expired',
  complained: 'email.complained',
  opened: 'email.opened',
  clicked: 'email.clicked',
} as const;

export type Counts = Record<keyof typeof counted, number>;

export const countNames = Object.keys(counted) as (keyof Counts)[];

/** Deliveries by the latency classes of latency.ts. */
export const tookNames = [...latencyBounds, Number.POSITIVE_INFINITY].map((_, index) => `took_${index}`);

/** The columns of sums; `hard` counts hard bounces. */
export const sumNames = [...countNames, 'hard', ...tookNames];

/** Events that are the same to statistics. What is of the email or the delivery is null if these are deleted. */
export interface CountedEvents {
  org_id: string;
  hour: number;
  type: (typeof counted)[keyof Counts];
  /** The latency class of a delivery. */
  took: number | null;
  /** The recipient's. */
  domain: string | null;
  sender: string | null;
  tags: string | null;
  key_id: string | null;
  stream: string | null;
  bounce: Bounce | null;
  /** A mail that came back says so, and not a host in a session. */
  isReturned: boolean;
  count: number;
}

const nameOf = Object.fromEntries(countNames.map((name) => [counted[name], name]));

export function sumsOf(events: CountedEvents[]): Record<string, number> {
  const sums: Record<string, number> = Object.fromEntries(sumNames.map((name) => [name, 0]));
  for (const { type, took, bounce, count } of events) {
    sums[nameOf[type]!]! += count;
    if (took !== null) sums[tookNames[took]!]! += count;
    if (bounce?.type === 'hard') sums.hard! += count;
  }
  return sums;
}
