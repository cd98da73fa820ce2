/**
 * Bounds how many fetches of an organization run at once. A send takes all its places together, so that it does not wait
 * for another send once it has begun. First come, first served.
 */

interface Waiting {
  count: number;
  begin(): void;
}

interface Organization {
  taken: number;
  waiting: Waiting[];
}

/** Resolves to the function that gives the places back, or rejects with the reason of `signal`. */
export type TakePlaces = (orgId: string, count: number, signal: AbortSignal) => Promise<() => void>;

export function createFetchPlaces(max: number): TakePlaces {
  const organizations = new Map<string, Organization>();

  function beginWaiting(orgId: string, organization: Organization): void {
    const { waiting } = organization;
    while (waiting.length > 0 && organization.taken + waiting[0]!.count <= max) {
      const next = waiting.shift()!;
      organization.taken += next.count;
      next.begin();
    }
    if (organization.taken === 0) organizations.delete(orgId);
  }

  return async (orgId, count, signal) => {
    signal.throwIfAborted();
    const organization = organizations.get(orgId) ?? { taken: 0, waiting: [] };
    organizations.set(orgId, organization);
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    const own = { count, begin: resolve };
    const stop = () => {
      organization.waiting = organization.waiting.filter((one) => one !== own);
      reject(signal.reason);
      // The first that waits may have been too large for the places that are free.
      beginWaiting(orgId, organization);
    };
    signal.addEventListener('abort', stop);
    organization.waiting.push(own);
    beginWaiting(orgId, organization);
    await promise.finally(() => signal.removeEventListener('abort', stop));
    return () => {
      organization.taken -= count;
      beginWaiting(orgId, organization);
    };
  };
}
