/**
 * Composes a small mail that comes alone on the calling thread: to send it to another thread and back costs more than
 * half of what composing costs. Mails that come close together, and large ones, are left to the threads.
 */
import { createBurstDetector } from '../base/burst-detector.ts';
import { type Compose, type ComposeOrder, costOf } from './compose-order.ts';
import type { Composed } from './recipient-copies.ts';

/** A thread answers as fast as this one if mails come closer together. */
const burstGapMs = 2;
/** For less than a millisecond nothing else happens on the calling thread. */
const maxCost = 48 * 1024;

export function composeAlone(onThreads: Compose, composeHere: (order: ComposeOrder) => Composed): Compose {
  const bursts = createBurstDetector(burstGapMs);
  return async (order) => {
    bursts.note();
    return bursts.isBurst() || costOf(order) > maxCost ? onThreads(order) : composeHere(order);
  };
}
