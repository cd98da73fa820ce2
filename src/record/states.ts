/** The states of deliveries, and an email's, which follows from its deliveries' (docs/design.md section 3). */
import type { DeliveryStatus } from '../glossary.ts';

/** What an email is called whose recipients have come to different ends. */
export const mixedStates = ['processing', 'partially_delivered', 'failed'] as const;

export type EmailStatus = DeliveryStatus | (typeof mixedStates)[number];

const moving: DeliveryStatus[] = ['queued', 'sending', 'deferred', 'held'];
const arrived: DeliveryStatus[] = ['delivered', 'complained'];

/**
 * An email's status is its recipients' common state; where they differ, `processing` while any is not final, then
 * `partially_delivered` if any was delivered, else `failed`.
 */
export function statusOf(states: DeliveryStatus[]): EmailStatus {
  if (new Set(states).size === 1) return states[0]!;
  if (states.some((state) => moving.includes(state))) return 'processing';
  return states.some((state) => arrived.includes(state)) ? 'partially_delivered' : 'failed';
}

/** Nothing more is sent; a delivered mail may still come back, or be complained of. */
export function isFinal(status: DeliveryStatus): boolean {
  return !moving.includes(status);
}
