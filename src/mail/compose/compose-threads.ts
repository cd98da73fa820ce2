/**
 * Composes and signs on worker threads: RSA is most of the cost of a mail, and the main thread serves the network and the
 * queue. Orders are sent in small batches, to share the cost of a message between threads; a thread has one batch in work
 * and one waiting, so that it never idles while the main thread is busy. Threads start when they are needed.
 *
 * Organizations take turns (fair-turns.ts). Large orders have threads of their own, one for every four others, which take
 * one order at a time, so that a small mail never waits for a large one.
 *
 * Every order is answered once: composed or rejected. A mail that takes longer than `timeoutMs` ends its thread, as one does
 * that kills it: only that mail is rejected, and the thread's other orders are composed again on another one. A thread that
 * cannot start is not retried forever. Beyond `maxWaiting` orders, an organization that has its share of them is refused at
 * once. The attachments of a large order are transferred to the thread: the caller cannot use them any more.
 */
import type { MessagePort, Worker } from 'node:worker_threads';
import { Refusal } from '#platform/values/refusal.ts';
import {
  type Compose,
  type ComposeOrder,
  copiesOf,
  costOf,
  isLarge,
  packComposed,
  packOrder,
  unpackComposed,
  unpackOrder,
} from './compose-order.ts';
import { FairTurns } from './fair-turns.ts';
import type { Composed } from './recipient-copies.ts';
import { orderInWork, type Progress, startProgress, watchProgress } from './thread-progress.ts';

export interface Composers {
  compose: Compose;
  /** Ends the threads; unanswered orders are rejected. */
  close(): Promise<void>;
}

export interface ComposersParts {
  /** Starts a thread that calls `serveOrders`. `isForLarge`: it gets large orders only. */
  spawn(isForLarge: boolean): Worker;
  /** Maximum number of threads for orders that are not large. */
  count: number;
  /** Called when a thread dies. */
  onError(what: string, error: unknown): void;
  /** How long one mail may take. */
  timeoutMs?: number | undefined;
}

interface PendingOrder {
  order: ComposeOrder;
  resolve(composed: Composed): void;
  reject(error: unknown): void;
}

/** A thread, if it is running, and its unanswered batches in order. */
interface ThreadQueue {
  isForLarge: boolean;
  thread: Worker | null;
  batches: PendingOrder[][];
}

type Answer = { composed: Composed } | { error: unknown };

const maxBatchLength = 8;
/** A batch that costs this much is not extended. */
const maxBatchCost = 256 * 1024;
const maxBatches = 2;
/** Under half a second of work for two threads. */
const maxWaiting = 1000;
/** The largest mail takes one second; each copy of a tracked mail, some milliseconds more. */
const defaultTimeoutMs = 10_000;
const msOfCopy = 20;

export function createComposers(parts: ComposersParts): Composers {
  const threads = new ComposeThreads(parts);
  return { compose: (order) => threads.compose(order), close: () => threads.close() };
}

class ComposeThreads {
  readonly #parts: ComposersParts;
  readonly #small: ThreadQueue[];
  readonly #large: ThreadQueue[];
  readonly #waiting = new FairTurns<PendingOrder>();
  #isScheduled = false;
  #isClosed = false;

  constructor(parts: ComposersParts) {
    this.#parts = parts;
    this.#small = createQueues(parts.count, false);
    this.#large = createQueues(Math.ceil(parts.count / 4), true);
  }

