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
  found: (destination: Destination, lane: Backlog, isRetry: boolean) => void,
) {
  /** By domain: whose lanes wait for it, and whether as a retry. */
  const wanted = new Map<string, Map<string, boolean>>();
  const waiting: string[] = [];
  let busy = 0;

  async function look(): Promise<void> {
    busy += 1;
    for (let domain = waiting.shift(); domain !== undefined; domain = waiting.shift()) {
      const destination = await resolve(domain);
      const lanes = wanted.get(domain)!;
      wanted.delete(domain);
      if (!destination) continue;
      for (const [orgId, isRetry] of lanes) found(destination, { domain, orgId }, isRetry);
    }
    busy -= 1;
  }

  return {
    add({ domain, orgId }: Backlog, isRetry: boolean): void {
      const lanes = wanted.get(domain);
      if (lanes) {
        lanes.set(orgId, isRetry || lanes.get(orgId) === true);
        return;
      }
      wanted.set(domain, new Map([[orgId, isRetry]]));
      waiting.push(domain);
      if (busy < maxAtOnce) look();
    },
  };
}
