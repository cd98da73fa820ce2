/** Limits slow or memory-hungry work per organization, so that the rest of the dashboard stays fast. */
import { CallSlots } from '#front/http/server-busy.ts';

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
    dnsChecks: new CallSlots({ ofOne: 4 }),
    tests: new CallSlots({ ofOne: 4 }),
    replays: new CallSlots({ ofOne: 1 }),
    exports: new CallSlots({ ofOne: 4 }),
  };
}
