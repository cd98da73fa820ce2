/** When a certificate is renewed, and when a host or the authority is tried again after a failure. Pure rules. */

const [minute, hour, day] = [60_000, 3_600_000, 86_400_000];

export interface Validity {
  notBefore: number;
  notAfter: number;
}

/** The time that the authority suggests (RFC 9773 section 4.2). */
export interface RenewalWindow {
  start: number;
  end: number;
  /** When to ask for it again. */
  retryAfterMs: number | null;
}

/** A certificate of less than ten days is renewed at half of its life, as Let's Encrypt recommends, any other at two thirds. */
function usualRenewal({ notBefore, notAfter }: Validity, random: () => number): number {
  const life = notAfter - notBefore;
  const share = life < 10 * day ? 1 / 2 : 2 / 3;
  // Hosts that were certified together need not be renewed together.
  return Math.round(notBefore + life * (share - random() / 20));
}

/** However late the authority's window is, there is time left for some failures. */
const latestShare = 0.9;

/**
 * When to renew; and when to look at the certificate again, if that is sooner. Without a window (null) by its validity alone.
 * RFC 9773 section 4.3 bounds the time between two looks at the window.
 */
export function renewalTimes(
  validity: Validity,
  window: RenewalWindow | null,
  { now, random }: { now: number; random: () => number },
): { renewAt: number; lookAt: number } {
  if (window === null) {
    const renewAt = usualRenewal(validity, random);
    return { renewAt, lookAt: renewAt };
  }
  const { notBefore, notAfter } = validity;
  const latest = notBefore + (notAfter - notBefore) * latestShare;
  const chosen = window.start + random() * (window.end - window.start);
  const renewAt = Math.round(Math.min(chosen, latest));
  const nextLook = now + Math.min(Math.max(window.retryAfterMs ?? 6 * hour, hour), day);
  return { renewAt, lookAt: Math.min(Math.max(renewAt, now + minute), nextLook) };
}

/** Doubles from `first` up to `most`, a fifth earlier or later. `failures`: from 1. */
function doubled(failures: number, first: number, most: number, random: () => number): number {
  return Math.round(Math.min(first * 2 ** Math.min(failures - 1, 20), most) * (0.8 + random() * 0.4));
}

/** After the authority has refused a host. Let's Encrypt allows five failed checks of a host an hour. */
export const afterRefusal = (failures: number, random: () => number) =>
  doubled(failures, 15 * minute, day, random);

/** After our own look at a host's DNS, which takes nothing of the authority's limits. */
export const afterLook = (failures: number, isOptional: boolean, random: () => number) =>
  doubled(failures, minute, isOptional ? 6 * hour : hour, random);

/** After the authority itself has failed or limited us: a pause for all hosts and nodes. */
export const afterOutage = (pauses: number, random: () => number) => doubled(pauses, minute, hour, random);

/** The longest that a Retry-After can make us wait. */
export const maxRetryAfterMs = 7 * day;
