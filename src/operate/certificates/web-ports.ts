/**
 * The two web ports, before the API sees a request. Port 80 answers HTTP-01 challenges and redirects to HTTPS; it serves
 * nothing else, because a key that is sent to it has been sent in the clear. Port 443 adds Strict-Transport-Security and
 * serves MTA-STS policies; the rest is the API's.
 */
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { SecureContext, TLSSocket, TlsOptions } from 'node:tls';
import type { HostCertificates } from './host-certificates.ts';
import type { PolicyOf } from './mta-sts-policy.ts';

type Handler = (request: IncomingMessage, response: ServerResponse) => Promise<void>;

const challengePath = '/.well-known/acme-challenge/';
const policyPath = '/.well-known/mta-sts.txt';

/** `httpsPort`: the port at which clients reach HTTPS; null if this node does not serve it. */
export function redirectToHttps(certificates: HostCertificates, httpsPort: number | null): Handler {
  return async (request, response) => {
    const url = request.url!;
    const host = hostOf(request);
    if (url.startsWith(challengePath)) {
      const answer = certificates.answerOf(url.slice(challengePath.length));
      if (answer === null) reply(request, response, 404, 'No such challenge is open here.\n');
      else reply(request, response, 200, answer);
    } else if (httpsPort === null || !certificates.isOurs(host)) {
      // Never to a host of the client's choice.
      reply(request, response, 404, 'This host is not served here.\n');
    } else if (request.method === 'GET' || request.method === 'HEAD') {
      const path = /^\/[\x21-\x7e]*$/.test(url) ? url : '/';
      const location = `https://${host}${httpsPort === 443 ? '' : `:${httpsPort}`}${path}`;
      reply(request, response, 301, `Use ${location}\n`, { Location: location });
    } else {
      const text = 'Use HTTPS. If the request had an API key, it was sent unencrypted: replace the key.\n';
      reply(request, response, 403, text);
    }
  };
}

/** RFC 8737 section 3: an authority offers this protocol alone, and closes after the handshake. */
const challengeProtocol = 'acme-tls/1';

/** The time for which browsers use HTTPS only, after each visit: short, because POSTERN_ACME may be turned off again. */
const hsts = `max-age=${30 * 86_400}`;

export function serveSecurely(certificates: HostCertificates, policyOf: PolicyOf, next: Handler): Handler {
  return async (request, response) => {
    const { servername, alpnProtocol } = request.socket as TLSSocket;
    if (alpnProtocol === challengeProtocol) return void request.socket.destroy();
    if (servername && certificates.hasCertificate(servername.toLowerCase()))
      response.setHeader('Strict-Transport-Security', hsts);
    const [, domain] = /^mta-sts\.(.+)$/.exec(hostOf(request)) ?? [];
    if (domain === undefined || request.url!.split('?', 1)[0] !== policyPath) return next(request, response);
    const policy = await policyOf(domain);
    if (policy.isKnown)
      reply(request, response, policy.text === null ? 404 : 200, policy.text ?? 'No policy.\n');
    // RFC 8461 section 3.3: senders then use the policy that they have.
    else reply(request, response, 503, 'The MX records cannot be looked up now.\n', { 'Retry-After': '60' });
  };
}

/**
 * The certificate of each connection. With TLS 1.3, Node asks for the protocol before it asks for the certificate, and with
 * TLS 1.2 afterwards.
 */
export function tlsOptionsOf(certificates: HostCertificates): TlsOptions {
  const challenged = new WeakMap<TLSSocket, SecureContext>();
  return {
    ...certificates.current(),
    minVersion: 'TLSv1.2',
    SNICallback(this: TLSSocket, host: string, done) {
      const challenge = challenged.get(this);
      if (challenge) done(null, challenge);
      else certificates.contextOf(host).then((context) => done(null, context ?? undefined));
    },
    ALPNCallback(this: TLSSocket, { servername, protocols }) {
      if (!protocols.includes(challengeProtocol)) return protocols.find((name) => name === 'http/1.1');
      const context = certificates.challengeContext(servername.toLowerCase());
      if (context === null) return undefined;
      challenged.set(this, context);
      this.setKeyCert(context);
      return challengeProtocol;
    },
  } as TlsOptions;
}

/** Without the port; in lower case. */
export function hostOf({ headers: { host = '' } }: IncomingMessage): string {
  return host.replace(/:\d*$/, '').replace(/\.$/, '').toLowerCase();
}

function reply(
  request: IncomingMessage,
  response: ServerResponse,
  status: number,
  text: string,
  headers: Record<string, string> = {},
): void {
  // The rest of an unread body would be parsed as the next request.
  if (!request.complete) response.setHeader('Connection', 'close');
  response.writeHead(status, {
    'Content-Type': 'text/plain; charset=utf-8',
    'Content-Length': Buffer.byteLength(text),
    ...headers,
  });
  response.end(request.method === 'HEAD' ? undefined : text);
}
