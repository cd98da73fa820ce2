/** What takes long, or much memory: so many at once for each organization, so that the rest of the dashboard goes on. */
import { createSlotsPerOrganization, type SlotsPerOrganization } from '../api/server-busy.ts';

export interface LongWorkSlots {
  /** DNS may take some seconds. */
  dnsChecks: SlotsPerOrganization;
  /** An endpoint may take 15 seconds. */
  tests: SlotsPerOrganization;
  replays: SlotsPerOrganization;
  /** Each holds a page of a list. */
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
