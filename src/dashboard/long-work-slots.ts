/** Limits slow or memory-hungry work per organization, so that the rest of the dashboard stays fast. */
import { createSlotsPerOrganization, type SlotsPerOrganization } from '../api/server-busy.ts';

export interface LongWorkSlots {
  /** A DNS check may take several seconds. */
  dnsChecks: SlotsPerOrganization;
  /** A webhook test may take 15 seconds. */
  tests: SlotsPerOrganization;
  replays: SlotsPerOrganization;
  /** Each holds a page of the list in memory. */
  exports: SlotsPerOrganization;
}

export function createLongWorkSlots(): LongWorkSlots {
  return {
    dnsChecks: createSlotsPerOrganization(4),
    tests: createSlotsPerOrganization(4),
    replays: createSlotsPerOrganization(1),
    exports: createSlotsPerOrganization(4),
  };
}
