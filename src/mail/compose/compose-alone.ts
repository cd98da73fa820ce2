/**
 * Composes a small mail that comes alone on the calling thread: to send it to another thread and back costs about
 * a third of what composing costs. Mails that come close together, and large ones, are left to the threads.
 */
import { createBurstDetector } from '#platform/base/burst-detector.ts';
import { type Compose, type ComposeOrder, costOf } from './compose-order.ts';
import type { Composed } from './recipient-copies.ts';

/** Mails that come closer together than this share the cost of a message to a thread. */
const burstGapMs = 2;
/** Two signatures and some kilobytes: the calling thread does nothing else meanwhile. */
const maxCost = 48 * 1024;

export function composeAlone(
  onThreads: Compose,
  composeHere: (order: ComposeOrder) => Composed,
  now?: () => number,
): Compose {
  const bursts = createBurstDetector(burstGapMs, now);
  return async (order) => {
    bursts.note();
    return bursts.isBurst() || costOf(order) > maxCost ? onThreads(order) : composeHere(order);
  };
}
