/** A world whose server gets its certificates from the tests' authority, and what clients see there. */
import { X509Certificate } from 'node:crypto';
import { request as httpRequest, type IncomingMessage } from 'node:http';
import { request as httpsRequest } from 'node:https';
import { text } from 'node:stream/consumers';
import { connect, type PeerCertificate } from 'node:tls';
import type { ExecutionContext } from 'ava';
import { freePort } from '../load/ports.ts';
import { startWorld, type WorldOptions } from '../scenes/world.ts';
import { type AuthorityOptions, startAuthority, type TestAuthority } from './authority.ts';

export interface AcmeWorldOptions extends WorldOptions {
  authority?: AuthorityOptions;
  /** Called before the server starts. */
  prepare?(authority: TestAuthority): void;
}

export type AcmeWorld = Awaited<ReturnType<typeof startAcmeWorld>>;

export async function startAcmeWorld(t: ExecutionContext, options: AcmeWorldOptions = {}) {
  const [httpPort, httpsPort] = [await freePort('127.0.0.1'), await freePort('127.0.0.1')];
  // The authority's clock is the server's, once there is one.
  let now = Date.now;
  const authority = await startAuthority(t, {
    httpPort,
    tlsPort: httpsPort,
    now: () => now(),
    ...options.authority,
  });
  options.prepare?.(authority);
  const world = await startWorld(t, {
    ...options,
    zone: { 'postern.invalid': { A: ['127.0.0.1'] }, ...options.zone },
    settings: {
      ...authority.settings,
      POSTERN_ACME_HTTP_PORT: String(httpPort),
      POSTERN_ACME_HTTPS_PORT: String(httpsPort),
      ...options.settings,
    },
    overrides: { acmePollMs: 20, ...options.overrides },
  });
  now = world.clock.now;
  const rowOf = (host: string) => world.db('certificates').where({ host }).first();
  const isInUse = async (host: string, chain: string) => {
    const { fingerprint256 } = await certificateShown(httpsPort, host);
    return new X509Certificate(chain).fingerprint256 === fingerprint256;
  };
  return {
    ...world,
    authority,
    httpPort,
    httpsPort,
    rowOf,
    /** The clock goes on until the host has a certificate, or another one, and the server shows it. */
    untilCertified: (host = 'postern.invalid', before: string | null = null) =>
      world.clock.passUntil(async () => {
        const row = await rowOf(host);
        if (!row?.chain || row.chain === before || !(await isInUse(host, row.chain))) return false;
        return row.chain as string;
      }),
    /** The clock goes on until the host has failed so often. */
    untilFailed: (host: string, failures = 1) =>
      world.clock.passUntil(
        async () => {
          const row = await rowOf(host);
          return row && row.failures >= failures && JSON.parse(row.problem);
        },
        { step: '10s' },
      ),
    https: (path: string, host = 'postern.invalid') =>
      getSecurely({ port: httpsPort, path, host, ca: authority.root }),
    http: (path: string, { host = 'postern.invalid', method = 'GET' } = {}) =>
      answerOf(httpRequest({ host: '127.0.0.1', port: httpPort, path, method, headers: { host } })),
  };
}

interface Secure {
  port: number;
  path: string;
  host: string;
  ca: string;
}

/** Rejects if the certificate is not the host's or not the authority's. */
function getSecurely({ port, path, host, ca }: Secure) {
  return answerOf(
    httpsRequest({ host: '127.0.0.1', port, path, servername: host, headers: { host }, ca, agent: false }),
  );
}

async function answerOf(sent: ReturnType<typeof httpRequest>) {
  const response = await new Promise<IncomingMessage>((resolve, reject) => {
    sent.on('response', resolve).on('error', reject).end();
  });
  return { status: response.statusCode!, headers: response.headers, text: await text(response) };
}

/** The certificate that a client sees, whoever issued it. */
export function certificateShown(
  port: number,
  servername?: string,
  host = '127.0.0.1',
): Promise<PeerCertificate> {
  return new Promise((resolve, reject) => {
    const name = servername === undefined ? {} : { servername };
    const socket = connect({ port, host, rejectUnauthorized: false, ...name }, () => {
      resolve(socket.getPeerCertificate());
      socket.destroy();
    });
    socket.once('error', reject);
  });
}
