/**
 * Puts the operator's rules into force, once a second on every node: limits go to the shaping rules; mail to a held domain
 * is held, and mail to a bounced domain is claimed, to be bounced by the runner. Both domains also count as suspended, so
 * that none of their mail starts in between.
 */

import type { Suspension } from '#mail/queue/ready-queues.ts';
import { applyQueueAction } from '#mail/queue/rows/apply-queue-action.ts';
import { type DestinationOrder, listOrders } from '#mail/queue/rows/destination-rules.ts';
import { claimOfDomain, hasWaiting } from '#mail/queue/rows/lease-statements.ts';
import type { Delivery } from '#platform/values/glossary.ts';
import { leaseMs, type ServerContext } from './context.ts';

export interface OperatorRules {
  /** Reads the rules: what is suspended now, the domains of rules among it. */
  suspensions(now: number): Promise<Suspension[]>;
  /** Leases mail that a rule bounces, with the reason. */
  claimRefused(now: number, limit: number): Promise<{ delivery: Delivery; reason: string }[]>;
  /** Ends the work in the background. */
  close(): Promise<void>;
}

export function createOperatorRules(
  { db, node, onError }: ServerContext,
  limit: (perMinute: Map<string, number>) => void,
): OperatorRules {
  let orders: DestinationOrder[] = [];
  /** The domains whose mail is being held. */
  const holding = new Map<string, Promise<void>>();
  const closing = new AbortController();

  async function hold({ destination: domain, reason }: DestinationOrder, now: number): Promise<void> {
    try {
      if (!(await hasWaiting(db, domain))) return;
      await applyQueueAction(db, { domain }, { action: 'hold', reason, now, signal: closing.signal });
    } catch (error) {
      if (!closing.signal.aborted) onError(`the mail to ${domain} cannot be held; trying again`, error);
    } finally {
      holding.delete(domain);
    }
  }

  return {
    async suspensions(now) {
      orders = await listOrders(db, now);
      limit(
        new Map(
          orders.flatMap(({ destination, perMinute }) => (perMinute ? [[destination, perMinute]] : [])),
        ),
      );
      for (const order of orders) {
        const isNew = order.kind === 'hold' && !holding.has(order.destination);
        if (isNew) holding.set(order.destination, hold(order, now));
      }
      return orders
        .filter(({ kind }) => kind !== 'slow')
        .map(({ destination, reason, until }) => ({
          destination,
          reason,
          until: until ?? Number.POSITIVE_INFINITY,
        }));
    },
    async claimRefused(now, max) {
      const refused: { delivery: Delivery; reason: string }[] = [];
      for (const { kind, destination: domain, reason } of orders) {
        if (kind !== 'bounce' || refused.length >= max) continue;
        const claimed = await claimOfDomain(db, domain, max - refused.length, { node, now, leaseMs });
        const why = `the operator bounces mail to ${domain}: ${reason}`;
        refused.push(...claimed.map((delivery) => ({ delivery, reason: why })));
      }
      return refused;
    },
    async close() {
      closing.abort();
      await Promise.all(holding.values());
    },
  };
}
