/**
 * What the operator has ordered and may have forgotten: held mail, rules, suspensions, rate limits, paused organizations, each
 * with how much mail waits for its end, and the command that ends it.
 */

import type { Db } from '../../db/engine/open.ts';
import type { DestinationStatuses } from '../../db/queue/destination-status-rows.ts';
import { countOrdered, heldByDomain, pausedWithMail } from '../../db/queue/ordered-counts.ts';
import { shellWord } from '../condition/shell-word.ts';

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
  /** What ends it. */
  command: string;
}

/** More are listed by `queue rules`. */
const maxOrders = 20;

export async function readOrders(
  db: Db,
  { suspensions, rules }: Pick<DestinationStatuses, 'suspensions' | 'rules'>,
): Promise<Order[]> {
  const held = await heldByDomain(db);
  const orders: Order[] = [];
  for (const { destination, kind, perMinute, reason, createdAt, until } of rules.slice(0, maxOrders)) {
    const name = shellWord(destination);
    const isHold = kind === 'hold';
    const count = isHold ? (held.get(destination)?.count ?? 0) : 0;
    if (isHold) held.delete(destination);
    orders.push({
      kind,
      subject: destination,
      since: createdAt,
      until,
      count: count + (await countOrdered(db, destination)),
      reason: perMinute === null ? reason : `${perMinute} a minute, ${reason}`,
      command:
        kind === 'slow' ? `postern queue resume ${name} --reason R` : `postern queue rule ${name} none`,
    });
  }
  for (const { destination, reason, createdAt, until } of suspensions.slice(0, maxOrders))
    orders.push({
      kind: 'suspend',
      subject: destination,
      since: createdAt,
      until,
      count: await countOrdered(db, destination),
      reason,
      command: `postern queue resume ${shellWord(destination)} --reason R`,
    });
  for (const { name, since, reason, count } of await pausedWithMail(db, maxOrders))
    orders.push({
      kind: 'pause',
      subject: name,
      since,
      until: null,
      count,
      reason,
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
      command: 'postern queue release --status held --reason R',
    },
  ];
}
