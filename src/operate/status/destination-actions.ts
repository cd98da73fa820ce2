/** Advice for each kind of trouble at a destination, and the command to run next. The replies that led here are not trusted. */
import { authenticationAdvice } from '../explain/authentication-advice.ts';
import { blocklistAdvice } from '../explain/blocklist-advice.ts';
import type { Trouble } from './destination-trouble.ts';
import { type Need, type NeedCause, shellWord, type Traffic } from './need.ts';

type Action = Pick<Need, 'advice' | 'command'>;
type ActionOf = (trouble: Trouble, traffic: Traffic, name: string) => Action;

const trace = (name: string) => `postern queue trace ${name} --last 3`;

const actions: Partial<Record<NeedCause, ActionOf>> = {
  blocklisted: ({ reply, state }) => ({
    advice: capital(
      blocklistAdvice(
        { text: reply ?? '', host: state.problem?.host ?? null, senderDomain: 'that sends' },
        'Check the addresses of this server with the doctor.',
      ),
    ),
    command: 'postern doctor',
  }),
  refusing: ({ reply, state }, _, name) => {
    const isAuth = state.problem?.category === 'auth';
    const advice = authenticationAdvice(reply ?? '', 'the sender', 'with the doctor');
    return isAuth
      ? { advice: capital(advice), command: 'postern doctor' }
      : {
          advice:
            'The reply says what the host wants. If it does not, ask its postmaster; mail that is deferred is retried until it expires.',
          command: trace(name),
        };
  },
  greylisting: (_, __, name) => ({
    advice:
      'Nothing to do: the host accepts mail that is retried after a while, and Postern learns how long it waits.',
    command: `postern queue list --destination ${name}`,
  }),
  throttled: (_, { perMinute }, name) => ({
    advice:
      'Postern sends as fast as the host lets it. If it drains too slowly, send less there, stay below its limit, or ask its postmaster for a higher one.',
    command:
      perMinute === null || perMinute < 1
        ? trace(name)
        : `postern queue slow ${name} --per-minute ${Math.floor(perMinute)} --for 2h`,
  }),
  hanging: (_, __, name) => ({
    advice:
      'The host accepts connections, or drops them, and then says nothing. Other destinations are not delayed. Ask its postmaster if it lasts.',
    command: trace(name),
  }),
  unreachable: unreachable(),
  circuit_open: unreachable(),
  dns_failing: (_, __, name) => ({
    advice:
      'Its name servers give no answer. If other domains fail too, check your own resolver (POSTERN_DNS_SERVERS).',
    command: `dig ${name} MX`,
  }),
  tls_failing: ({ reply }, _, name) => ({
    advice: `${tlsFault(reply ?? '')}, and a policy (MTA-STS, DANE) or the sender demands better, so no mail is sent. Tell its postmaster; do not weaken the demand.`,
    command: trace(name),
  }),
  slow: (_, __, name) => ({
    advice: 'The host takes long for each mail. Other destinations are not delayed.',
    command: trace(name),
  }),
};

function unreachable(): ActionOf {
  return (_, __, name) => ({
    advice:
      'No host there takes a connection. Postern probes by itself, and sends what waits as soon as one answers.',
    command: trace(name),
  });
}

/** The words are Node's and ours, not the host's. */
function tlsFault(reason: string): string {
  if (reason.includes('CERT_HAS_EXPIRED')) return 'The host’s certificate has expired';
  return /certificate|prove/.test(reason)
    ? 'The host has no certificate that proves its name'
    : 'The host does not offer TLS that works';
}

export function actionFor(trouble: Trouble, traffic: Traffic): Action {
  return actions[trouble.cause]!(trouble, traffic, shellWord(trouble.destination));
}

function capital(text: string): string {
  return `${text.charAt(0).toUpperCase()}${text.slice(1)}`;
}
