/** What a report says of a session, by what the recipient's domain publishes (RFC 8460 section 4.3). */
import test from 'ava';
import { sessionOf, sessionOfSkipped } from '#mail/deliver/route/published-tls.ts';
import type { Host, HostTls } from '#mail/deliver/route/route.ts';
import type { TlsTrial } from '#platform/values/glossary.ts';

const host = (tls: HostTls, rest: Partial<Host> = {}): Host => ({
  name: 'mx1.invalid',
  addresses: ['192.0.2.1'],
  tls,
  ...rest,
});
const trial = (of: Partial<TlsTrial>): TlsTrial => ({
  failure: null,
  certificateFailure: null,
  reason: null,
  ...of,
});

const good = trial({});
const untrusted = trial({ certificateFailure: 'certificate-not-trusted', reason: 'self-signed' });
const clear = trial({ failure: 'starttls-not-supported' });

const record = { usage: 3, selector: 1, matching: 1, data: Buffer.from('ab', 'hex') };
const opportunistic: HostTls = { policy: 'opportunistic' };
const sts = (isNamed: boolean) => ({ sts: { text: ['mode: testing'], isNamed } });

const cases: [what: string, tls: HostTls, of: TlsTrial, policy: string, failure: string | null][] = [
  ['no policy', opportunistic, good, 'no-policy-found', null],
  ['no policy, any certificate', opportunistic, untrusted, 'no-policy-found', null],
  ['no policy, no TLS', opportunistic, clear, 'no-policy-found', 'starttls-not-supported'],
  ['DANE', { policy: 'dane', records: [record] }, good, 'tlsa', null],
  [
    'DANE, no match',
    { policy: 'dane', records: [record] },
    trial({ certificateFailure: 'validation-failure' }),
    'tlsa',
    'validation-failure',
  ],
  ['DANE without a usable record', { policy: 'dane', records: [] }, untrusted, 'tlsa', 'tlsa-invalid'],
  ['MTA-STS', { policy: 'mta-sts', ...sts(true) }, good, 'sts', null],
  ['MTA-STS, certificate', { policy: 'mta-sts', ...sts(true) }, untrusted, 'sts', 'certificate-not-trusted'],
  [
    'MTA-STS testing, certificate',
    { ...opportunistic, ...sts(true) },
    untrusted,
    'sts',
    'certificate-not-trusted',
  ],
  ['MTA-STS testing, host', { ...opportunistic, ...sts(false) }, good, 'sts', 'validation-failure'],
  [
    'MTA-STS not fetched',
    { ...opportunistic, stsProblem: 'no answer' },
    good,
    'sts',
    'sts-policy-fetch-error',
  ],
];

for (const [what, tls, of, policy, failure] of cases) {
  test(`a session is reported by its policy: ${what}`, (t) => {
    const session = sessionOf(host(tls), of, '192.0.2.1', null);
    t.like(session, { policy, failure, host: 'mx1.invalid' } as typeof session);
  });
}

test('TLSA records are quoted as in DNS', (t) => {
  const { policyText } = sessionOf(host({ policy: 'dane', records: [record] }), good, '192.0.2.1', null);
  t.deepEqual(policyText, ['3 1 1 ab']);
});

test('a host that the policy forbids is reported, one that has no address is not', (t) => {
  const forbidden = { kind: 'tls-required', detail: 'not named' } as const;
  const dns = { kind: 'dns-failed', detail: 'SERVFAIL' } as const;
  const skipped = (tls: HostTls, rest: Partial<Host>) => sessionOfSkipped(host(tls, rest))?.failure;
  t.is(skipped({ policy: 'mta-sts', ...sts(false) }, { result: forbidden }), 'validation-failure');
  t.is(skipped(opportunistic, { result: dns }), 'dnssec-invalid');
  t.is(skipped(opportunistic, { result: dns, addresses: [] }), undefined);
});
