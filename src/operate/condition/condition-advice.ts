/** Advice for a destination in trouble, and the command to run next. The replies that led here are not trusted. */

import { authenticationAdvice } from '#operate/explain/authentication-advice.ts';
import { blocklistAdvice } from '#operate/explain/blocklist-advice.ts';
import { capital } from '#platform/base/capital.ts';
import { shellWord } from '#platform/settings/shell-word.ts';
import type { Cause } from './causes.ts';
import type { Condition } from './condition.ts';
import type { NoWayOut } from './no-way-out.ts';

const othersAreFine = 'Other destinations are not delayed.';

const withoutWay: Record<NoWayOut['cause'], string> = {
  port: 'No connection to any mail server works. Most providers of servers block outbound connections to port 25 until they are asked: ask the provider to open it, and check the firewall.',
  resolver:
    'Without DNS no mail can be sent. Check the network, and the DNS servers in POSTERN_DNS_SERVERS or /etc/resolv.conf.',
  dns: 'The DNS resolver answers, but finds nothing. Check its own network, and POSTERN_DNS_SERVERS or /etc/resolv.conf.',
};

export const adviceWithoutWay = ({ cause }: NoWayOut) => withoutWay[cause];

const advices: Partial<Record<Cause, string | ((condition: Condition) => string)>> = {
  blocklisted: ({ evidence, state }) =>
    blocklistAdvice(
      { text: evidence ?? '', host: state?.problem?.host ?? null, senderDomain: 'that sends' },
      'Check the addresses of this server with the doctor.',
    ),
  refusing: (condition) =>
    isAuthentication(condition)
      ? authenticationAdvice(condition.evidence ?? '', 'the sender', 'with the doctor')
      : 'The reply says what the host wants. If it does not, ask its postmaster; mail that is deferred is retried until it expires.',
  greylisting: ({ severity }) =>
    severity === 'act'
      ? 'The host defers mail for longer than greylisting takes.'
      : 'Nothing to do: the host accepts mail that is retried after a while, and Postern learns how long it waits.',
  throttled:
    'Postern sends as fast as the host lets it. If it drains too slowly, send less there, stay below its limit, or ask its postmaster for a higher one.',
  storage_full:
    'The host says that its disk is full. Postern keeps trying and sends the waiting mail once there is space.',
  no_route:
    'The connection does not leave this machine. Check its routes and its firewall, for IPv6 too, and POSTERN_MTA_SOURCES.',
  hanging: `The host accepts connections and then says nothing. ${othersAreFine} Ask its postmaster if it lasts.`,
  unreachable: 'No host accepts connections. Postern keeps trying and sends the waiting mail once one does.',
  dns_failing: `Its name servers give no answer. Postern keeps trying. ${othersAreFine}`,
  resolver_failing: 'Check the network, and the DNS servers in POSTERN_DNS_SERVERS or /etc/resolv.conf.',
  no_way_out: ({ noWayOut }) => adviceWithoutWay(noWayOut!),
  tls_failing: ({ evidence }) =>
    `${tlsProblem(evidence ?? '')}, and a policy (MTA-STS, DANE) or the sender demands better, so no mail is sent. Tell its postmaster; do not weaken the demand.`,
  slow: `The host takes long for each mail. ${othersAreFine}`,
};

function isAuthentication({ cause, state }: Condition): boolean {
  return cause === 'refusing' && state?.problem?.category === 'auth';
}

/** The words are ours, not the host's. */
function tlsProblem(reason: string): string {
  if (reason.includes('has expired')) return 'The host’s certificate has expired';
  return /certificate|prove/.test(reason)
    ? 'The host has no certificate that proves its name'
    : 'The host does not offer TLS that works';
}

/** Troubles of this server, not of the destination. */
const byDoctor = new Set<Cause>(['blocklisted', 'no_route', 'resolver_failing', 'no_way_out']);

function commandFor(condition: Condition): string {
  const { cause, destination, pace } = condition;
  const name = shellWord(destination);
  if (byDoctor.has(cause) || isAuthentication(condition)) return 'postern doctor';
  if (cause === 'greylisting') return `postern queue list --destination ${name}`;
  if (cause === 'dns_failing') return `dig ${name} MX`;
  const rate = Math.floor(pace.perMinute ?? 0);
  return cause === 'throttled' && rate >= 1
    ? `postern queue slow ${name} --per-minute ${rate} --for 2h`
    : `postern queue trace ${name} --last 3`;
}

/** What a person can do when waiting alone does not help. */
const acts: Partial<Record<Cause, string>> = {
  greylisting: 'Ask its postmaster to accept mail from this server.',
  storage_full: 'Tell its postmaster, in another way than by mail.',
  unreachable:
    'Find out whether it is down for others too, and tell its postmaster in another way than by mail.',
  dns_failing: 'Tell the owner of the domain, in another way than by mail.',
};

/** Sentences, and what to run next. */
export function adviceFor(condition: Condition): { advice: string; command: string } {
  const of = advices[condition.cause]!;
  const text = typeof of === 'string' ? of : of(condition);
  const act = condition.severity === 'act' ? acts[condition.cause] : undefined;
  return { advice: [capital(text), act].filter(Boolean).join(' '), command: commandFor(condition) };
}
