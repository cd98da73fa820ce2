/**
 * What is to be checked again when the body of a request has arrived. It may take five minutes: whoever sends it may have lost the right
 * to meanwhile, and a key that has leaked would go on working for as long as its thief keeps calls open.
 */
import type { IncomingMessage } from 'node:http';

const checks = new WeakMap<IncomingMessage, () => Promise<void>>();

/** `check` rejects with the refusal. */
export function onceArrived(request: IncomingMessage, check: () => Promise<void>): void {
  checks.set(request, check);
}

export async function arrived(request: IncomingMessage): Promise<void> {
  await checks.get(request)?.();
}