  compose(order: ComposeOrder): Promise<Composed> {
    return new Promise((resolve, reject) => {
      if (this.#isClosed) throw new Error('composing has ended');
      if (this.#exceedsShare(order.orgId)) throw overloaded();
      const turn = { orgId: order.orgId, cost: costOf(order), isLarge: isLarge(order) };
      this.#waiting.add({ ...turn, item: { order, resolve, reject } });
      // Orders of one turn of the event loop are sent together.
      if (!this.#isScheduled) setImmediate(() => this.#dispatch());
      this.#isScheduled = true;
    });
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    for (const { reject } of this.#waiting.clear()) reject(new Error('composing has ended'));
    await Promise.all([...this.#small, ...this.#large].map(({ thread }) => thread?.terminate()));
  }

  #dispatch(): void {
    this.#isScheduled = false;
    while (this.#waiting.count(true) > 0) {
      const queue = freeQueue(this.#large, 1);
      if (!queue) break;
      this.#send(queue, [this.#waiting.take(true)!.item]);
    }
    while (this.#waiting.count(false) > 0) {
      const queue = freeQueue(this.#small, maxBatches);
      if (!queue) break;
      this.#send(queue, this.#nextBatch());
    }
  }

  #nextBatch(): PendingOrder[] {
    const max = Math.min(Math.ceil(this.#waiting.count(false) / this.#parts.count), maxBatchLength);
    const batch: PendingOrder[] = [];
    for (let cost = 0; batch.length < max && cost < maxBatchCost; ) {
      const turn = this.#waiting.take(false)!;
      batch.push(turn.item);
      cost += turn.cost;
    }
    return batch;
  }

  #send(queue: ThreadQueue, batch: PendingOrder[]): void {
    try {
      const transfers = batch.map(({ order }) => packOrder(order));
      const thread = queue.thread ?? this.#start(queue);
      thread.postMessage(
        transfers.map(({ value }) => value),
        // Small orders are cloned, because they are composed again if the thread dies of another.
        queue.isForLarge ? transfers.flatMap(({ transferList }) => transferList) : [],
      );
      queue.batches.push(batch);
    } catch (error) {
      for (const { reject } of batch) reject(error);
    }
  }

  #start(queue: ThreadQueue): Worker {
    const thread = this.#parts.spawn(queue.isForLarge);
    const progress = startProgress();
    let cause: unknown;
    thread.postMessage(progress.begun);
    const stopWatching = watchProgress(progress, this.#timeoutMs / 10, (index, ms) => {
      const allowed = this.#timeoutMs + copiesOf(queue.batches.flat()[index]!.order) * msOfCopy;
      if (ms < allowed) return;
      cause = tooSlow(allowed);
      void thread.terminate();
    });
    thread.on('message', (answers: Answer[]) => {
      progress.answered += answers.length;
      settle(queue.batches.shift()!, answers);
      this.#dispatch();
    });
    thread.on('error', (error) => {
      cause = error;
    });
    thread.once('exit', () => {
      stopWatching();
      queue.thread = null;
      if (!this.#isClosed)
        this.#parts.onError('a composing thread ended; the mail in work was rejected', cause);
      this.#settleLost(queue, progress, cause);
      this.#dispatch();
    });
    queue.thread = thread;
    return thread;
  }

  /**
   * The order that the thread had in work is at fault. If the thread did not begin any, it does not start: all fail. Each
   * thread has answered or failed an order before the others go to the next, so this ends.
   */
  #settleLost(queue: ThreadQueue, progress: Progress, cause: unknown): void {
    const lost = queue.batches.splice(0).flat();
    const hasBegun = Atomics.load(progress.begun, 0) > 0;
    const error = cause instanceof Refusal ? cause : new Error('the composing thread died', { cause });
    for (const [index, pending] of lost.entries()) {
      const isCause = index === orderInWork(progress);
      const mayRetry = hasBegun && !queue.isForLarge && !this.#isClosed;
      if (isCause || !mayRetry) pending.reject(error);
      else
        this.#waiting.add({
          orgId: pending.order.orgId,
          cost: costOf(pending.order),
          isLarge: false,
          item: pending,
        });
    }
  }

  get #timeoutMs(): number {
    return this.#parts.timeoutMs ?? defaultTimeoutMs;
  }

  /** Once `maxWaiting` orders wait, each organization may have an equal share of that number. */
  #exceedsShare(orgId: string): boolean {
    const count = this.#waiting.count(false) + this.#waiting.count(true);
    return (
      count >= maxWaiting && this.#waiting.countOf(orgId) >= maxWaiting / this.#waiting.waitingOrgs(orgId)
    );
  }
}

function createQueues(length: number, isForLarge: boolean): ThreadQueue[] {
  return Array.from({ length }, () => ({ isForLarge, thread: null, batches: [] }));
}

/** The running thread with the fewest batches; if all are busy, a queue whose thread is to be started. */
function freeQueue(queues: ThreadQueue[], max: number): ThreadQueue | undefined {
  return queues
    .filter(({ batches }) => batches.length < max)
    .sort((a, b) => Number(!a.thread) - Number(!b.thread) || a.batches.length - b.batches.length)[0];
}

function settle(batch: PendingOrder[], answers: Answer[]): void {
  for (const [index, { resolve, reject }] of batch.entries()) {
    const answer = answers[index]!;
    if ('composed' in answer) resolve(unpackComposed(answer.composed));
    else reject(answer.error);
  }
}

function tooSlow(timeoutMs: number): Refusal {
  const message =
    `The email takes longer than ${Math.round(timeoutMs / 100) / 10} s to compose, so it was not accepted. Nothing was charged. ` +
    'Send it with fewer recipients, or without tracking, or make its content simpler.';
  return new Refusal('BAD_REQUEST', message);
}

function overloaded(): Refusal {
  const message = 'The server receives mail faster than it can sign it. Retry in a second.';
  return new Refusal('RATE_LIMIT_EXCEEDED', message, { retryAfterMs: 1000 });
}

/** The thread's side: the first message is the count of begun orders, the others are batches, answered one after the other. */
export function serveOrders(port: MessagePort, compose: (order: ComposeOrder) => Composed): void {
  let begun: Int32Array;
  port.on('message', (message: Int32Array | ComposeOrder[]) => {
    if (message instanceof Int32Array) {
      begun = message;
      return;
    }
    const answers: Answer[] = [];
    const transferList: ArrayBuffer[] = [];
    for (const order of message) {
      Atomics.add(begun, 0, 1);
      try {
        const composed = packComposed(compose(unpackOrder(order)));
        answers.push({ composed: composed.value });
        transferList.push(...composed.transferList);
      } catch (error) {
        answers.push({ error });
      }
    }
    port.postMessage(answers, transferList);
  });
}
