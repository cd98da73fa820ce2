/** DANE: from what a domain publishes to what is demanded of each of its hosts (RFC 7672). */
import test, { type ExecutionContext } from 'ava';
import { startDns, type Zone } from '#lab/dns/dns.ts';
import { createDane } from '#mail/deliver/route/dane-records.ts';
import { createSecureResolve } from '#mail/deliver/route/dnssec.ts';

const digest = 'ab'.repeat(32);
const record = { usage: 3, selector: 1, matching: 1, data: Buffer.from(digest, 'hex') };
const mx1 = { name: 'mx1.invalid', addresses: ['127.0.0.2'] };
const mx2 = { name: 'mx2.invalid', addresses: ['127.0.0.3'] };

/** A domain that does all of it right; a test says what is different. */
const signed: Zone = {
  'there.invalid': { MX: ['10 mx1.invalid'], secure: true },
  'mx1.invalid': { A: ['127.0.0.2'], secure: true },
  '_25._tcp.mx1.invalid': { TLSA: [`3 1 1 ${digest}`], secure: true },
};

async function find(t: ExecutionContext, zone: Zone, hosts = [mx1], timeoutMs = 30_000) {
  const dns = await startDns({ ...signed, ...zone });
  t.teardown(dns.close);
  const secureResolve = createSecureResolve([dns.address], { timeoutMs: 30_000, tries: 1 })!;
  const dane = createDane({ secureResolve, port: 25, timeoutMs });
  const findings = await dane('there.invalid', hosts);
  return { findings, queries: dns.queries };
}

const opportunistic = { tls: { policy: 'opportunistic' } };
const signedOnly = { tls: { policy: 'opportunistic', isSigned: true } };

test('signed MX, address and TLSA records: DANE with these records', async (t) => {
  const { findings } = await find(t, {});
  t.deepEqual(findings, [{ tls: { policy: 'dane', records: [record] } }]);
});

test('each host on its own: one with TLSA records, one without', async (t) => {
  const { findings } = await find(
    t,
    {
      'there.invalid': { MX: ['10 mx1.invalid', '20 mx2.invalid'], secure: true },
      'mx2.invalid': { A: ['127.0.0.3'], secure: true },
    },
    [mx1, mx2],
  );
  t.deepEqual(findings, [{ tls: { policy: 'dane', records: [record] } }, signedOnly]);
});

test('an unsigned MX is one query and no DANE', async (t) => {
  const { findings, queries } = await find(t, { 'there.invalid': { MX: ['10 mx1.invalid'] } });
  t.deepEqual(findings, [opportunistic]);
  t.deepEqual(queries, [{ name: 'there.invalid', type: 'MX' }]);
});

test('the TLSA records of a host with an unsigned address are not asked for (RFC 7672 section 2.2.2)', async (t) => {
  const { findings, queries } = await find(t, {
    'mx1.invalid': { A: ['127.0.0.2'] },
    '_25._tcp.mx1.invalid': 'SERVFAIL',
  });
  t.deepEqual(findings, [signedOnly]);
  t.false(queries.some(({ type }) => type === 'TLSA'));
});

test('unsigned TLSA records are not used', async (t) => {
  const { findings } = await find(t, { '_25._tcp.mx1.invalid': { TLSA: [`3 1 1 ${digest}`] } });
  t.deepEqual(findings, [signedOnly]);
});

for (const failure of ['SERVFAIL', 'TIMEOUT'] as const) {
  test(`a host whose TLSA look-up ends in ${failure} must not be used`, async (t) => {
    const { findings } = await find(
      t,
      { '_25._tcp.mx1.invalid': failure },
      [mx1],
      // The look-ups before it must end within it, too.
      failure === 'TIMEOUT' ? 3_000 : undefined,
    );
    t.is(findings[0]?.result?.kind, 'dns-failed');
    t.regex(JSON.stringify(findings[0]?.result), /TLSA records of mx1.invalid could not be looked up: /);
  });
}

test('a host whose address look-up fails under a signed MX must not be used', async (t) => {
  const { findings } = await find(t, { 'mx1.invalid': { A: 'SERVFAIL', secure: true } });
  t.is(findings[0]?.result?.kind, 'dns-failed');
});

test('a host that is not in the signed MX records must not be used', async (t) => {
  const { findings } = await find(t, {}, [mx1, { name: 'evil.invalid', addresses: ['127.6.6.6'] }]);
  t.is(findings[0]?.tls.policy, 'dane');
  t.deepEqual(findings[1]?.result, {
    kind: 'dns-failed',
    detail: 'evil.invalid is not among the mail hosts in the signed records of there.invalid',
  });
});

test('where only the MX look-up fails DANE is not known, and noted', async (t) => {
  const { findings } = await find(t, { 'there.invalid': 'SERVFAIL' });
  t.is(findings[0]?.result, undefined);
  t.is(findings[0]?.tls.policy, 'opportunistic');
  t.regex(findings[0]?.tls.note ?? '', /^not known whether DANE protects there.invalid: .*SERVFAIL$/);
});

