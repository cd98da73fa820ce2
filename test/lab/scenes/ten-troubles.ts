/**
 * A world with ten destinations at once: one is well, and nine are in trouble, each in a way of its own. Time is real, so that
 * the command line sees the same times as the server, or that of a test's clock, which the command line is then given too.
 */
import { readFileSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import { getCACertificates, setDefaultCACertificates } from 'node:tls';
import type { ExecutionContext } from 'ava';
import { type Clock, systemClock } from '#platform/base/clock.ts';
import type { ManualClock } from '../clock.ts';
import type { MxOptions } from '../mx/mx.ts';
import { policy, startPolicyHost, trustAuthority } from '../mx/policy-host.ts';
import { until } from '../until.ts';
import { startWorld } from './world.ts';

const fixture = (name: string) => readFileSync(new URL(`../../fixtures/tls/${name}.pem`, import.meta.url));

const blockedReply =
  '554 5.7.1 Service unavailable; Client host [203.0.113.7] blocked using zen.spamhaus.org; https://check.spamhaus.org/';

/** Longer than what `status` calls slow. */
const slowMs = 6_000;
const slowCount = 5;
const perMinute = 12;

/** By the first label of the domain; `there` must be mx1.invalid, the name in its expired certificate. */
const exchangersAt = (clock: Clock, end: Promise<void>): Record<string, MxOptions> => ({
  there: { pem: fixture('expired') },
  good: {},
  slow: { script: { dot: slowly(end) } },
  grey: { script: { rcpt: () => '451 4.7.1 Greylisted, please try again in 5 minutes' } },
  limited: { script: { mail: rateLimit(clock) } },
  blocked: { script: { rcpt: () => blockedReply } },
  refusing: { script: { greeting: () => '554 5.7.1 mx7.invalid accepts no mail from your network' } },
  hanging: { script: { greeting: () => 'hang' } },
});

/** Some are taken, and the others are waited for until the end, so that it is slow for as long as anybody looks. */
function slowly(end: Promise<void>) {
  let count = 0;
  return async () => {
    count += 1;
    await (count <= slowCount ? sleep(slowMs, undefined, { ref: false }) : end);
    return undefined;
  };
}

/** The first mails of each minute pass. */
function rateLimit(clock: Clock) {
  let [minute, count] = [0, 0];
  return () => {
    const now = Math.floor(clock.now() / 60_000);
    if (now !== minute) [minute, count] = [now, 0];
    count += 1;
    return count <= perMinute ? undefined : '421 4.7.28 Our system has detected an unusual rate of mail';
  };
}

/** Addresses of no exchanger: nothing listens there. */
const nowhere = '127.0.0.99';

export async function startTenTroubles(t: ExecutionContext, clock: Clock = systemClock) {
  trustAuthority();
  setDefaultCACertificates([...getCACertificates('default'), fixture('ca').toString()]);
  const policyHost = await startPolicyHost({ 'there.invalid': policy('enforce', ['mx1.invalid']) });
  t.teardown(policyHost.close);
  const end = Promise.withResolvers<void>();
  const exchangers = exchangersAt(clock, end.promise);
  const names = Object.keys(exchangers);
  const world = await startWorld(t, {
    exchangers: Object.values(exchangers),
    overrides: { policyPort: policyHost.port, clock },
    settings: { POSTERN_MTA_TIMEOUTS: 'connect=3s greeting=3s' },
    zone: {
      ...Object.fromEntries(names.map((name, at) => [`${name}.invalid`, { MX: [`10 mx${at + 1}.invalid`] }])),
      'gone.invalid': { MX: ['10 mx.gone.invalid'] },
      'mx.gone.invalid': { A: [nowhere] },
      'servfail.invalid': 'SERVFAIL',
      '_mta-sts.there.invalid': { TXT: ['v=STSv1; id=1;'] },
      'mta-sts.there.invalid': { A: [policyHost.host] },
    },
  });
  t.teardown(() => end.resolve());
  const untilOn = 'passUntil' in clock ? (clock as ManualClock).passUntil : until;
  // The first mails may go before the policy has come.
  await untilOn(async () => {
    const { body } = await world.send({ to: 'first@there.invalid' });
    const isOver = ({ status }: { status: string }) => status !== 'queued' && status !== 'sending';
    const email = await untilOn(async () => {
      const now = await world.get(body.emailId);
      return isOver(now) && now;
    });
    return email.status === 'deferred';
  });
  const domains = [...names, 'gone', 'servfail'];
  const mails = domains.flatMap((name) =>
    Array.from({ length: name === 'limited' || name === 'slow' ? 60 : 8 }, (_, at) => ({
      to: `${at}@${name}.invalid`,
      subject: `${at}`,
    })),
  );
  await Promise.all(mails.map((mail) => world.send(mail)));
  return { ...world, letGo: end.resolve };
}
