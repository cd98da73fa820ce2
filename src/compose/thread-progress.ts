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

/** Looks are counted, not time, because the whole process may have been stopped. */
const looksOfTimeout = 10;

/** Calls `onTimeout` when one order has been in work for `timeoutMs`. Returns a function that ends the watch. */
export function watchProgress(progress: Progress, timeoutMs: number, onTimeout: () => void): () => void {
  let seen = 0;
  let looks = 0;
  let afterMessages: NodeJS.Immediate | undefined;
  const timer = setInterval(() => {
    const begun = Atomics.load(progress.begun, 0);
    looks = begun === seen && begun > progress.answered ? looks + 1 : 0;
    seen = begun;
    if (looks < looksOfTimeout) return;
    // If this thread was busy, an answer that arrived in time has not been handed over.
    afterMessages = setImmediate(() => {
      if (begun > progress.answered) onTimeout();
    });
  }, timeoutMs / looksOfTimeout).unref();
  return () => {
    clearInterval(timer);
    clearImmediate(afterMessages);
  };
}
