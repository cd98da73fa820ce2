/**
 * Composing and signing on threads of their own: RSA is most of what a mail costs, and the main thread has the
 * network and the queue to serve. Orders go out in small batches, so that a crowd shares the cost of a crossing; each
 * thread has one batch at work and one waiting, so that it never idles while the main thread is busy.
 *
 * A thread starts when there is work that the others have no room for, the first at the first order.
 *
 * Whose order is next: organizations take turns (fair-turns.ts). Large orders have threads of their own, one
 * for each four others, which take them one at a time: nobody's small mail waits behind one.
 *
 * Every order is answered once: composed, or rejected. When a thread dies the orders it had are rejected and another
 * thread takes its place at the next order: a mail that kills threads fails by itself, and a thread that cannot start
 * does not start forever. Beyond `mostWaiting` an organization that has its part of them is
 * refused at once. The bytes of an order's attachments are the caller's no longer.
 */
import type { MessagePort, Worker } from 'node:worker_threads';
import { Refusal } from '../mail/refusal.ts';
import {
  type Compose,
  type ComposeOrder,
  costOf,
  isLarge,
  packComposed,
  packOrder,
  unpackComposed,
  unpackOrder,
} from './compose-order.ts';
import { createTurns } from './fair-turns.ts';
import type { Composed } from './recipient-copies.ts';

export interface Composers {
  compose: Compose;
  /** Ends the threads; orders not answered by then are rejected. */
  close(): Promise<void>;
}

export interface ComposersParts {
  /** A new thread, which serves orders by `serveOrders`; `isForLarge`: large ones alone. */
  spawn(isForLarge: boolean): Worker;
  /** How many threads there are at most for orders that are not large. */
  count: number;
  /** Told when a thread dies. */
  onError(what: string, error: unknown): void;
}

interface PendingOrder {
  order: ComposeOrder;
  resolve(composed: Composed): void;
  reject(error: unknown): void;
}

/** A thread, while it lives, and the batches that it has and has not answered, in their order. */
interface Slot {
  isForLarge: boolean;
  thread: Worker | null;
  batches: PendingOrder[][];
}

type Answer = { composed: Composed } | { error: unknown };

const maxBatchLength = 8;
/** A batch with as much in it takes no more. */
const maxBatchCost = 256 * 1024;
const maxBatches = 2;
/** Under half a second of work for two threads. */
const maxWaiting = 1000;

export function createComposers({ spawn, count, onError }: ComposersParts): Composers {
  const createSlots = (length: number, isForLarge: boolean) =>
    Array.from({ length }, (): Slot => ({ isForLarge, thread: null, batches: [] }));
  const small = createSlots(count, false);
  const large = createSlots(Math.ceil(count / 4), true);
  const waiting = createTurns<PendingOrder>();
  let isScheduled = false;
  let isClosed = false;

  function start(slot: Slot): Worker {
    const thread = spawn(slot.isForLarge);
    let cause: unknown;
    thread.on('message', (answers: Answer[]) => {
      settle(slot.batches.shift()!, answers);
      dispatch();
    });
    thread.on('error', (error) => {
      cause = error;
    });
    thread.once('exit', () => {
      const lost = new Error('the thread that composed it ended', { cause });
      if (!isClosed) onError('a composing thread died; the mails it had are refused', cause);
      slot.thread = null;
      for (const { reject } of slot.batches.splice(0).flat()) reject(lost);
      dispatch();
    });
    slot.thread = thread;
    return thread;
  }

  function dispatch(): void {
    isScheduled = false;
    while (waiting.count(true) > 0) {
      const slot = freeSlot(large, 1);
      if (!slot) break;
      send(slot, [waiting.take(true)!.item]);
    }
    while (waiting.count(false) > 0) {
      const slot = freeSlot(small, maxBatches);
      if (!slot) break;
      send(slot, nextBatch());
    }
  }

  function nextBatch(): PendingOrder[] {
    const max = Math.min(Math.ceil(waiting.count(false) / count), maxBatchLength);
    const batch: PendingOrder[] = [];
    for (let cost = 0; batch.length < max && cost < maxBatchCost; ) {
      const turn = waiting.take(false)!;
      batch.push(turn.item);
      cost += turn.cost;
    }
    return batch;
  }

  /** A living thread with little to do; where all are busy, one more. */
  function freeSlot(slots: Slot[], max: number): Slot | undefined {
    return slots
      .filter(({ batches }) => batches.length < max)
      .sort((a, b) => Number(!a.thread) - Number(!b.thread) || a.batches.length - b.batches.length)[0];
  }

  function send(slot: Slot, batch: PendingOrder[]): void {
    try {
      const transfers = batch.map(({ order }) => packOrder(order));
      const thread = slot.thread ?? start(slot);
      thread.postMessage(
        transfers.map(({ value }) => value),
        transfers.flatMap(({ transferList: handedOver }) => handedOver),
      );
      slot.batches.push(batch);
    } catch (error) {
      for (const { reject } of batch) reject(error);
    }
  }

  /** Beyond what waits in all, each organization may have an equal part of that. */
  function exceedsShare(orgId: string): boolean {
    const count = waiting.count(false) + waiting.count(true);
    return count >= maxWaiting && waiting.countOf(orgId) >= maxWaiting / waiting.waitingOrgs(orgId);
  }

  return {
    compose: (order) =>
      new Promise((resolve, reject) => {
        if (isClosed) throw new Error('composing has ended');
        if (exceedsShare(order.orgId)) throw overloaded();
        const turn = { orgId: order.orgId, cost: costOf(order), isLarge: isLarge(order) };
        waiting.add({ ...turn, item: { order, resolve, reject } });
        // Orders of the same turn of the event loop ride together.
        if (!isScheduled) setImmediate(dispatch);
        isScheduled = true;
      }),
    async close() {
      isClosed = true;
      for (const { reject } of waiting.clear()) reject(new Error('composing has ended'));
      await Promise.all([...small, ...large].map(({ thread }) => thread?.terminate()));
    },
  };
}

function settle(batch: PendingOrder[], answers: Answer[]): void {
  for (const [index, { resolve, reject }] of batch.entries()) {
    const answer = answers[index]!;
    if ('composed' in answer) resolve(unpackComposed(answer.composed));
    else reject(answer.error);
  }
}

function overloaded(): Refusal {
  const message = 'More mails come in than can be signed; try again shortly.';
  return new Refusal('RATE_LIMIT_EXCEEDED', message, { retryAfterMs: 1000 });
}

/** The other end, in the thread: answers batches one after the other. */
export function serveOrders(port: MessagePort, compose: (order: ComposeOrder) => Composed): void {
  port.on('message', (orders: ComposeOrder[]) => {
    const answers: Answer[] = [];
    const handedOver: ArrayBuffer[] = [];
    for (const order of orders) {
      try {
        const composed = packComposed(compose(unpackOrder(order)));
        answers.push({ composed: composed.value });
        handedOver.push(...composed.transferList);
      } catch (error) {
        answers.push({ error });
      }
    }
    port.postMessage(answers, handedOver);
  });
}
