/**
 * The trouble of a destination by one attempt, as the operator acts on it. A pure function of the outcome, which has
 * been decided (outcome.ts). A reply about this mail or its recipient alone is not a problem of the destination.
 */
import { statusOf } from '#mail/deliver/reply-rules/classify.ts';
import type { Attempt, Reply } from '#platform/values/glossary.ts';

export type ProblemCause =
  /** Our address or domain is on a blocklist, or has a bad reputation. */
  | 'blocklisted'
  /** It refuses our mail, whatever its recipient and content. */
  | 'refusing'
  | 'greylisting'
  /** It asks us to slow down. */
  | 'throttled'
  /** It has no space for mail. */
  | 'storage_full'
  /** It is silent until a time limit ends the attempt. */
  | 'hanging'
  /** No connection, or none that lasts. */
  | 'unreachable'
  /** This machine or its firewall does not let the connection out. */
  | 'no_route'
  /** Its name servers fail. */
  | 'dns_failing'
  /** Our own DNS resolver does not answer. */
  | 'resolver_failing'
  /** It does not offer the TLS that a policy or the sender demands, such as a valid certificate. */
  | 'tls_failing';

/** The texts of mail/deliver/route/tcp-dial.ts for errors of this machine. */
const isOurs = /no route to its network|no address or port of ours|by this machine/;

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

/** RFC 3463: X.3.1 says that the mail system is full. Some say so in words alone. */
const isFull = (reply: Reply | null) =>
  reply !== null &&
  (statusOf(reply) === '4.3.1' || /insufficient (?:disk space|system storage)/i.test(reply.text));

export function problemCause({ verdict, signal, reply }: Attempt): ProblemCause | null {
  const { category, fault, origin, rule } = verdict;
  if (category === null || fault === 'recipient') return null;
  if (origin === 'local') return category === 'resolver' ? 'resolver_failing' : null;
  const cause = byCategory[category] ?? null;
  if (rule === 'timeout' || (rule === 'unreachable' && /timed? ?out/i.test(verdict.diagnostic)))
    return 'hanging';
  if (rule === 'unreachable' && isOurs.test(verdict.diagnostic)) return 'no_route';
  if (isFull(reply)) return 'storage_full';
  // A 421 and other 4.7.x ask us to slow down, whatever their words are about.
  return signal === 'throttled' && cause !== 'blocklisted' ? 'throttled' : cause;
}

/** The host is known, and no connection came of it. */
export function isWithoutConnection(cause: ProblemCause | null): boolean {
  return cause === 'unreachable' || cause === 'no_route';
}

/** Nothing there has answered, so that it may be our own network that is at fault. */
export function isSilence(cause: ProblemCause): boolean {
  return isWithoutConnection(cause) || cause === 'dns_failing' || cause === 'resolver_failing';
}

/** Any reply there shows that it is over. */
export function isWithoutReply(cause: ProblemCause): boolean {
  return isSilence(cause) || cause === 'hanging';
}
