/**
 * The kinds of TLS hosts that a sender meets, each as a fake MX that takes mail if it can: sound ones, old ones, and those that
 * break off somewhere between STARTTLS and the first command over TLS. `expected` is how opportunistic TLS must end there.
 */
import { readFileSync } from 'node:fs';
import type { TLSSocketOptions } from 'node:tls';
import type { MxOptions } from './mx.ts';
import type { Reply, TlsSide } from './mx-script.ts';

export interface TlsHost {
  what: string;
  expected: 'encrypted' | 'clear';
  /** A pattern for protocol, cipher and group, where the kind determines them. */
  with?: RegExp;
  mx: MxOptions;
}

const fixture = (name: string) => readFileSync(new URL(`../../fixtures/tls/${name}.pem`, import.meta.url));
const rsaPem = fixture('rsa-2048');
const weakPem = fixture('rsa-1024');
const dh1024 = fixture('dh-1024');
const rsa = { cert: rsaPem, key: rsaPem };

const speaking = (options: TLSSocketOptions, more: MxOptions = {}): MxOptions => ({
  ...more,
  tls: { options },
});
const only = (version: 'TLSv1' | 'TLSv1.1' | 'TLSv1.2' | 'TLSv1.3', ciphers?: string): TLSSocketOptions => ({
  ...rsa,
  minVersion: version,
  maxVersion: version,
  ciphers: ciphers ?? 'DEFAULT@SECLEVEL=0',
});
const instead = (handshake: TlsSide['handshake']): MxOptions => ({ tls: { handshake } });
const toStartTls = (reply: Reply): MxOptions => ({ script: { starttls: () => reply } });
const toFirstCommand = (reply: Reply): MxOptions => ({
  script: { ehlo: ({ session }) => (session.tls ? reply : undefined) },
});
const raw = (text: string) => ({ raw: text });

/** Sound hosts, and certificates that nobody should trust. */
const sound: TlsHost[] = [
  {
    what: 'TLS 1.3, post-quantum key exchange',
    expected: 'encrypted',
    with: /^TLSv1.3 .* X25519MLKEM768$/,
    mx: {},
  },
  {
    what: 'TLS 1.3, X25519',
    expected: 'encrypted',
    with: /^TLSv1.3 .* X25519$/,
    mx: speaking({ ecdhCurve: 'X25519' }),
  },
  {
    what: 'TLS 1.3, P-384 only',
    expected: 'encrypted',
    with: /^TLSv1.3 .* P-384$/,
    mx: speaking({ ecdhCurve: 'P-384' }),
  },
  { what: 'TLS 1.2, ECDHE', expected: 'encrypted', with: /^TLSv1.2 .*ECDHE/, mx: speaking(only('TLSv1.2')) },
  {
    what: 'TLS 1.2, DHE',
    expected: 'encrypted',
    with: /^TLSv1.2 .* DH-2048$/,
    mx: speaking({ ...only('TLSv1.2', 'DHE-RSA-AES128-GCM-SHA256'), dhparam: 'auto' }),
  },
  {
    what: 'TLS 1.2, key exchange with RSA',
    expected: 'encrypted',
    with: /^TLSv1.2 TLS_RSA_/,
    mx: speaking(only('TLSv1.2', 'AES128-GCM-SHA256')),
  },
  {
    what: 'TLS 1.2, CBC',
    expected: 'encrypted',
    with: /^TLSv1.2 .*CBC/,
    mx: speaking(only('TLSv1.2', 'ECDHE-RSA-AES256-SHA')),
  },
  { what: 'certificate: self-signed', expected: 'encrypted', mx: speaking(rsa) },
  { what: 'certificate: expired', expected: 'encrypted', mx: { pem: fixture('expired') } },
  { what: 'certificate: another name', expected: 'encrypted', mx: { pem: fixture('other') } },
  { what: 'certificate: no known authority', expected: 'encrypted', mx: { pem: fixture('forged') } },
  {
    what: 'asks for a client certificate',
    expected: 'encrypted',
    mx: speaking({ requestCert: true, rejectUnauthorized: false }),
  },
];

