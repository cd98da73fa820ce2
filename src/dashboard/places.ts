/** What takes long, or much memory: so many at once for each organization, so that the rest of the dashboard goes on. */
import { type Places, placesEach } from '../api/server-busy.ts';

export interface LongWork {
  /** DNS may take some seconds. */
  looks: Places;
  /** An endpoint may take 15 seconds. */
  tests: Places;
  replays: Places;
  /** Each holds a page of a list. */
  exports: Places;
}

export function createLongWork(): LongWork {
  return { looks: placesEach(4), tests: placesEach(4), replays: placesEach(1), exports: placesEach(4) };
}
