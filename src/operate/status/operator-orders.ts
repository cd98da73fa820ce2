/**
 * The operator's orders that may have been forgotten: held mail, rules, suspensions, rate limits, paused organizations, each
 * with how much mail waits for its end, and the command that ends it.
 */

import { countOrdered, heldByDomain, pausedWithMail } from '#mail/queue/rows/ordered-counts.ts';
import { countIn } from '#mail/queue/rows/waiting-counts.ts';
import type { DestinationStatuses } from '#mail/record/rows/destination-status-rows.ts';
import type { Db } from '#platform/database/engine/open.ts';
import { shellWord } from '#platform/settings/shell-word.ts';

export interface Order {
  kind: 'held' | 'hold' | 'bounce' | 'slow' | 'suspend' | 'pause';
  /** A destination, a recipient domain, or an organization; null: all. */
  subject: string | null;
  since: number | null;
  /** When it ends by itself; null: never. */
  until: number | null;
  /** How much mail waits for its end. */
  count: number;
  reason: string | null;
  /** Set for a limit. */
  perMinute: number | null;
  /** The command that ends it. */
  command: string;
}

const words: Record<Order['kind'], string> = {
  held: 'held mail',
  hold: 'hold rule',
  bounce: 'bounce rule',
  slow: 'slowed',
  suspend: 'suspended',
  pause: 'paused',
};

/** `hold rule there.invalid` */
export function orderText({ kind, subject, perMinute }: Order): string {
  const rate = perMinute === null ? '' : ` to ${perMinute} a minute`;
  return `${words[kind]}${subject === null ? '' : ` ${subject}`}${rate}`;
}

/** More are listed by `queue rules`. */
const maxOrders = 20;

export async function readOrders(db: Db, statuses: Pick<DestinationStatuses, 'orders'>): Promise<Order[]> {
  const held = await heldByDomain(db);
  const orders: Order[] = [];
  for (const { destination, createdAt, ...order } of statuses.orders.slice(0, maxOrders)) {
    const { kind } = order;
    const name = shellWord(destination);
    const isRule = kind === 'hold' || kind === 'bounce';
    const own = kind === 'hold' ? (held.get(destination)?.count ?? 0) : 0;
    if (kind === 'hold') held.delete(destination);
    const waiting = isRule ? countIn(db, 'waiting', [destination]) : countOrdered(db, destination);
    orders.push({
      ...order,
      subject: destination,
      since: createdAt,
      count: own + (await waiting),
      command: isRule ? `postern queue rule ${name} none` : `postern queue resume ${name} --reason R`,
    });
  }
  for (const { name, since, reason, count } of await pausedWithMail(db, maxOrders))
    orders.push({
      kind: 'pause',
      subject: name,
      since,
      until: null,
      count,
      reason,
      perMinute: null,
      command: `postern org resume ${shellWord(name)} --reason R`,
    });
  return [...heldOrder(held), ...orders];
}

/** Without the mail that a rule holds, which is counted with the rule. */
function heldOrder(held: Map<string, { count: number; since: number }>): Order[] {
  if (held.size === 0) return [];
  const all = [...held.values()];
  return [
    {
      kind: 'held',
      subject: null,
      since: Math.min(...all.map(({ since }) => since)),
      until: null,
      count: all.reduce((sum, { count }) => sum + count, 0),
      reason: null,
      perMinute: null,
      command: 'postern queue release --status held --reason R',
    },
  ];
}
