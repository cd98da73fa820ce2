/**
 * MTA-STS (RFC 8461): applies a domain's policy to its mail hosts. The id of the policy is looked up in DNS; if it differs
 * from the id of the stored policy, the policy is fetched by HTTPS. It is stored for as long as it says, across restarts. If
 * no newer policy can be found or fetched, the stored one stays valid (section 3.3), because otherwise an attacker could
 * disable it by disturbing the look-up.
 *
 * mailauth parses the record and the policy and matches host names. Never rejects.
 *
 * BUGS: DNS is not signed, so an attacker who is present before the first mail to a domain can hide its policy from us
 * (section 10.1).
 */

import { LRUCache } from 'lru-cache';
import { lruOptions } from '#platform/base/bounded-cache.ts';
import { type Clock, isRecent } from '#platform/base/clock.ts';
import type { Resolve } from '#platform/base/net/resolve.ts';
import type { PersistentCache } from '#platform/base/persistent-cache.ts';
import { withTimeout } from '#platform/base/waits.ts';
import {
  type MtaStsPolicy,
  parsePolicy,
  resolvePolicy,
  validateMx,
} from '#platform/vendor/mailauth-mta-sts.ts';
import type { DaneFinding } from './dane-records.ts';
import type { FetchPolicy } from './fetch-mta-sts.ts';

/** A policy as it is stored, by domain. */
export interface StoredPolicy extends MtaStsPolicy {
  /** From the DNS record. */
  id: string;
  fetchedAt: number;
  /** Seconds; absent in policies that were stored up to version 0.7. */
  maxAge?: number;
}

/** The valid policy, if any, and the reason why there is none or no newer one, for the operator. */
interface Known {
  policy: StoredPolicy | null;
  reason: string | null;
}

/** Resolves to a function that applies the domain's policy to a host name. */
export type Sts = (domain: string) => Promise<(host: string) => DaneFinding>;

export interface StsParts {
  resolve: Resolve;
  fetchPolicy: FetchPolicy;
  policies: PersistentCache<StoredPolicy>;
  clock: Clock;
  /** How long a mail waits for a policy. The look-up continues after that, for later mails. */
  timeoutMs?: number;
}

/** RFC 8461 section 3.3: after a failure, "five minutes or longer per version ID". */
const retryMs = 5 * 60_000;

/** A valid policy is fetched again once a day, so that it does not expire (section 3.3). */
const refreshMs = 24 * 3600_000;

export function createSts(parts: StsParts): Sts {
  const { policies, clock, timeoutMs = 5000 } = parts;
  const fetching = new Map<string, Promise<Known>>();
  const failures = new LRUCache<string, { at: number; reason: string }>(lruOptions(10_000));

  return async (domain) => {
    const late = { policy: await readStored(domain), reason: 'its MTA-STS policy did not come in time' };
    const known = await withTimeout(timeoutMs, newest(domain), () => late);
    return (host) => findingOf(host, known);
  };

  function readStored(domain: string): Promise<StoredPolicy | null> {
    return policies.get(domain).catch(() => null);
  }

  async function newest(domain: string): Promise<Known> {
    const id = await resolvePolicy(domain, { resolver: parts.resolve, strict: true }).catch(
      () => false as const,
    );
    const stored = await readStored(domain);
    if (id === false) return { policy: stored, reason: null };
    if (stored?.id !== id) {
      const fetched = await fetchOnce(domain, id);
      return { ...fetched, policy: fetched.policy ?? stored };
    }
    if (!isRecent(stored.fetchedAt, clock.now(), refreshMs)) void fetchOnce(domain, id);
    return { policy: stored, reason: null };
  }

  /** Concurrent fetches of one policy are shared. A failed fetch is not repeated for `retryMs`. */
  function fetchOnce(domain: string, id: string): Promise<Known> {
    const key = `${domain} ${id}`;
    const failure = failures.get(key);
    if (failure && isRecent(failure.at, clock.now(), retryMs)) {
      return Promise.resolve({ policy: null, reason: failure.reason });
    }
    let inFlight = fetching.get(key);
    if (!inFlight) {
      inFlight = fetchAndKeep(domain, id)
        .catch((error: Error) => {
          const reason = `its MTA-STS policy could not be fetched: ${error.message}`;
          failures.set(key, { at: clock.now(), reason });
          return { policy: null, reason };
        })
        .finally(() => fetching.delete(key));
      fetching.set(key, inFlight);
    }
    return inFlight;
  }

  async function fetchAndKeep(domain: string, id: string): Promise<Known> {
    const text = await parts.fetchPolicy(domain);
    const { mode, mx = [], maxAge } = parsePolicy(text, { strict: true });
    const policy = { id, mode, mx, fetchedAt: clock.now(), maxAge };
    // If it cannot be stored, it still applies to this mail.
    await policies.set(domain, policy, maxAge * 1000).catch(() => {});
    return { policy, reason: null };
  }
}

/** RFC 8461 section 5: with `enforce`, a host that does not match must not be used; with `testing`, there is only a note. */
function findingOf(host: string, { policy, reason }: Known): DaneFinding {
  if (policy === null && reason !== null) {
    return { tls: { policy: 'opportunistic', note: reason, stsProblem: reason } };
  }
  if (policy === null || policy.mode === 'none') return opportunistic(reason);
  const { valid } = validateMx(host, policy);
  const mismatch = `${host} is not among the hosts of the domain's MTA-STS policy (${policy.mx.join(', ')})`;
  const sts = { text: linesOf(policy), isNamed: valid };
  if (policy.mode === 'testing') {
    const { tls } = opportunistic(
      valid
        ? 'an MTA-STS policy in testing mode; enforced, it would demand a valid certificate'
        : `an MTA-STS policy in testing mode; enforced, it would forbid this host: ${mismatch}`,
    );
    return { tls: { ...tls, sts } };
  }
  if (valid) return { tls: { policy: 'mta-sts', sts } };
  return { tls: { policy: 'mta-sts', sts }, result: { kind: 'tls-required', detail: mismatch } };
}

function linesOf({ mode, mx, maxAge }: StoredPolicy): string[] {
  const age = maxAge === undefined ? [] : [`max_age: ${maxAge}`];
  return ['version: STSv1', `mode: ${mode}`, ...mx.map((host) => `mx: ${host}`), ...age];
}

function opportunistic(note: string | null): DaneFinding {
  return { tls: note === null ? { policy: 'opportunistic' } : { policy: 'opportunistic', note } };
}
