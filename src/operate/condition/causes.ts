/**
 * The table of causes: what can be wrong with a destination, an organization or this server, in the order of urgency. Every
 * view names a cause by these words and no others.
 */
import type { ProblemCause } from '#mail/deliver/problem-cause.ts';

/** Whose fault it is. `message`: what is sent, or to whom. */
type Side = 'ours' | 'theirs' | 'message';

interface CauseWords {
  side: Side;
  /** In a few words. */
  label: string;
  /** A phrase that follows the destination's name; null if the cause is not a destination's trouble. */
  predicate: string | null;
  /** Follows the subject in the title of a notice; if null, `predicate` or the label does. */
  trouble: string | null;
}

const of =
  (side: Side) =>
  (label: string, predicate: string | null = null, trouble: string | null = null): CauseWords => ({
    side,
    label,
    predicate,
    trouble,
  });
const [ours, theirs, message] = [of('ours'), of('theirs'), of('message')];

const table = {
  no_server: ours('no server', null, 'is not running'),
  no_way_out: ours('no way out', 'cannot be reached, and no other server can', 'cannot reach other servers'),
  disk: ours('disk', null, 'low on disk space'),
  no_source: ours('no source', null, 'no source address'),
  blocklisted: ours('blocklisted', 'refuses us because of a blocklist or our reputation'),
  certificate: ours('certificate', null, 'trouble with its certificate'),
  credits: ours('credits', null, 'no credits left'),
  complaint_rate: message('complaints', null, 'too many complaints'),
  bounce_rate: message('bounces', null, 'too many bounces'),
  auto_pause: message('auto-pause', null, 'complaints, bounces or replies broke a rule'),
  domain_unverified: ours('domain', null, 'DKIM record missing or wrong'),
  mx_missing: ours('MX record', null, 'MX record missing, or leads elsewhere'),
  locked: ours('locked', null, 'database is locked'),
  clock: ours('clock', null, 'the clock has leapt forward'),
  no_route: ours('no route', 'cannot be reached: this machine does not let connections to it out'),
  store_full: ours('store full', null, 'no room for received mail'),
  resolver_failing: ours('no resolver', 'cannot be looked up: our DNS resolver does not answer'),
  refusing: theirs('refusing', 'refuses or defers our mail'),
  tls_failing: theirs('TLS failing', 'does not offer the TLS that is demanded'),
  dns_failing: theirs('DNS failing', 'cannot be looked up: its name servers give no answer'),
  unreachable: theirs('unreachable', 'cannot be reached'),
  hanging: theirs('hanging', 'does not answer in time'),
  storage_full: theirs('full', 'has no space for mail'),
  throttled: theirs('throttled', 'asks us to slow down'),
  webhook_failing: theirs('webhook', null, 'webhook failing'),
  backup: ours('backup', null, 'no recent backup'),
  warm_up: ours('warm-up', null, 'new address has used its allowance'),
  slow: theirs('slow', 'takes long for each mail'),
  greylisting: theirs('greylisting', 'defers mail that it has not seen before'),
  deferred: theirs('deferred'),
  // Ordered by the operator, or not a trouble.
  suspended: ours('suspended'),
  held: ours('held'),
  bounced: ours('bounced'),
  slowed: ours('slowed'),
  paused: ours('paused'),
  busy: theirs('busy'),
  ok: theirs('ok'),
} satisfies Record<string, CauseWords> & Record<ProblemCause, CauseWords>;

export type Cause = keyof typeof table;

export const causes: Record<Cause, CauseWords> = table;

export function troubleOf(cause: Cause): string {
  const { trouble, predicate, label } = causes[cause];
  return trouble ?? predicate ?? label;
}

const order = Object.keys(table) as Cause[];

/** The most urgent has the lowest. */
export function rankOf(cause: Cause): number {
  return order.indexOf(cause);
}
