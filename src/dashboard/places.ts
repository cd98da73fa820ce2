/** What takes long, or much memory: so many at once for each organization, so that the rest of the dashboard goes on. */
import { createSlotsPerOrganization, type SlotsPerOrganization } from '../api/server-busy.ts';

export interface LongWork {
  /** DNS may take some seconds. */
  looks: SlotsPerOrganization;
  /** An endpoint may take 15 seconds. */
  tests: SlotsPerOrganization;
  replays: SlotsPerOrganization;
  /** Each holds a page of a list. */
  exports: SlotsPerOrganization;
}

export function createLongWork(): LongWork {
  return {
    looks: createSlotsPerOrganization(4),
    tests: createSlotsPerOrganization(4),
    replays: createSlotsPerOrganization(1),
    exports: createSlotsPerOrganization(4),
  };
}
