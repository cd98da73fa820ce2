/** The TLS ladder, demand by demand, against hosts with every kind of certificate. */
import { createHash, X509Certificate } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { getCACertificates, setDefaultCACertificates } from 'node:tls';
import test, { type ExecutionContext } from 'ava';
import { type MxOptions, mxPem, startMx } from '#lab/mx/mx.ts';
import { memory, said, startDeliverer } from '#lab/scenes/deliverer.ts';
import type { HostTls } from '#mail/deliver/route/route.ts';
import type { DestinationShape } from '#platform/values/destination-shape.ts';
import type { TlsaRecord, TlsFloor } from '#platform/values/glossary.ts';

const pemOf = (name: string) => readFileSync(new URL(`../../fixtures/tls/${name}.pem`, import.meta.url));
const pems = {
  'self-signed': mxPem,
  ...Object.fromEntries(['good', 'other', 'expired', 'domain', 'forged'].map((name) => [name, pemOf(name)])),
} as Record<'self-signed' | 'good' | 'other' | 'expired' | 'domain' | 'forged', Buffer>;

// What NODE_EXTRA_CA_CERTS does to a process when it starts.
setDefaultCACertificates([...getCACertificates('default'), pemOf('ca').toString()]);

/** The TLSA record that pins a certificate. */
function pin(pem: Buffer, usage: number, selector = 1, matching = 1): TlsaRecord {
  const certificate = new X509Certificate(pem);
  const what =
    selector === 0 ? certificate.raw : certificate.publicKey.export({ type: 'spki', format: 'der' });
  const hash = ['', 'sha256', 'sha512'][matching];
  return { usage, selector, matching, data: hash ? createHash(hash).update(what).digest() : what };
}

interface Ask {
  host?: HostTls;
  shape?: DestinationShape['tls'];
  sender?: TlsFloor;
}

async function attempt(t: ExecutionContext, mxOptions: MxOptions, { host, shape, sender }: Ask) {
  const mx = await startMx({ host: '127.0.0.2', ...mxOptions });
  t.teardown(mx.close);
  const learned = memory<never>();
  const deliverer = startDeliverer(t, {
    port: mx.port,
    hosts: [{ tls: host ?? { policy: 'opportunistic' } }],
    shape: { tls: shape ?? 'opportunistic' },
    memory: learned,
  });
  const made = await deliverer.deliver({ tls: sender ?? 'opportunistic' });
  const commands = mx.sessions.flatMap((session) => session.commands);
  return { made, mx, deliverer, learned, commands };
}

const dane = (...records: TlsaRecord[]): HostTls => ({ policy: 'dane', records });

type Row = [what: string, mx: MxOptions, ask: Ask, policy: string | null, verified: boolean];

const delivered: Row[] = [
  ['any certificate will do', {}, {}, 'opportunistic', false],
  ['a good one is said to be good', { pem: pems.good }, {}, 'opportunistic', true],
  ['no STARTTLS: in clear', { tls: false }, {}, null, false],
  ['STARTTLS refused: in clear', { tls: 'refused' }, {}, null, false],
  ['a broken handshake: in clear', { tls: 'broken' }, {}, null, false],
  ['off: in clear although TLS is offered', {}, { shape: 'off' }, null, false],
  ['off yields to the sender', {}, { shape: 'off', sender: 'encrypted' }, 'encrypted', false],
  ['off yields to DANE', {}, { shape: 'off', host: dane(pin(mxPem, 3)) }, 'dane', true],
  ['encrypted by any certificate', {}, { sender: 'encrypted' }, 'encrypted', false],
  [
    'the stronger of shape and sender',
    {},
    { sender: 'opportunistic', shape: 'encrypted' },
    'encrypted',
    false,
  ],
  ['verified by a known authority', { pem: pems.good }, { sender: 'verified' }, 'verified', true],
  ['mta-sts', { pem: pems.good }, { host: { policy: 'mta-sts' } }, 'mta-sts', true],
  [
    'mta-sts above encrypted',
    { pem: pems.good },
    { host: { policy: 'mta-sts' }, sender: 'encrypted' },
    'mta-sts',
    true,
  ],
  ['DANE-EE by its key', {}, { host: dane(pin(mxPem, 3, 1, 1)) }, 'dane', true],
  ['DANE-EE by the certificate', {}, { host: dane(pin(mxPem, 3, 0, 1)) }, 'dane', true],
  ['DANE-EE by SHA-512', {}, { host: dane(pin(mxPem, 3, 1, 2)) }, 'dane', true],
  ['DANE-EE in full', {}, { host: dane(pin(mxPem, 3, 1, 0)) }, 'dane', true],
  ['DANE-EE of another name', { pem: pems.other }, { host: dane(pin(pems.other, 3)) }, 'dane', true],
  ['DANE-EE that has expired', { pem: pems.expired }, { host: dane(pin(pems.expired, 3)) }, 'dane', true],
  ['the second DANE record', {}, { host: dane(pin(pems.good, 3), pin(mxPem, 3)) }, 'dane', true],
  ['DANE-TA, name of the host', { pem: pems.good }, { host: dane(pin(pemOf('ca'), 2)) }, 'dane', true],
  ['DANE-TA, name of the domain', { pem: pems.domain }, { host: dane(pin(pemOf('ca'), 2, 0)) }, 'dane', true],
  ['DANE without a usable record', {}, { host: dane() }, 'encrypted', false],
];

