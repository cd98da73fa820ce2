/** Advice for a destination in trouble, and the command to run next. The replies that led here are not trusted. */

import { authenticationAdvice } from '../explain/authentication-advice.ts';
import { blocklistAdvice } from '../explain/blocklist-advice.ts';
import type { Cause } from './causes.ts';
import type { Condition } from './condition.ts';
import type { NoWayOut } from './no-way-out.ts';
import { shellWord } from './shell-word.ts';

interface Advice {
  /** A sentence. */
  advice: string;
  /** What to run next. */
  command: string;
}

const doctor = 'postern doctor';
const toPostmaster = 'Ask its postmaster if it lasts.';
const othersAreFine = 'Other destinations are not delayed.';

/** The text; `command` if it is another one than the transcript of the last attempts. */
const advices: Partial<
  Record<Cause, (condition: Condition, name: string) => { text: string; command?: string }>
> = {
  blocklisted: ({ evidence, state }) => ({
    text: blocklistAdvice(
      { text: evidence ?? '', host: state?.problem?.host ?? null, senderDomain: 'that sends' },
      'Check the addresses of this server with the doctor.',
    ),
    command: doctor,
  }),
  refusing: ({ evidence, state }) =>
    state?.problem?.category === 'auth'
      ? { text: authenticationAdvice(evidence ?? '', 'the sender', 'with the doctor'), command: doctor }
      : {
          text: 'The reply says what the host wants. If it does not, ask its postmaster; mail that is deferred is retried until it expires.',
        },
  greylisting: (_, name) => ({
    text: 'Nothing to do: the host accepts mail that is retried after a while, and Postern learns how long it waits.',
    command: `postern queue list --destination ${name}`,
  }),
  throttled: ({ pace: { perMinute } }, name) => ({
    text: 'Postern sends as fast as the host lets it. If it drains too slowly, send less there, stay below its limit, or ask its postmaster for a higher one.',
    ...(perMinute !== null &&
      perMinute >= 1 && {
        command: `postern queue slow ${name} --per-minute ${Math.floor(perMinute)} --for 2h`,
      }),
  }),
  hanging: () => ({
    text: `The host accepts connections and then says nothing. ${othersAreFine} ${toPostmaster}`,
  }),
  unreachable: () => ({
    text: 'No host accepts connections. Postern keeps trying and sends the waiting mail once one does.',
  }),
  dns_failing: (_, name) => ({
    text: `Its name servers give no answer. Postern keeps trying. ${othersAreFine}`,
    command: `dig ${name} MX`,
  }),
  resolver_failing: () => ({
    text: 'Check the network, and the DNS servers in POSTERN_DNS_SERVERS or /etc/resolv.conf.',
    command: doctor,
  }),
  tls_failing: ({ evidence }) => ({
    text: `${tlsFault(evidence ?? '')}, and a policy (MTA-STS, DANE) or the sender demands better, so no mail is sent. Tell its postmaster; do not weaken the demand.`,
  }),
  no_way_out: ({ noWayOut }) => ({ text: withoutWay[noWayOut!.fault], command: doctor }),
  slow: () => ({ text: `The host takes long for each mail. ${othersAreFine}` }),
};

/** The words are ours, not the host's. */
function tlsFault(reason: string): string {
  if (reason.includes('has expired')) return 'The host’s certificate has expired';
  return /certificate|prove/.test(reason)
    ? 'The host has no certificate that proves its name'
    : 'The host does not offer TLS that works';
}

const withoutWay: Record<NoWayOut['fault'], string> = {
  port: 'No connection to any mail server works. Most providers of servers block outbound connections to port 25 until they are asked: ask the provider to open it, and check the firewall.',
  resolver:
    'Without DNS no mail can be sent. Check the network, and the DNS servers in POSTERN_DNS_SERVERS or /etc/resolv.conf.',
  dns: 'The DNS resolver answers, but finds nothing. Check its own network, and POSTERN_DNS_SERVERS or /etc/resolv.conf.',
};

export function adviceWithoutWay({ fault }: NoWayOut): Advice {
  return { advice: withoutWay[fault], command: doctor };
}

export function adviceFor(condition: Condition): Advice {
  const name = shellWord(condition.destination);
  const { text, command = `postern queue trace ${name} --last 3` } = advices[condition.cause]!(
    condition,
    name,
  );
  return { advice: `${text.charAt(0).toUpperCase()}${text.slice(1)}`, command };
}