test('where the MX look-up takes too long DANE is not known, and noted', async (t) => {
  const { findings } = await find(t, { 'there.invalid': 'TIMEOUT' }, [mx1], 300);
  t.is(findings[0]?.result, undefined);
  t.is(findings[0]?.tls.note, 'not known whether DANE protects there.invalid: no answer in time');
});

test('a domain without MX is its own host, by its signed address', async (t) => {
  const zone: Zone = {
    'there.invalid': { A: ['127.0.0.2'], secure: true },
    '_25._tcp.there.invalid': { TLSA: [`3 1 1 ${digest}`], secure: true },
  };
  const { findings } = await find(t, zone, [{ name: 'there.invalid', addresses: ['127.0.0.2'] }]);
  t.deepEqual(findings, [{ tls: { policy: 'dane', records: [record] } }]);
});

test('a host with IPv6 addresses alone', async (t) => {
  const zone: Zone = { 'mx1.invalid': { AAAA: ['2001:db8::1'], secure: true } };
  const { findings } = await find(t, zone, [{ name: 'mx1.invalid', addresses: ['2001:db8::1'] }]);
  t.is(findings[0]?.tls.policy, 'dane');
});

const aliases: [what: string, zone: Zone, found: object][] = [
  [
    'signed all the way: the TLSA records of its target',
    {
      'mx1.invalid': { CNAME: ['host.invalid'], secure: true },
      'host.invalid': { A: ['127.0.0.2'], secure: true },
      '_25._tcp.host.invalid': { TLSA: [`2 0 1 ${digest}`], secure: true },
    },
    { tls: { policy: 'dane', records: [{ ...record, usage: 2, selector: 0 }] } },
  ],
  [
    'signed all the way, the target without TLSA records: its own',
    {
      'mx1.invalid': { CNAME: ['host.invalid'], secure: true },
      'host.invalid': { A: ['127.0.0.2'], secure: true },
    },
    { tls: { policy: 'dane', records: [record] } },
  ],
  [
    'signed, leading to an unsigned name: its own alone',
    {
      'mx1.invalid': { CNAME: ['host.invalid'], secure: true },
      'host.invalid': { A: ['127.0.0.2'] },
      '_25._tcp.host.invalid': { TLSA: [`3 0 1 ${digest}`] },
    },
    { tls: { policy: 'dane', records: [record] } },
  ],
  [
    'unsigned: none',
    {
      'mx1.invalid': { CNAME: ['host.invalid'] },
      'host.invalid': { A: ['127.0.0.2'], secure: true },
      '_25._tcp.host.invalid': { TLSA: [`3 0 1 ${digest}`], secure: true },
    },
    signedOnly,
  ],
];

for (const [what, zone, found] of aliases) {
  test(`a mail host that is an alias, ${what}`, async (t) => {
    const { findings } = await find(t, zone);
    t.deepEqual(findings, [found] as typeof findings);
  });
}

test('the port of the look-up is the port delivered to', async (t) => {
  const dns = await startDns({
    ...signed,
    '_2525._tcp.mx1.invalid': { TLSA: [`3 0 1 ${digest}`], secure: true },
  });
  t.teardown(dns.close);
  const dane = createDane({ secureResolve: createSecureResolve([dns.address])!, port: 2525 });
  t.like((await dane('there.invalid', [mx1]))[0], { tls: { records: [{ ...record, selector: 0 }] } });
});

const kinds: [record: string, usable: boolean][] = [
  [`0 0 1 ${digest}`, false],
  [`1 1 1 ${digest}`, false],
  [`2 1 1 ${digest}`, true],
  [`3 1 2 ${digest}${digest}`, true],
  ['3 1 0 00ff', true],
  [`3 2 1 ${digest}`, false],
  [`3 1 3 ${digest}`, false],
  [`3 1 2 ${digest}`, false],
  ['3 1 1 00ff', false],
];

for (const [text, usable] of kinds) {
  test(`a TLSA record ${text.slice(0, 12)}… is ${usable ? '' : 'not '}usable`, async (t) => {
    const alone = await find(t, { '_25._tcp.mx1.invalid': { TLSA: [text], secure: true } });
    const [only] = alone.findings;
    t.is(only?.tls.policy === 'dane' && only.tls.records.length, usable ? 1 : 0);
    t.is(only?.tls.note !== undefined, !usable, 'that TLS is all that is demanded');
    const both = await find(t, {
      '_25._tcp.mx1.invalid': { TLSA: [text, `3 1 1 ${digest}`], secure: true },
    });
    const { tls } = both.findings[0]!;
    t.is(tls.policy === 'dane' && tls.records.length, usable ? 2 : 1);
  });
}
