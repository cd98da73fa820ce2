/**
 * The host that test mail goes to (platform/values/test-route.ts): it answers as the recipient's address asks, and opens no
 * connection. Its replies go through outcome.ts like those of a real host.
 */

import type { SessionResult } from '#mail/deliver/outcome.ts';
import type { Clock } from '#platform/base/clock.ts';
import { pause } from '#platform/base/waits.ts';
import { domainOf } from '#platform/values/address.ts';
import type { Delivery, Peer, Reply } from '#platform/values/glossary.ts';
import { testDomain } from '#platform/values/test-route.ts';
import type { Transcript } from './transcript.ts';

/** An address for documentation (RFC 5737), which nobody has. */
export const simulatedHost: Peer = { host: `mx.${testDomain}`, address: '192.0.2.25', port: 25 };

interface Behavior {
  /** The refusal; without it, the mail is accepted. */
  refusal?: Reply;
  /** Only the first attempt is refused. */
  isOnce?: boolean;
  /** The answer takes a while. */
  isSlow?: boolean;
  /** The recipient complains about the mail. */
  complains?: boolean;
}

const unknown: Behavior = { refusal: { code: 550, enhanced: '5.1.1', text: 'No such user here' } };
const complaint: Behavior = { complains: true };

/** Keyed by the local part, up to a `+`. Any other recipient accepts the mail. */
const behaviors = new Map<string, Behavior>([
  ['bounced', unknown],
  ['unknown', unknown],
  ['complained', complaint],
  ['complain', complaint],
  [
    'deferred',
    { refusal: { code: 451, enhanced: '4.3.0', text: 'Requested action aborted: error in processing' } },
  ],
  ['greylist', { refusal: { code: 451, enhanced: '4.7.1', text: 'Greylisted, try again' }, isOnce: true }],
  ['full', { refusal: { code: 552, enhanced: '5.2.2', text: 'Mailbox full' } }],
  ['slow', { isSlow: true }],
]);

const accepted: Reply = { code: 250, enhanced: '2.0.0', text: 'Test mail: kept in the inbox' };

const slowMs = 5000;

export interface SimulatedHost {
  offer(delivery: Delivery, transcript: Transcript, stopped: AbortSignal): Promise<SessionResult>;
  complains(delivery: Delivery): boolean;
}

/** `everywhere`: recipients behave as their names say at every domain, not only at the reserved one. */
export function createSimulatedHost({
  everywhere,
  clock,
}: {
  everywhere: boolean;
  clock: Clock;
}): SimulatedHost {
  function behaviorOf({ recipient }: Delivery): Behavior {
    if (!everywhere && domainOf(recipient) !== testDomain) return {};
    const name = recipient.slice(0, recipient.lastIndexOf('@')).split('+', 1)[0]!;
    return behaviors.get(name.toLowerCase()) ?? {};
  }

  return {
    async offer(delivery, transcript, stopped) {
      const { refusal, isOnce, isSlow } = behaviorOf(delivery);
      transcript.add('note', 'test mail: nothing is sent, a simulated host answers');
      transcript.add('client', `RCPT TO:<${delivery.recipient}>`);
      if (isSlow) await pause(clock, slowMs, stopped);
      const isRefused = refusal !== undefined && !(isOnce && delivery.attempts > 0);
      const reply = isRefused ? refusal : accepted;
      transcript.add('server', `${reply.code} ${reply.enhanced} ${reply.text}`);
      return isRefused ? { kind: 'refused', phase: 'rcpt', reply } : { kind: 'accepted', reply };
    },
    complains: (delivery) => behaviorOf(delivery).complains === true,
  };
}
