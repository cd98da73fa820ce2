/**
 * The trouble of a destination by one attempt, as the operator acts on it. A pure function of the outcome, which has
 * been decided (outcome.ts). A reply about this mail or its recipient alone is not a problem of the destination.
 */
import type { Attempt } from '#platform/values/glossary.ts';

export type ProblemCause =
  /** Our address or domain is on a blocklist, or has a bad reputation. */
  | 'blocklisted'
  /** It refuses our mail, whatever its recipient and content. */
  | 'refusing'
  | 'greylisting'
  /** It asks us to slow down. */
  | 'throttled'
  /** It is silent until a time limit ends the attempt. */
  | 'hanging'
  /** No connection, or none that lasts. */
  | 'unreachable'
  /** Its name servers fail. */
  | 'dns_failing'
  /** Our own DNS resolver does not answer. */
  | 'resolver_failing'
  /** It does not offer the TLS that a policy or the sender demands, such as a valid certificate. */
  | 'tls_failing';

const byCategory: Record<string, ProblemCause> = {
  blocked: 'blocklisted',
  greylisting: 'greylisting',
  rate_limit: 'throttled',
  dns: 'dns_failing',
  tls: 'tls_failing',
  policy: 'refusing',
  auth: 'refusing',
  unavailable: 'refusing',
  other: 'refusing',
  network: 'unreachable',
  protocol: 'unreachable',
};

export function problemCause({ verdict, signal }: Attempt): ProblemCause | null {
  const { category, fault, origin, rule } = verdict;
  if (category === null || fault === 'recipient') return null;
  if (origin === 'local') return category === 'resolver' ? 'resolver_failing' : null;
  const cause = byCategory[category] ?? null;
  if (rule === 'timeout' || (rule === 'unreachable' && /timed? ?out/i.test(verdict.diagnostic)))
    return 'hanging';
  // A 421 and other 4.7.x ask us to slow down, whatever their words are about.
  return signal === 'throttled' && cause !== 'blocklisted' ? 'throttled' : cause;
}

/** Nothing there has answered, so that it may be our own network that is at fault. */
export function isSilence(cause: ProblemCause): boolean {
  return cause === 'unreachable' || cause === 'dns_failing' || cause === 'resolver_failing';
}

/** Any reply there shows that it is over. */
export function isWithoutReply(cause: ProblemCause): boolean {
  return isSilence(cause) || cause === 'hanging';
}