for (const [what, mxOptions, ask, policy, verified] of delivered) {
  test(`delivered: ${what}`, async (t) => {
    const { made, mx } = await attempt(t, mxOptions, ask);
    t.is(made.verdict.outcome, 'delivered', said(made));
    t.is(made.tls?.policy ?? null, policy as never);
    t.is(made.tls?.verified ?? false, verified);
    t.is(mx.messages[0]!.tls, policy !== null);
  });
}

type Refusal = [what: string, mx: MxOptions, ask: Ask, why: RegExp];

const refused: Refusal[] = [
  ['encrypted, none offered', { tls: false }, { sender: 'encrypted' }, /does not offer STARTTLS/],
  ['encrypted, STARTTLS refused', { tls: 'refused' }, { sender: 'encrypted' }, /refuses STARTTLS/],
  ['encrypted, a broken handshake', { tls: 'broken' }, { sender: 'encrypted' }, /handshake failed/],
  ['encrypted by the shape', { tls: false }, { shape: 'encrypted' }, /gives no TLS, which is demanded/],
  ['verified, self-signed', {}, { sender: 'verified' }, /its certificate is self-signed/],
  [
    'verified, another name',
    { pem: pems.other },
    { sender: 'verified' },
    /for DNS:other\.invalid, not for mx1/,
  ],
  ['verified, expired', { pem: pems.expired }, { sender: 'verified' }, /its certificate has expired/],
  ['verified, the domain’s name only', { pem: pems.domain }, { sender: 'verified' }, /not for mx1\.invalid/],
  [
    'verified, issued by no authority',
    { pem: pems.forged },
    { sender: 'verified' },
    /invalid (?:ca|purpose)/,
  ],
  ['mta-sts, self-signed', {}, { host: { policy: 'mta-sts' } }, /MTA-STS policy demands/],
  [
    'mta-sts, none offered',
    { tls: false },
    { host: { policy: 'mta-sts' } },
    /gives no TLS, which the domain's MTA-STS policy demands/,
  ],
  ['DANE-EE of another key', {}, { host: dane(pin(pems.good, 3)) }, /matches no TLSA record/],
  ['DANE, none offered', { tls: false }, { host: dane(pin(mxPem, 3)) }, /gives no TLS, which DANE demands/],
  [
    'DANE above verified',
    { pem: pems.good },
    { host: dane(pin(mxPem, 3)), sender: 'verified' },
    /no TLSA record/,
  ],
  [
    'DANE-TA, another name',
    { pem: pems.other },
    { host: dane(pin(pemOf('ca'), 2)) },
    /not for mx1\.invalid or there/,
  ],
  ['DANE-TA, expired', { pem: pems.expired }, { host: dane(pin(pemOf('ca'), 2)) }, /valid from/],
  ['DANE-TA without its authority', {}, { host: dane(pin(pemOf('ca'), 2)) }, /chain of certificates/],
  [
    'DANE-TA, issued by no authority',
    { pem: pems.forged },
    { host: dane(pin(pemOf('ca'), 2)) },
    /chain of cert/,
  ],
  ['DANE unusable, none offered', { tls: false }, { host: dane() }, /gives no TLS, which is demanded/],
];

for (const [what, mxOptions, ask, why] of refused) {
  test(`deferred: ${what}`, async (t) => {
    const { made, mx, commands, learned } = await attempt(t, mxOptions, ask);
    t.like(made.verdict, { outcome: 'deferred', category: 'tls', possibleDuplicate: false }, said(made));
    t.regex(made.verdict.diagnostic, why);
    t.deepEqual(mx.messages, []);
    t.false(commands.some((command) => command.startsWith('MAIL')));
    t.is(mx.sessions.length, 1, 'never once more without TLS');
    t.is(learned.values.size, 0);
  });
}

test('a host whose TLS failed is remembered, but not against a demand', async (t) => {
  const { made, mx, deliverer, learned } = await attempt(t, { tls: 'broken' }, {});
  t.regex(said(made), /once more without TLS/);
  t.is(learned.values.size, 1);
  await deliverer.pool.close();
  const tries = mx.sessions.length;
  const next = await deliverer.deliver();
  t.regex(said(next), /no TLS with mx1\.invalid: it failed at \d{4}-.*\(TLS handshake failed: /);
  t.is(mx.sessions.length, tries + 1, 'in clear at once');
  const demanded = await deliverer.deliver({ tls: 'encrypted' });
  t.is(demanded.verdict.category, 'tls');
});

test('a session in clear is not used for a mail that demands TLS; one in TLS is', async (t) => {
  const mx = await startMx({ host: '127.0.0.2' });
  t.teardown(mx.close);
  const learned = memory<{ at: number; reason: string }>();
  learned.values.set('mx1.invalid', { at: 0, reason: 'a test' });
  const deliverer = startDeliverer(t, { port: mx.port, memory: learned });
  const inClear = await deliverer.deliver();
  t.is(inClear.tls, null);
  const encrypted = await deliverer.deliver({ tls: 'encrypted' });
  t.is(encrypted.tls?.policy, 'encrypted');
  await deliverer.deliver({ tls: 'encrypted' });
  t.is(mx.sessions.length, 2);
  const verified = await deliverer.deliver({ tls: 'verified' });
  t.is(verified.verdict.category, 'tls', 'nor is one whose certificate does not suffice');
});

test('where what was learned of a host cannot be read, the mail is delivered', async (t) => {
  const mx = await startMx({ host: '127.0.0.2', tls: 'broken' });
  t.teardown(mx.close);
  const fail = () => Promise.reject(new Error('the disk is gone'));
  const deliverer = startDeliverer(t, { port: mx.port, memory: { get: fail, set: fail } });
  t.is((await deliverer.deliver()).verdict.outcome, 'delivered');
});
