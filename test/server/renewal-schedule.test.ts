/** When a certificate is renewed, and when a failure is tried again: the rules, without a server. */
import test from 'ava';
import fc from 'fast-check';
import {
  afterLook,
  afterOutage,
  afterRefusal,
  renewalTimes,
} from '#operate/certificates/renewal-schedule.ts';
import { customerHosts, maxHostsOfOrganization, ownHosts } from '#operate/certificates/wanted-hosts.ts';

const [minute, hour, day] = [60_000, 3_600_000, 86_400_000];
const middle = () => 0.5;
const ninety = { notBefore: 0, notAfter: 90 * day };

test('without a suggestion a certificate is renewed at two thirds of its life, a short one at half', (t) => {
  const at = (random: () => number, validity = ninety) => renewalTimes(validity, null, { now: 0, random });
  t.is(at(() => 0).renewAt, 60 * day);
  t.is(at(() => 1).renewAt, 55.5 * day, 'up to a twentieth earlier');
  t.is(at(() => 0, { notBefore: 0, notAfter: 6 * day }).renewAt, 3 * day);
  t.is(at(middle).lookAt, at(middle).renewAt, 'and not looked at before');
});

test('the window of the authority decides: a time in it, or at once if it is over', (t) => {
  const times = (start: number, end: number, now: number, retryAfterMs: number | null = 6 * hour) =>
    renewalTimes(ninety, { start, end, retryAfterMs }, { now, random: middle });
  t.deepEqual(times(20 * day, 22 * day, 0), { renewAt: 21 * day, lookAt: 6 * hour });
  t.is(
    times(20 * day, 22 * day, 21 * day - hour).lookAt,
    21 * day,
    'the time in it comes before the next look',
  );
  t.is(
    times(2 * day, 4 * day, 50 * day).renewAt,
    3 * day,
    'a revoked certificate: its window is in the past',
  );
  t.is(times(20 * day, 22 * day, 0, 1).lookAt, hour, 'an authority cannot make us ask more often');
  t.is(times(20 * day, 22 * day, 0, 90 * day).lookAt, day, 'or never again');
  t.is(times(200 * day, 300 * day, 0).renewAt, 81 * day, 'or let the certificate expire');
});

test('waits double, within bounds, whatever the dice say', (t) => {
  fc.assert(
    fc.property(fc.integer({ min: 1, max: 1000 }), fc.double({ min: 0, max: 1, noNaN: true }), (n, dice) => {
      const random = () => dice;
      const refusal = afterRefusal(n, random);
      const outage = afterOutage(n, random);
      const [required, optional] = [afterLook(n, false, random), afterLook(n, true, random)];
      return (
        refusal >= 12 * minute &&
        refusal <= 1.2 * day &&
        outage >= 0.8 * minute &&
        outage <= 1.2 * hour &&
        required <= 1.2 * hour &&
        optional <= 7.2 * hour
      );
    }),
  );
  t.deepEqual(
    [1, 2, 3, 8].map((n) => afterRefusal(n, middle) / minute),
    [15, 30, 60, 1440],
  );
});

test('the hosts that need a certificate: our own, tracking hosts and policy hosts, each once, bounded for each organization', (t) => {
  const own = ownHosts({ hostname: 'mail.example.org', baseUrl: 'https://app.example.org' });
  t.deepEqual(own, [
    { host: 'mail.example.org', purpose: 'server', orgId: null },
    { host: 'app.example.org', purpose: 'server', orgId: null },
  ]);
  t.deepEqual(
    ownHosts({ hostname: 'box', baseUrl: 'https://192.0.2.1' }),
    [],
    'no authority certifies these',
  );
  t.deepEqual(
    ownHosts({ hostname: 'mail.example.org', baseUrl: 'http://app.example.org:8080' }).length,
    1,
    'a base URL behind a proxy',
  );
  const hosts = (domains: [orgId: string, name: string, trackingHost: string | null][]) =>
    customerHosts(
      domains.map(([orgId, name, trackingHost]) => ({ orgId, name, trackingHost })),
      own,
    ).map(({ host }) => host);
  t.deepEqual(
    hosts([
      ['1', 'a.example', 't.a.example'],
      ['2', 'a.example', 'mail.example.org'],
      ['2', 'b.example', 't.a.example'],
    ]),
    ['t.a.example', 'mta-sts.a.example', 'mta-sts.b.example'],
  );
  t.deepEqual(
    hosts([
      ['1', 'a.example', 'mta-sts.b.example'],
      ['2', 'b.example', null],
    ]),
    ['mta-sts.a.example', 'mta-sts.b.example'],
    'in a domain of another organization',
  );
  const many = Array.from({ length: 300 }, (_, n) => ['1', `d${n}.example`, `t.d${n}.example`] as const);
  const bounded = hosts([
    ...many.map((one) => [...one] as [string, string, string]),
    ['2', 'c.example', null],
  ]);
  t.is(bounded.length, maxHostsOfOrganization + 1);
  t.true(bounded.includes('mta-sts.c.example'), 'others have their own');
  t.true(bounded[0]!.startsWith('t.'), 'tracking hosts come first');
  t.deepEqual(
    hosts([['1', `${'d'.repeat(60)}.${'e'.repeat(60)}.${'f'.repeat(60)}.${'g'.repeat(60)}.example`, null]]),
    [],
  );
});
