/**
 * The table of causes: what can be wrong with a destination, an organization or this server, in the order of urgency. Every
 * view names a cause by these words and no others.
 */
import type { ProblemCause } from '../../record/problem-cause.ts';

/** Whose fault it is. `message`: what is sent, or to whom. */
type Side = 'ours' | 'theirs' | 'message';

interface CauseWords {
  side: Side;
  /** In a few words. */
  label: string;
  /** What the destination does, after its name. */
  is?: string;
}

const table = {
  no_server: { side: 'ours', label: 'no server' },
  no_way_out: { side: 'ours', label: 'no way out', is: 'cannot be reached, and no other server can' },
  disk: { side: 'ours', label: 'disk' },
  no_source: { side: 'ours', label: 'no source' },
  blocklisted: {
    side: 'ours',
    label: 'blocklisted',
    is: 'refuses us because of a blocklist or our reputation',
  },
  certificate: { side: 'ours', label: 'certificate' },
  complaint_rate: { side: 'message', label: 'complaints' },
  bounce_rate: { side: 'message', label: 'bounces' },
  domain_unverified: { side: 'ours', label: 'domain' },
  resolver_failing: {
    side: 'ours',
    label: 'no resolver',
    is: 'cannot be looked up: our DNS resolver does not answer',
  },
  refusing: { side: 'theirs', label: 'refusing', is: 'refuses or defers our mail' },
  tls_failing: { side: 'theirs', label: 'TLS failing', is: 'does not offer the TLS that is demanded' },
  dns_failing: {
    side: 'theirs',
    label: 'DNS failing',
    is: 'cannot be looked up: its name servers give no answer',
  },
  unreachable: { side: 'theirs', label: 'unreachable', is: 'cannot be reached' },
  hanging: { side: 'theirs', label: 'hanging', is: 'does not answer in time' },
  throttled: { side: 'theirs', label: 'throttled', is: 'asks us to slow down' },
  webhook_failing: { side: 'theirs', label: 'webhook' },
  backup: { side: 'ours', label: 'backup' },
  slow: { side: 'theirs', label: 'slow', is: 'takes long for each mail' },
  greylisting: {
    side: 'theirs',
    label: 'greylisting',
    is: 'defers mail that it has not seen before',
  },
  // By the operator's order, or not a trouble.
  suspended: { side: 'ours', label: 'suspended' },
  held: { side: 'ours', label: 'held' },
  bounced: { side: 'ours', label: 'bounced' },
  slowed: { side: 'ours', label: 'slowed' },
  paused: { side: 'ours', label: 'paused' },
  busy: { side: 'theirs', label: 'busy' },
  ok: { side: 'theirs', label: 'ok' },
} as const satisfies Record<string, CauseWords> & Record<ProblemCause, CauseWords>;

export type Cause = keyof typeof table;

export const causes: Record<Cause, CauseWords> = table;

const order = Object.keys(table) as Cause[];

/** The most urgent has the lowest. */
export function rankOf(cause: Cause): number {
  return order.indexOf(cause);
}
