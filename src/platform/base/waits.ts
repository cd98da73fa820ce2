/** Waits for promises and times that can end early. */
import type { Clock } from './clock.ts';

/** Waits for a promise until the signal is aborted. The promise itself goes on; its later result is ignored. */
export function orAborted<T>(promise: Promise<T>, signal: AbortSignal): Promise<T> {
  return new Promise((resolve, reject) => {
    const stop = () => reject(signal.reason);
    if (signal.aborted) stop();
    else signal.addEventListener('abort', stop, { once: true });
    promise.then(resolve, reject).finally(() => signal.removeEventListener('abort', stop));
  });
}

/** Waits by the clock; ends early when the signal is aborted. */
export function pause(clock: Clock, ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const end = () => {
      cancel();
      signal.removeEventListener('abort', end);
      resolve();
    };
    const cancel = clock.after(ms, end);
    if (signal.aborted) end();
    else signal.addEventListener('abort', end, { once: true });
  });
}

/**
 * Waits for a promise for at most `ms` of real time, then returns `otherwise()`. The promise itself continues; its later
 * result is ignored.
 */
export async function withTimeout<T>(ms: number, promise: Promise<T>, otherwise: () => T): Promise<T> {
  let timer: NodeJS.Timeout;
  const late = new Promise<T>((resolve) => {
    timer = setTimeout(() => resolve(otherwise()), ms);
  });
  return Promise.race([promise, late]).finally(() => clearTimeout(timer));
}
