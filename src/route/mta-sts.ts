/**
 * MTA-STS (RFC 8461): what a domain's policy says about its mail hosts. The policy is asked for by DNS (its id) and
 * fetched by HTTPS when the id is not the one that is remembered; it is remembered for as long as it says, over
 * restarts too. A remembered policy holds where nothing newer can be had, whatever the reason (section 3.3): else who
 * can disturb the look-up could switch it off. A domain without one is as any other.
 *
 * The grammar of the record and of the policy, and the matching of host names, are mailauth's. Never rejects.
 *
 * BUGS: the record's id is no secret and DNS is not signed: an attacker who is there before the first mail to a domain
 * can keep its policy from us, as the RFC says (section 10.1).
 */
import { LRUCache } from 'lru-cache';
import type { Clock } from '../base/clock.ts';
import { lruOptions } from '../base/lru-options.ts';
import type { PersistentCache } from '../base/persistent-cache.ts';
import { withTimeout } from '../base/with-timeout.ts';
import { type MtaStsPolicy, parsePolicy, resolvePolicy, validateMx } from '../vendor/mailauth-mta-sts.ts';
import type { DaneFinding } from './dane-records.ts';
import type { FetchPolicy } from './fetch-mta-sts.ts';
import type { Resolve } from './resolver.ts';

/** A policy as it is remembered, by its domain. */
export interface StoredPolicy extends MtaStsPolicy {
  /** Of the record that announced it. */
  id: string;
  fetchedAt: number;
}

/** What is known: the policy that holds, if any; why there is none or no newer one, if that is worth a word. */
interface Known {
  policy: StoredPolicy | null;
  trouble: string | null;
}

/** What the domain's policy says of the host of that name. */
export type Sts = (domain: string) => Promise<(host: string) => DaneFinding>;

export interface StsParts {
  resolve: Resolve;
  fetchPolicy: FetchPolicy;
  policies: PersistentCache<StoredPolicy>;
  clock: Clock;
  /** How long a mail waits for a policy; the look-up goes on after that, for the mails to come. */
  timeoutMs?: number;
}

/** RFC 8461 section 3.3: after a failure, "five minutes or longer per version ID". */
const retryMs = 5 * 60_000;

/** A policy in use is fetched anew once a day, so that it does not lapse (section 3.3). */
const refreshMs = 24 * 3600_000;

export function createSts(parts: StsParts): Sts {
  const { policies, clock, timeoutMs = 5000 } = parts;
  const fetching = new Map<string, Promise<Known>>();
  const failures = new LRUCache<string, { at: number; trouble: string }>(lruOptions(10_000));

  return async (domain) => {
    const late = { policy: await recall(domain), trouble: 'its MTA-STS policy did not come in time' };
    const known = await withTimeout(timeoutMs, newest(domain), () => late);
    return (host) => findingOf(host, known);
  };

  function recall(domain: string): Promise<StoredPolicy | null> {
    return policies.get(domain).catch(() => null);
  }

  async function newest(domain: string): Promise<Known> {
    const id = await resolvePolicy(domain, { resolver: parts.resolve, strict: true }).catch(
      () => false as const,
    );
    const remembered = await recall(domain);
    if (id === false) return { policy: remembered, trouble: null };
    if (remembered?.id !== id) {
      const fetched = await fetchOnce(domain, id);
      return { ...fetched, policy: fetched.policy ?? remembered };
    }
    if (clock.now() - remembered.fetchedAt >= refreshMs) void fetchOnce(domain, id);
    return { policy: remembered, trouble: null };
  }

  /** Fetches of one policy under way are shared; one that failed is not repeated for a while. */
  function fetchOnce(domain: string, id: string): Promise<Known> {
    const key = `${domain} ${id}`;
    const failure = failures.get(key);
    if (failure && clock.now() - failure.at < retryMs) {
      return Promise.resolve({ policy: null, trouble: failure.trouble });
    }
    let inFlight = fetching.get(key);
    if (!inFlight) {
      inFlight = fetchAndKeep(domain, id)
        .catch((error: Error) => {
          const trouble = `its MTA-STS policy could not be fetched: ${error.message}`;
          failures.set(key, { at: clock.now(), trouble });
          return { policy: null, trouble };
        })
        .finally(() => fetching.delete(key));
      fetching.set(key, inFlight);
    }
    return inFlight;
  }

  async function fetchAndKeep(domain: string, id: string): Promise<Known> {
    const text = await parts.fetchPolicy(domain);
    const { mode, mx = [], maxAge } = parsePolicy(text, { strict: true });
    const policy = { id, mode, mx, fetchedAt: clock.now() };
    // Where it cannot be kept it still holds for this mail.
    await policies.set(domain, policy, maxAge * 1000).catch(() => {});
    return { policy, trouble: null };
  }
}

/** RFC 8461 section 5: under `enforce` a host that does not match must not be used; `testing` only tells. */
function findingOf(host: string, { policy, trouble }: Known): DaneFinding {
  if (policy === null || policy.mode === 'none') return opportunistic(trouble);
  const { valid } = validateMx(host, policy);
  const mismatch = `${host} is not among the hosts of the domain's MTA-STS policy (${policy.mx.join(', ')})`;
  if (policy.mode === 'testing') {
    return opportunistic(
      valid
        ? 'an MTA-STS policy in testing mode; enforced, it would demand a valid certificate'
        : `an MTA-STS policy in testing mode; enforced, it would forbid this host: ${mismatch}`,
    );
  }
  if (valid) return { tls: { policy: 'mta-sts' } };
  return { tls: { policy: 'mta-sts' }, result: { kind: 'tls-required', detail: mismatch } };
}

function opportunistic(note: string | null): DaneFinding {
  return { tls: note === null ? { policy: 'opportunistic' } : { policy: 'opportunistic', note } };
}
