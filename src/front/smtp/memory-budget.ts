/**
 * Bounds the memory of messages that are being received or decided on, in total and for each organization or client network.
 * One eighth is reserved for small messages: a bounce still gets in, however many large messages arrive slowly.
 */

import { systemClock } from '#platform/base/clock.ts';
import { ByteBudget, type ByteBudgetParts, type ByteHold } from '#platform/base/limits/byte-budget.ts';

interface IntakeBounds {
  /** Bytes of all messages. */
  max: number;
  /** Bytes of one client's messages. */
  perClient: ByteBudgetParts['ofOne'];
  /** How long a message waits for memory; in real time, as its socket's timeouts. */
  timeoutMs?: number;
}

const defaultTimeoutMs = 5000;

export function createMemoryBudget({
  max,
  perClient,
  timeoutMs = defaultTimeoutMs,
}: IntakeBounds): ByteBudget {
  return new ByteBudget({ max, reserve: max / 8, ofOne: perClient, timeoutMs, clock: systemClock });
}

/** A message that counts in two budgets: its memory is given if both give it. */
export function inBoth(one: ByteHold, other: ByteHold): ByteHold {
  return {
    add(bytes) {
      const given = [one.add(bytes), other.add(bytes)];
      if (given.every((each) => each === true)) return true;
      return Promise.all(given).then((all) => all.every(Boolean));
    },
    release() {
      one.release();
      other.release();
    },
  };
}
