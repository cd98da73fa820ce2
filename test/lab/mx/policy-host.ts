/**
 * A web server with the MTA-STS policies of the tests' domains, on real TLS, with the certificate of the tests'
 * authority (fixtures/authority). It answers by the host name asked for, so one serves all domains:
 *
 *   const host = await startPolicyHost({ 'there.invalid': policy('enforce', ['mx1.invalid']) });
 *   host.policies['there.invalid'] = (request, response) => response.writeHead(500).end();
 */
import { createHash, X509Certificate } from 'node:crypto';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { createServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { getCACertificates, setDefaultCACertificates } from 'node:tls';

const fixture = (name: string) => join(import.meta.dirname, '../../fixtures/authority', name);

/** The authority's own certificate, for NODE_EXTRA_CA_CERTS. */
export const authorityFile = fixture('ca.pem');

/** The same for the process that runs already: from now on it knows the authority beside the usual ones. */
export function trustAuthority(): void {
  setDefaultCACertificates([...getCACertificates('default'), readFileSync(authorityFile, 'utf8')]);
}

/** Certificate and key that it gave to mx1.invalid and others, and to their policy hosts. */
export const authorizedPem = readFileSync(fixture('hosts.pem'));

type Answer = string | ((request: IncomingMessage, response: ServerResponse) => void);

export interface PolicyHost {
  host: string;
  port: number;
  /** By domain, or by another path: the text of a policy, or something else to do. */
  policies: Record<string, Answer>;
  /** The domains asked for, in order. */
  asked: string[];
  close(): Promise<void>;
}

export interface PolicyHostOptions {
  host?: string;
  port?: number;
  pem?: Buffer;
}

export async function startPolicyHost(
  policies: Record<string, Answer>,
  { host = '127.0.0.1', port = 0, pem = authorizedPem }: PolicyHostOptions = {},
): Promise<PolicyHost> {
  const asked: string[] = [];
  const server = createServer({ cert: pem, key: pem }, (request, response) => {
    const domain = request.headers.host?.replace(/^mta-sts\./, '') ?? '';
    asked.push(domain);
    const answer = policies[request.url === '/.well-known/mta-sts.txt' ? domain : request.url!];
    if (typeof answer === 'function') answer(request, response);
    else if (answer === undefined) response.writeHead(404, { 'content-type': 'text/plain' }).end('no');
    else response.writeHead(200, { 'content-type': 'text/plain; charset=utf-8' }).end(answer);
  }).listen(port, host);
  await once(server, 'listening');
  return {
    host,
    port: (server.address() as AddressInfo).port,
    policies,
    asked,
    async close() {
      server.closeAllConnections();
      await new Promise((closed) => server.close(closed));
    },
  };
}

/** A policy's text. */
export function policy(mode: string, mx: string[], maxAge = 604_800): string {
  const lines = ['version: STSv1', `mode: ${mode}`, ...mx.map((host) => `mx: ${host}`), `max_age: ${maxAge}`];
  return lines.map((line) => `${line}\r\n`).join('');
}

/** A TLSA record of the public key: `3 1 1`, as RFC 7672 section 3.1.1 recommends. */
export function tlsaOf(pem: Buffer): string {
  const key = new X509Certificate(pem).publicKey.export({ type: 'spki', format: 'der' });
  return `3 1 1 ${createHash('sha256').update(key).digest('hex')}`;
}
