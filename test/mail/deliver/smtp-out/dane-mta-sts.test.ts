/** DANE and MTA-STS together: what holds for each host where a domain publishes one, both or neither. */
import test, { type ExecutionContext } from 'ava';
import { startDns, type Zone } from '#lab/dns/dns.ts';
import { policy, startPolicyHost, trustAuthority } from '#lab/mx/policy-host.ts';
import { createDane } from '#mail/deliver/route/dane-records.ts';
import { createSecureResolve } from '#mail/deliver/route/dnssec.ts';
import { createFetchPolicy } from '#mail/deliver/route/fetch-mta-sts.ts';
import { createSts, type StoredPolicy } from '#mail/deliver/route/mta-sts.ts';
import { createProtect } from '#mail/deliver/route/protect.ts';
import { createResolver } from '#mail/deliver/route/resolver.ts';
import { systemClock } from '#platform/base/clock.ts';

trustAuthority();

const tlsa = `3 1 1 ${'ab'.repeat(32)}`;
const hosts = [
  { name: 'mx1.invalid', addresses: ['127.0.0.2'] },
  { name: 'mx2.invalid', addresses: ['127.0.0.3', '2001:db8::3'] },
];

async function protect(t: ExecutionContext, zone: Zone, text = '', trusted = true) {
  const policyHost = await startPolicyHost({ 'there.invalid': text });
  t.teardown(policyHost.close);
  const dns = await startDns({
    'there.invalid': { MX: ['10 mx1.invalid', '20 mx2.invalid'], secure: true },
    'mx1.invalid': { A: ['127.0.0.2'], secure: true },
    'mx2.invalid': { A: ['127.0.0.3'], secure: true },
    'mta-sts.there.invalid': { A: [policyHost.host] },
    ...zone,
  });
  t.teardown(dns.close);
  const resolve = createResolver([dns.address]);
  const secureResolve = createSecureResolve(trusted ? [dns.address] : [], { systemServers: ['192.0.2.53'] });
  const kept = new Map<string, StoredPolicy>();
  const policies = {
    get: async (name: string) => kept.get(name) ?? null,
    set: async (name: string, value: StoredPolicy) => void kept.set(name, value),
  };
  const found = await createProtect({
    dane: secureResolve && createDane({ secureResolve, port: 25 }),
    sts: createSts({
      resolve,
      fetchPolicy: createFetchPolicy({
        resolve,
        allowPrivate: true,
        port: policyHost.port,
      }),
      policies,
      clock: systemClock,
    }),
  })('there.invalid', hosts);
  if (!Array.isArray(found)) throw new Error('a result for all hosts');
  return { found, queries: dns.queries };
}

const announced: Zone = { '_mta-sts.there.invalid': { TXT: ['v=STSv1; id=one;'] } };
const withTlsa: Zone = { '_25._tcp.mx1.invalid': { TLSA: [tlsa], secure: true } };
const unsigned: Zone = { 'there.invalid': { MX: ['10 mx1.invalid', '20 mx2.invalid'] } };

test('a domain that publishes neither costs one MX and one TXT query', async (t) => {
  const { found, queries } = await protect(t, unsigned);
  t.deepEqual(
    found,
    hosts.map((host) => ({ ...host, tls: { policy: 'opportunistic' as const } })),
  );
  t.deepEqual(queries.map(({ type }) => type).sort(), ['MX', 'TXT']);
});

test('without a resolver to be trusted DANE is off, and not asked for', async (t) => {
  const { found, queries } = await protect(t, withTlsa, '', false);
  t.is(found[0]?.tls.policy, 'opportunistic');
  t.deepEqual(
    queries.map(({ type }) => type),
    ['TXT'],
  );
});

test('DANE goes before MTA-STS for a host that has both; MTA-STS holds for the other', async (t) => {
  const { found } = await protect(t, { ...announced, ...withTlsa }, policy('enforce', ['*.invalid']));
  t.deepEqual(
    found.map(({ tls }) => tls.policy),
    ['dane', 'mta-sts'],
  );
  t.deepEqual(found[1]?.addresses, hosts[1]?.addresses);
});

test('a host under DANE is used though the MTA-STS policy does not name it', async (t) => {
  const { found } = await protect(t, { ...announced, ...withTlsa }, policy('enforce', ['mx9.invalid']));
  t.is(found[0]?.result, undefined);
  t.is(found[1]?.result?.kind, 'tls-required');
});

test('a failing DANE look-up is not made good by MTA-STS (RFC 8461 section 2)', async (t) => {
  const zone: Zone = { ...announced, '_25._tcp.mx1.invalid': 'SERVFAIL' };
  const { found } = await protect(t, zone, policy('enforce', ['*.invalid']));
  t.is(found[0]?.result?.kind, 'dns-failed');
  t.is(found[1]?.tls.policy, 'mta-sts');
});

test('TLSA records of no use demand TLS, and leave the rest to MTA-STS', async (t) => {
  const zone: Zone = {
    ...announced,
    '_25._tcp.mx1.invalid': { TLSA: [`1${tlsa.slice(1)}`], secure: true },
    '_25._tcp.mx2.invalid': { TLSA: [`1${tlsa.slice(1)}`], secure: true },
  };
  const testing = await protect(t, zone, policy('testing', ['mx1.invalid']));
  t.like(testing.found[0]?.tls, { policy: 'dane', records: [] });
  const enforced = await protect(t, zone, policy('enforce', ['mx1.invalid']));
  t.is(enforced.found[0]?.tls.policy, 'mta-sts');
  t.is(enforced.found[1]?.result?.kind, 'tls-required');
});

test('a DANE look-up without a result is noted beside what MTA-STS says', async (t) => {
  const zone: Zone = { ...announced, 'there.invalid': 'SERVFAIL' };
  const { found } = await protect(t, zone, policy('testing', ['*.invalid']));
  t.regex(found[0]?.tls.note ?? '', /^not known whether DANE .*; an MTA-STS policy in testing mode/);
});
