/**
 * Lanes whose destination is not known yet: it is looked up, for so many domains at once and no more, that the mail of
 * a queue of unknown domains does not keep new mail from its own look-ups. Each domain is looked up once, however many
 * lanes ask meanwhile.
 */
import type { Destination } from '../mail/destination-shape.ts';
import type { Backlog } from './backlogs.ts';

const maxAtOnce = 100;

/** `resolve`: null where we stop. `found` is told of each lane; `isRetry` as it was given. */
export function createDestinationLookup(
  resolve: (domain: string) => Promise<Destination | null>,
  onFound: (destination: Destination, backlog: Backlog, isRetry: boolean) => void,
) {
  /** By domain: whose lanes wait for it, and whether as a retry. */
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
