/**
 * The MTA-STS policies (RFC 8461) of the sender domains that are verified here, for their hosts `mta-sts.DOMAIN`. The policy
 * names the domain's MX hosts as DNS has them now. It is `enforce` only if all of them are hosts of this server, whose
 * certificates we know; of others we cannot know whether their certificates verify, and a wrong `enforce` would keep the
 * domain's mail away, so it is `testing`, for which senders report failures and deliver anyway.
 */
import { LRUCache } from 'lru-cache';
import { lruOptions } from '#platform/base/bounded-cache.ts';
import { type Resolve, recordsOf } from '#platform/base/net/resolve.ts';
import { asHostName } from '#platform/values/host-name.ts';

/** `text` is null if the domain has no policy here. `isKnown` is false if the database or DNS gave no answer. */
type Policy = { isKnown: true; text: string | null } | { isKnown: false };

export type PolicyOf = (domain: string) => Promise<Policy>;

/** Seconds. Short, because the owner may change the MX records without a thought of us. */
const maxAge = 86_400;

const cacheMs = 60_000;

export function createPolicies(parts: {
  resolve: Resolve;
  isVerified(domain: string): Promise<boolean>;
  /** One of the operator's hosts, with a certificate. */
  isOurs(host: string): boolean;
}): PolicyOf {
  const { resolve, isVerified, isOurs } = parts;
  const make = async (domain: string): Promise<Policy> => {
    try {
      if (!(await isVerified(domain))) return { isKnown: true, text: null };
      const records = await recordsOf<{ exchange: string }>(domain, 'MX', resolve);
      // A null MX (RFC 7505) is not a host name.
      const hosts = records.map(({ exchange }) => asHostName(exchange)).filter((host) => host !== null);
      return { isKnown: true, text: policyText(hosts, hosts.every(isOurs) ? 'enforce' : 'testing') };
    } catch {
      return { isKnown: false };
    }
  };
  const cache = new LRUCache<string, Policy>({ ...lruOptions(1_000), ttl: cacheMs, fetchMethod: make });
  return async (domain) => (await cache.fetch(domain))!;
}

/** RFC 8461 section 3.2. */
function policyText(hosts: string[], mode: 'enforce' | 'testing' | 'none'): string {
  const named = [...new Set(hosts)].sort();
  const lines = ['version: STSv1', `mode: ${named.length === 0 ? 'none' : mode}`];
  return [...lines, ...named.map((host) => `mx: ${host}`), `max_age: ${maxAge}`, ''].join('\r\n');
}
