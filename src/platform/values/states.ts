/** An email's status, which follows from the states of its deliveries (docs/design.md section 3). */
import type { DeliveryStatus } from './glossary.ts';

/** The statuses of an email whose deliveries have different states. */
export const mixedStates = ['processing', 'partially_delivered', 'failed'] as const;

export type EmailStatus = DeliveryStatus | (typeof mixedStates)[number];

const open: DeliveryStatus[] = ['scheduled', 'queued', 'sending', 'deferred', 'held'];
const arrived: DeliveryStatus[] = ['delivered', 'complained'];

/**
 * The common state of all deliveries. If they differ: `processing` while any is not final, then
 * `partially_delivered` if any was delivered, else `failed`.
 */
export function statusOf(states: DeliveryStatus[]): EmailStatus {
  if (new Set(states).size === 1) return states[0]!;
  if (states.some((state) => open.includes(state))) return 'processing';
  return states.some((state) => arrived.includes(state)) ? 'partially_delivered' : 'failed';
}

/** Nothing more is sent. A delivered mail may still bounce or be complained about. */
export function isFinal(status: DeliveryStatus): boolean {
  return !open.includes(status);
}
