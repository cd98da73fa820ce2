/** What is wrong at a destination, in words for each cause (record/problem-cause.ts). Text from other hosts is only quoted. */
import type { DestinationProblem } from '../../db/queue/destination-status-rows.ts';
import type { ProblemCause } from '../../record/problem-cause.ts';

/** `label`: before "since"; `is`: what the destination does, after its name. */
export const problemWords: Record<ProblemCause, { label: string; is: string }> = {
  blocklisted: { label: 'blocklisted', is: 'refuses us because of a blocklist or our reputation' },
  refusing: { label: 'refusing', is: 'refuses or defers our mail' },
  greylisting: { label: 'greylisting', is: 'defers mail that it has not seen before' },
  throttled: { label: 'throttled', is: 'asks us to slow down' },
  hanging: { label: 'hanging', is: 'does not answer in time' },
  unreachable: { label: 'unreachable', is: 'cannot be reached' },
  dns_failing: { label: 'DNS failing', is: 'cannot be looked up in DNS' },
  tls_failing: { label: 'TLS failing', is: 'does not offer the TLS that is demanded' },
};

export function problemText(
  { cause, since, reply }: DestinationProblem,
  destination: string,
  when: (time: number) => string,
): string {
  return `${destination} ${problemWords[cause].is}, since ${when(since)} ("${reply}").`;
}
