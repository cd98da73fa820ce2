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

const encrypted = (what: string, mx: MxOptions, pattern?: RegExp): TlsHost => ({
  what,
  expected: 'encrypted',
  mx,
  ...(pattern && { with: pattern }),
});
const inClear = (what: string, mx: MxOptions): TlsHost => ({ what, expected: 'clear', mx });

const anonymous = { ...only('TLSv1.2', 'aNULL@SECLEVEL=0'), cert: undefined, key: undefined };
const dhe = { ...only('TLSv1.2', 'DHE-RSA-AES128-GCM-SHA256'), dhparam: 'auto' };
const weakDhe = 'DHE-RSA-AES128-SHA@SECLEVEL=0';

/** Sound hosts, and certificates that nobody should trust. */
const sound: TlsHost[] = [
  encrypted('TLS 1.3, post-quantum key exchange', {}, /^TLSv1.3 .* X25519MLKEM768$/),
  encrypted('TLS 1.3, X25519', speaking({ ecdhCurve: 'X25519' }), /^TLSv1.3 .* X25519$/),
  encrypted('TLS 1.3, P-384 only', speaking({ ecdhCurve: 'P-384' }), /^TLSv1.3 .* P-384$/),
  encrypted('TLS 1.2, ECDHE', speaking(only('TLSv1.2')), /^TLSv1.2 .*ECDHE/),
  encrypted('TLS 1.2, DHE', speaking(dhe), /^TLSv1.2 .* DH-2048$/),
  encrypted(
    'TLS 1.2, key exchange with RSA',
    speaking(only('TLSv1.2', 'AES128-GCM-SHA256')),
    /^TLSv1.2 TLS_RSA_/,
  ),
  encrypted('TLS 1.2, CBC', speaking(only('TLSv1.2', 'ECDHE-RSA-AES256-SHA')), /^TLSv1.2 .*CBC/),
  encrypted('certificate: self-signed', speaking(rsa)),
  encrypted('certificate: expired', { pem: fixture('expired') }),
  encrypted('certificate: another name', { pem: fixture('other') }),
  encrypted('certificate: no known authority', { pem: fixture('forged') }),
  encrypted('asks for a client certificate', speaking({ requestCert: true, rejectUnauthorized: false })),
];

/** Hosts that have only what is no longer sound, or stumble over what is new. */
const old: TlsHost[] = [
  encrypted('TLS 1.1', speaking(only('TLSv1.1')), /^TLSv1.1 /),
  encrypted('TLS 1.0', speaking(only('TLSv1')), /^TLSv1 /),
  encrypted(
    'TLS 1.0, key exchange with RSA',
    speaking(only('TLSv1', 'AES128-SHA@SECLEVEL=0')),
    /^TLSv1 TLS_RSA_/,
  ),
  encrypted(
    'TLS 1.2, 1024-bit DH',
    speaking({ ...only('TLSv1.2', weakDhe), dhparam: dh1024 }),
    /^TLSv1.2 .* DH-1024$/,
  ),
  encrypted(
    'TLS 1.0, 1024-bit DH',
    speaking({ ...only('TLSv1', weakDhe), dhparam: dh1024 }),
    /^TLSv1 .* DH-1024$/,
  ),
  encrypted(
    'TLS 1.2, 1024-bit RSA',
    speaking({ ...only('TLSv1.2'), cert: weakPem, key: weakPem }),
    /^TLSv1.2 /,
  ),
  encrypted('TLS 1.2, no certificate', speaking({ ...anonymous, dhparam: 'auto' }), /^TLSv1.2 TLS_.*anon/),
  encrypted('breaks off at a long ClientHello', { tls: { handshake: 'short-hello' } }),
  encrypted(
    'breaks off at a server name that it does not know',
    speaking({ SNICallback: (_, done) => done(new Error('unknown')) }),
  ),
];

/** Hosts that give no TLS, or none that leads to a mail. */
const clear: TlsHost[] = [
  inClear('no STARTTLS', { tls: false }),
  inClear('STARTTLS: 454', { tls: 'refused' }),
  inClear('STARTTLS: 502', toStartTls('502 5.5.1 not implemented')),
  inClear('STARTTLS: 421', toStartTls('421 4.3.2 too busy')),
  inClear('STARTTLS: closes', toStartTls('close')),
  inClear('STARTTLS: resets', toStartTls('reset')),
  inClear('STARTTLS: silent', toStartTls('hang')),
  inClear('STARTTLS: nonsense', toStartTls(raw('go ahead\r\n'))),
  inClear('handshake: rubbish', instead('rubbish')),
  inClear('handshake: closes', instead('close')),
  inClear('handshake: resets', instead('reset')),
  inClear('handshake: silent', instead('hang')),
  inClear('handshake: no common cipher', speaking(only('TLSv1.2', 'PSK-AES128-CBC-SHA@SECLEVEL=0'))),
  inClear('demands a client certificate', speaking({ requestCert: true, rejectUnauthorized: true })),
  inClear('first command over TLS: 421', toFirstCommand('421 4.3.2 too busy')),
  inClear('first command over TLS: closes', toFirstCommand('close')),
  inClear('first command over TLS: resets', toFirstCommand('reset')),
  inClear('first command over TLS: silent', toFirstCommand('hang')),
  inClear('first command over TLS: nonsense', toFirstCommand(raw('hello yourself\r\n'))),
];

export const tlsHosts: TlsHost[] = [...sound, ...old, ...clear];