/** Hosts that have only what is no longer sound, or stumble over what is new. */
const old: TlsHost[] = [
  { what: 'TLS 1.1', expected: 'encrypted', with: /^TLSv1.1 /, mx: speaking(only('TLSv1.1')) },
  { what: 'TLS 1.0', expected: 'encrypted', with: /^TLSv1 /, mx: speaking(only('TLSv1')) },
  {
    what: 'TLS 1.0, key exchange with RSA',
    expected: 'encrypted',
    with: /^TLSv1 TLS_RSA_/,
    mx: speaking(only('TLSv1', 'AES128-SHA@SECLEVEL=0')),
  },
  {
    what: 'TLS 1.2, 1024-bit DH',
    expected: 'encrypted',
    with: /^TLSv1.2 .* DH-1024$/,
    mx: speaking({ ...only('TLSv1.2', 'DHE-RSA-AES128-SHA@SECLEVEL=0'), dhparam: dh1024 }),
  },
  {
    what: 'TLS 1.0, 1024-bit DH',
    expected: 'encrypted',
    with: /^TLSv1 .* DH-1024$/,
    mx: speaking({ ...only('TLSv1', 'DHE-RSA-AES128-SHA@SECLEVEL=0'), dhparam: dh1024 }),
  },
  {
    what: 'TLS 1.2, 1024-bit RSA',
    expected: 'encrypted',
    with: /^TLSv1.2 /,
    mx: speaking({ ...only('TLSv1.2'), cert: weakPem, key: weakPem }),
  },
  {
    what: 'TLS 1.2, no certificate',
    expected: 'encrypted',
    with: /^TLSv1.2 TLS_.*anon/,
    mx: speaking({
      ...only('TLSv1.2', 'aNULL@SECLEVEL=0'),
      cert: undefined,
      key: undefined,
      dhparam: 'auto',
    }),
  },
  {
    what: 'breaks off at a long ClientHello',
    expected: 'encrypted',
    mx: { tls: { handshake: 'short-hello' } },
  },
  {
    what: 'breaks off at a server name that it does not know',
    expected: 'encrypted',
    mx: speaking({ SNICallback: (_, done) => done(new Error('unknown')) }),
  },
];

/** Hosts that give no TLS, or none that leads to a mail. */
const clear: TlsHost[] = [
  { what: 'no STARTTLS', expected: 'clear', mx: { tls: false } },
  { what: 'STARTTLS: 454', expected: 'clear', mx: { tls: 'refused' } },
  { what: 'STARTTLS: 502', expected: 'clear', mx: toStartTls('502 5.5.1 not implemented') },
  { what: 'STARTTLS: 421', expected: 'clear', mx: toStartTls('421 4.3.2 too busy') },
  { what: 'STARTTLS: closes', expected: 'clear', mx: toStartTls('close') },
  { what: 'STARTTLS: resets', expected: 'clear', mx: toStartTls('reset') },
  { what: 'STARTTLS: silent', expected: 'clear', mx: toStartTls('hang') },
  { what: 'STARTTLS: nonsense', expected: 'clear', mx: toStartTls(raw('go ahead\r\n')) },
  { what: 'handshake: rubbish', expected: 'clear', mx: instead('rubbish') },
  { what: 'handshake: closes', expected: 'clear', mx: instead('close') },
  { what: 'handshake: resets', expected: 'clear', mx: instead('reset') },
  { what: 'handshake: silent', expected: 'clear', mx: instead('hang') },
  {
    what: 'handshake: no common cipher',
    expected: 'clear',
    mx: speaking(only('TLSv1.2', 'PSK-AES128-CBC-SHA@SECLEVEL=0')),
  },
  {
    what: 'demands a client certificate',
    expected: 'clear',
    mx: speaking({ requestCert: true, rejectUnauthorized: true }),
  },
  { what: 'first command over TLS: 421', expected: 'clear', mx: toFirstCommand('421 4.3.2 too busy') },
  { what: 'first command over TLS: closes', expected: 'clear', mx: toFirstCommand('close') },
  { what: 'first command over TLS: resets', expected: 'clear', mx: toFirstCommand('reset') },
  { what: 'first command over TLS: silent', expected: 'clear', mx: toFirstCommand('hang') },
  {
    what: 'first command over TLS: nonsense',
    expected: 'clear',
    mx: toFirstCommand(raw('hello yourself\r\n')),
  },
];

export const tlsHosts: TlsHost[] = [...sound, ...old, ...clear];
