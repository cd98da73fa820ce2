/**
 * scripts/start limits the heap of the main thread by V8 flags. V8 prefers a flag to the `resourceLimits` of a worker
 * thread, also to those that keep a hostile mail from taking all memory (server/bounce-handling.ts). Therefore the flags are
 * cleared once the main thread has its heap: it keeps its limits, and worker threads get their own.
 */
import { setFlagsFromString } from 'node:v8';

/** Must be called before the first worker thread starts. */
export function clearHeapFlags(): void {
  for (const flag of ['max-old-space-size', 'max-semi-space-size']) setFlagsFromString(`--${flag}=0`);
}
