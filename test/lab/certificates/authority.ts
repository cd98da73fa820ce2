/**
 * A certificate authority for the tests: an ACME server (RFC 8555) on loopback that checks challenges as a real one does, issues
 * certificates of its own authority, and does as a test says:
 *
 *   const authority = await startAuthority(t, { httpPort, tlsPort });
 *   authority.script = (path) => (path === '/order' ? { status: 429, headers: { 'retry-after': '600' } } : undefined);
 *
 * Signatures and nonces are not checked; Pebble does that (test/slow).
 */
import { createPublicKey, generateKeyPairSync, hash, randomBytes, sign, X509Certificate } from 'node:crypto';
import { once } from 'node:events';
import { writeFile } from 'node:fs/promises';
import { request as httpRequest, type IncomingMessage } from 'node:http';
import { createServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { connect } from 'node:tls';
import { AsnConvert, OctetString } from '@peculiar/asn1-schema';
import {
  AlgorithmIdentifier,
  AttributeTypeAndValue,
  AttributeValue,
  AuthorityKeyIdentifier,
  BasicConstraints,
  Certificate,
  Extension,
  Extensions,
  GeneralName,
  id_ce_authorityKeyIdentifier,
  id_ce_basicConstraints,
  id_ce_subjectAltName,
  KeyIdentifier,
  Name,
  RelativeDistinguishedName,
  SubjectAlternativeName,
  SubjectPublicKeyInfo,
  TBSCertificate,
  Validity,
  Version,
} from '@peculiar/asn1-x509';
import type { ExecutionContext } from 'ava';
import { selfSigned } from '#operate/certificates/self-signed.ts';
import { temporaryDirectory } from '../evidence.ts';

interface Reply {
  status: number;
  headers?: Record<string, string>;
  body?: unknown;
}

interface Order {
  host: string;
  replaces: string | null;
  at: number;
  status: 'pending' | 'ready' | 'valid' | 'invalid';
  error: { type: string; detail: string } | null;
  token: string;
  chain: string | null;
}

export interface AuthorityOptions {
  /** Where challenges are checked; by default at 127.0.0.1. */
  checkedAt?: string;
  httpPort?: number | null;
  tlsPort?: number | null;
  now?: () => number;
  lifeMs?: number;
}

export type TestAuthority = Awaited<ReturnType<typeof startAuthority>>;

export async function startAuthority(t: ExecutionContext, options: AuthorityOptions = {}) {
  const { now = Date.now, checkedAt = '127.0.0.1' } = options;
  const web = selfSigned('localhost', Date.now());
  const issuer = createIssuer();
  const orders: Order[] = [];
  /** Method and path of every request. */
  const requests: string[] = [];
  const state = {
    lifeMs: options.lifeMs ?? 90 * 86_400_000,
    script: (_path: string): Reply | 'silence' | undefined => undefined,
    /** RFC 9773; null: no renewal information is offered. */
    window: null as { start: number; end: number; retryAfter?: number } | null,
  };
  const server = createServer({ cert: web.cert, key: web.key }, async (request, response) => {
    const path = request.url!;
    requests.push(`${request.method} ${path}`);
    const body = await text(request);
    const reply = state.script(path) ?? (await answer(request.method!, path, body));
    if (reply === 'silence') return;
    response.writeHead(reply.status, { 'replay-nonce': randomBytes(8).toString('hex'), ...reply.headers });
    response.end(typeof reply.body === 'string' ? reply.body : JSON.stringify(reply.body ?? {}));
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  t.teardown(() => {
    server.closeAllConnections();
    server.close();
  });
  const { port } = server.address() as AddressInfo;
  const base = `https://localhost:${port}`;

  const orderBody = (order: Order, at: number) => ({
    status: order.status,
    identifiers: [{ type: 'dns', value: order.host }],
    authorizations: [`${base}/authz/${at}`],
    finalize: `${base}/finalize/${at}`,
    ...(order.chain && { certificate: `${base}/cert/${at}` }),
    ...(order.error && { error: order.error }),
  });

  async function answer(method: string, path: string, body: string): Promise<Reply> {
    const [, kind, id] = path.split('/');
    const at = Number(id);
    const order = orders[at];
    const payload = body === '' ? null : readPayload(body);
    switch (kind) {
      case 'dir':
        return {
          status: 200,
          body: {
            newNonce: `${base}/nonce`,
            newAccount: `${base}/account`,
            newOrder: `${base}/order`,
            ...(state.window && { renewalInfo: `${base}/renewal` }),
          },
        };
      case 'nonce':
        return { status: 200 };
      case 'account':
        return { status: 201, headers: { location: `${base}/account/1` }, body: { status: 'valid' } };
      case 'order': {
        if (order) return { status: 200, body: orderBody(order, at) };
        const host: string = payload.identifiers[0].value;
        const made: Order = {
          host,
          replaces: payload.replaces ?? null,
          at: now(),
          status: 'pending',
          error: null,
          token: randomBytes(16).toString('base64url'),
          chain: null,
        };
        const number = orders.push(made) - 1;
        return {
          status: 201,
          headers: { location: `${base}/order/${number}` },
          body: orderBody(made, number),
        };
      }
      case 'authz':
        return { status: 200, body: authorizationBody(order!, at) };
      case 'chall': {
        const type = path.split('/')[3]!;
        void check(order!, type).then((error) => {
          order!.status = error === null ? 'ready' : 'invalid';
          order!.error = error;
        });
        return {
          status: 200,
          body: { type, status: 'processing', url: `${base}${path}`, token: order!.token },
        };
      }
      case 'finalize': {
        const spki = publicKeyOf(Buffer.from(payload.csr, 'base64url'));
        order!.chain = issuer.issue(order!.host, spki, now(), state.lifeMs);
        order!.status = 'valid';
        return { status: 200, body: orderBody(order!, at) };
      }
      case 'cert':
        return {
          status: 200,
          headers: { 'content-type': 'application/pem-certificate-chain' },
          body: order!.chain,
        };
      case 'renewal': {
        const { start, end, retryAfter = 21_600 } = state.window!;
        const suggestedWindow = { start: new Date(start).toISOString(), end: new Date(end).toISOString() };
        return { status: 200, headers: { 'retry-after': String(retryAfter) }, body: { suggestedWindow } };
      }
      default:
        return { status: 404, body: problem('malformed', `${method} ${path}`) };
    }
  }

  const authorizationBody = (order: Order, at: number) => ({
    status: order.status === 'pending' ? 'pending' : order.status === 'invalid' ? 'invalid' : 'valid',
    identifier: { type: 'dns', value: order.host },
    challenges: ['http-01', 'tls-alpn-01'].map((type) => ({
      type,
      url: `${base}/chall/${at}/${type}`,
      token: order.token,
      status: 'pending',
      ...(order.error && { error: order.error }),
    })),
  });

  async function check({ host, token }: Order, type: string): Promise<Order['error']> {
    try {
      const found =
        type === 'http-01'
          ? await askHttp({ host: checkedAt, port: options.httpPort! }, host, token)
          : await askTls({ host: checkedAt, port: options.tlsPort! }, host);
      const isRight = type === 'http-01' ? found.startsWith(`${token}.`) : found !== '';
      return isRight ? null : problem('unauthorized', `the answer of ${host} is wrong`);
    } catch (error) {
      return problem('connection', `${host}: ${(error as Error).message}`);
    }
  }

  const caFile = join(await temporaryDirectory(t), 'acme-ca.pem');
  await writeFile(caFile, web.cert);
  return Object.assign(state, {
    orders,
    requests,
    /** What clients trust. */
    root: issuer.root,
    /** Issues without an order. */
    issue(host: string, at = now()) {
      const { publicKey, privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
      const spki = publicKey.export({ type: 'spki', format: 'der' });
      return {
        chain: issuer.issue(host, spki, at, state.lifeMs),
        key: privateKey.export({ type: 'pkcs8', format: 'pem' }) as string,
      };
    },
    settings: {
      POSTERN_ACME: 'admin@postern.invalid',
      POSTERN_ACME_DIRECTORY: `${base}/dir`,
      POSTERN_ACME_CA: caFile,
      POSTERN_ACME_HOST: '127.0.0.1',
    },
  });
}

export const problem = (type: string, detail: string) => ({
  type: `urn:ietf:params:acme:error:${type}`,
  detail,
});

// biome-ignore lint/suspicious/noExplicitAny: the client's words
function readPayload(body: string): any {
  const { payload } = JSON.parse(body);
  return payload === '' ? null : JSON.parse(Buffer.from(payload, 'base64url').toString());
}

interface Place {
  host: string;
  port: number;
}

async function askHttp(place: Place, host: string, token: string): Promise<string> {
  const path = `/.well-known/acme-challenge/${token}`;
  const response = await new Promise<IncomingMessage>((resolve, reject) => {
    httpRequest({ ...place, path, headers: { host } }, resolve)
      .on('error', reject)
      .end();
  });
  return text(response);
}

/** RFC 8737: the extension's value in hexadecimal; empty if there is none. */
function askTls(place: Place, host: string): Promise<string> {
  return new Promise((resolve, reject) => {
    const options = { ...place, servername: host, ALPNProtocols: ['acme-tls/1'] };
    const socket = connect({ ...options, rejectUnauthorized: false }, () => {
      const { tbsCertificate } = AsnConvert.parse(socket.getPeerX509Certificate()!.raw, Certificate);
      const found = tbsCertificate.extensions?.find(({ extnID }) => extnID === '1.3.6.1.5.5.7.1.31');
      socket.destroy();
      resolve(
        socket.alpnProtocol === 'acme-tls/1' && found?.critical
          ? Buffer.from(found.extnValue.buffer).toString('hex')
          : '',
      );
    });
    socket.once('error', reject);
  });
}

/** The public key of a certificate request (RFC 2986 section 4): the third member of its first member. */
function publicKeyOf(request: Buffer): Buffer {
  const [info] = membersOf(request);
  const [, , key] = membersOf(info!);
  return key!;
}

function membersOf(der: Buffer): Buffer[] {
  const members: Buffer[] = [];
  for (let at = headerOf(der, 0).header; at < der.length; ) {
    const { header, length } = headerOf(der, at);
    members.push(der.subarray(at, at + header + length));
    at += header + length;
  }
  return members;
}

function headerOf(der: Buffer, at: number): { header: number; length: number } {
  const first = der[at + 1]!;
  if (first < 0x80) return { header: 2, length: first };
  const count = first & 0x7f;
  return { header: 2 + count, length: der.readUIntBE(at + 2, count) };
}

/** As Let's Encrypt does, for clients whose clock is behind. */
const backdatedMs = 3_600_000;

const ecdsaWithSha256 = '1.2.840.10045.4.3.2';

function nameOf(text: string): Name {
  const value = new AttributeValue({ utf8String: text });
  return new Name([new RelativeDistinguishedName([new AttributeTypeAndValue({ type: '2.5.4.3', value })])]);
}

function createIssuer() {
  const { publicKey, privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
  const spki = publicKey.export({ type: 'spki', format: 'der' });
  const keyId = new KeyIdentifier(hash('sha1', spki, 'buffer'));
  const extension = (extnID: string, value: unknown, critical = false) =>
    new Extension({ extnID, critical, extnValue: new OctetString(AsnConvert.serialize(value)) });
  const make = (subject: string, key: Buffer, from: number, to: number, extensions: Extension[]) => {
    const algorithm = new AlgorithmIdentifier({ algorithm: ecdsaWithSha256 });
    const tbsCertificate = new TBSCertificate({
      version: Version.v3,
      serialNumber: Uint8Array.from([1, ...randomBytes(15)]).buffer,
      signature: algorithm,
      issuer: nameOf('Authority of the tests'),
      validity: new Validity({ notBefore: new Date(from), notAfter: new Date(to) }),
      subject: nameOf(subject),
      subjectPublicKeyInfo: AsnConvert.parse(key, SubjectPublicKeyInfo),
      extensions: new Extensions(extensions),
    });
    const signature = sign('sha256', Buffer.from(AsnConvert.serialize(tbsCertificate)), privateKey);
    const whole = new Certificate({
      tbsCertificate,
      signatureAlgorithm: algorithm,
      signatureValue: Uint8Array.from(signature).buffer,
    });
    return new X509Certificate(Buffer.from(AsnConvert.serialize(whole))).toString();
  };
  const [begin, end] = [Date.UTC(2020, 0), Date.UTC(2049, 0)];
  const constraints = extension(id_ce_basicConstraints, new BasicConstraints({ cA: true }), true);
  return {
    root: make('Authority of the tests', spki, begin, end, [constraints]),
    issue(host: string, key: Buffer, from: number, lifeMs: number): string {
      createPublicKey({ key, format: 'der', type: 'spki' });
      const names = new SubjectAlternativeName([new GeneralName({ dNSName: host })]);
      const authority = new AuthorityKeyIdentifier({ keyIdentifier: keyId });
      const [begin, end] = [from - backdatedMs, from - backdatedMs + lifeMs];
      return make(host, key, begin, end, [
        extension(id_ce_subjectAltName, names),
        extension(id_ce_authorityKeyIdentifier, authority),
      ]);
    },
  };
}
