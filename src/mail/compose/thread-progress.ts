/** How far a composing thread is with its orders, and whether it has been at one of them for too long. */

export interface Progress {
  /** Shared with the thread, which counts the orders that it has begun. */
  begun: Int32Array;
  /** How many of them it has answered. */
  answered: number;
}

export function startProgress(): Progress {
  return { begun: new Int32Array(new SharedArrayBuffer(4)), answered: 0 };
}

/** The position of the order in work among the unanswered ones; -1 if there is none. */
export function orderInWork({ begun, answered }: Progress): number {
  return Atomics.load(begun, 0) - answered - 1;
}

/**
 * Looks every `intervalMs`, and calls `onLook` with the position of the order in work and how long it has been that. Looks are
 * counted, not time, because the whole process may have been stopped. Returns a function that ends the watch.
 */
export function watchProgress(
  progress: Progress,
  intervalMs: number,
  onLook: (order: number, ms: number) => void,
): () => void {
  let seen = 0;
  let looks = 0;
  let afterMessages: NodeJS.Immediate | undefined;
  const timer = setInterval(() => {
    const begun = Atomics.load(progress.begun, 0);
    looks = begun === seen ? looks + 1 : 0;
    seen = begun;
    // If this thread was busy, an answer that arrived in time has not been handed over.
    afterMessages = setImmediate(() => {
      const order = orderInWork(progress);
      if (order >= 0) onLook(order, looks * intervalMs);
      else looks = 0;
    });
  }, intervalMs).unref();
  return () => {
    clearInterval(timer);
    clearImmediate(afterMessages);
  };
}
