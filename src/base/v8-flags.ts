/**
 * scripts/start sets the heap's limits for the main thread by V8's flags. V8 puts a flag before the `resourceLimits` that a
 * thread is given, also before the one that keeps a stranger's mail from taking all memory (server/bounce-handling.ts). What is set in
 * flags is therefore unset once the main thread has its heap: it keeps that, and threads get what they are given.
 */
import { setFlagsFromString } from 'node:v8';

/** Before the first thread. */
export function clearHeapFlags(): void {
  for (const flag of ['max-old-space-size', 'max-semi-space-size']) setFlagsFromString(`--${flag}=0`);
}
