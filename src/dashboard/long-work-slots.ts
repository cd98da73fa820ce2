/** Limits slow or memory-hungry work per organization, so that the rest of the dashboard stays fast. */
import { type CallSlots, createCallSlots } from '../api/server-busy.ts';

export interface LongWorkSlots {
  /** A DNS check may take several seconds. */
  dnsChecks: CallSlots;
  /** A webhook test may take 15 seconds. */
  tests: CallSlots;
  replays: CallSlots;
  /** Each holds a page of the list in memory. */
  exports: CallSlots;
}

export function createLongWorkSlots(): LongWorkSlots {
  return {
    dnsChecks: createCallSlots(4),
    tests: createCallSlots(4),
    replays: createCallSlots(1),
    exports: createCallSlots(4),
  };
}
