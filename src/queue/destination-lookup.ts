/**
 * Looks up the destinations of backlogs whose destination is unknown, a bounded number at a time, so that a long queue of
 * unknown domains does not hold up the look-ups of new mail. Each domain is looked up once, however many backlogs ask
 * meanwhile.
 */
import type { Destination } from '../mail/destination-shape.ts';
import type { Backlog } from './backlogs.ts';

const maxAtOnce = 100;

/** `resolve` answers null if this node stops. `onFound` is called for each backlog, with the `isRetry` of `add`. */
export function createDestinationLookup(
  resolve: (domain: string) => Promise<Destination | null>,
  onFound: (destination: Destination, backlog: Backlog, isRetry: boolean) => void,
) {
  /** By domain, then by organization: whether the backlog was added as a retry. */
  const requests = new Map<string, Map<string, boolean>>();
  const waiting: string[] = [];
  let active = 0;

  async function lookUpWaiting(): Promise<void> {
    active += 1;
    for (let domain = waiting.shift(); domain !== undefined; domain = waiting.shift()) {
      const destination = await resolve(domain);
      const orgs = requests.get(domain)!;
      requests.delete(domain);
      if (!destination) continue;
      for (const [orgId, isRetry] of orgs) onFound(destination, { domain, orgId }, isRetry);
    }
    active -= 1;
  }

  return {
    add({ domain, orgId }: Backlog, isRetry: boolean): void {
      const orgs = requests.get(domain);
      if (orgs) {
        orgs.set(orgId, isRetry || orgs.get(orgId) === true);
        return;
      }
      requests.set(domain, new Map([[orgId, isRetry]]));
      waiting.push(domain);
      if (active < maxAtOnce) lookUpWaiting();
    },
  };
}
