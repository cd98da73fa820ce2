/**
 * The conversation with the certificate authority (RFC 8555), through acme-client: an order for one host, and the time that the
 * authority suggests for a renewal (RFC 9773). acme-client is loaded with the first order. Every failure is an AcmeFailure.
 */
import { createPublicKey, generateKeyPairSync, X509Certificate } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { createSecureContext } from 'node:tls';
import { AsnConvert } from '@peculiar/asn1-schema';
import {
  Certificate as AsnCertificate,
  AuthorityKeyIdentifier,
  id_ce_authorityKeyIdentifier,
} from '@peculiar/asn1-x509';
import type { Client, Order } from 'acme-client';
import {
  AcmeFailure,
  acmeAdapter,
  getJson,
  readProblem,
  type Transport,
  transports,
} from './acme-transport.ts';
import type { RenewalWindow, Validity } from './renewal-schedule.ts';

type AcmeModule = typeof import('acme-client');

export interface AuthorityParts {
  directory: string;
  /** Our mail address. */
  contact: string;
  /** PEM. */
  accountKey: string;
  /** PEM of the authority that the directory is served with; null: Node's authorities. */
  ca: string | null;
  signal: AbortSignal;
  /** Between two looks at an order. */
  pollMs?: number;
}

export type ChallengeType = 'http-01' | 'tls-alpn-01';

export interface CertificateOrder {
  host: string;
  /** In the order of preference. */
  challenges: readonly ChallengeType[];
  /** The certificate that is renewed, for the authority's limits (RFC 9773 section 5); null: none. */
  replaces: string | null;
  /** Makes the answer available to the authority, on every node. */
  publish(challenge: { token: string; keyAuthorization: string }): Promise<void>;
}

export interface Issued extends Validity {
  chain: string;
  privateKey: string;
}

const defaultPollMs = 3_000;
/** The authority's check and the signature take seconds; some authorities take minutes. */
const maxPolls = 60;
const maxRetryAfterMs = 60_000;

export class Authority {
  readonly #parts: AuthorityParts;
  #module: AcmeModule | null = null;
  /** Has the registered account. */
  #client: Client | null = null;
  /** The URL of suggested times; null: the authority suggests none. */
  #renewalInfo: string | null | undefined;

  constructor(parts: AuthorityParts) {
    this.#parts = parts;
  }

  async order(order: CertificateOrder): Promise<Issued> {
    try {
      return await transports.run(this.#newTransport(), () => this.#order(order));
    } catch (error) {
      // The authority may have lost the account: the next order registers it again.
      this.#client = null;
      this.#renewalInfo = undefined;
      if (error instanceof AcmeFailure || this.#parts.signal.aborted) throw error;
      // acme-client's own errors: the authority breaks the protocol.
      throw new AcmeFailure((error as Error).message, { kind: 'authority', type: 'authority' });
    }
  }

  /** Null: the authority suggests none, or cannot be asked now. */
  async renewalWindow(chain: string): Promise<RenewalWindow | null> {
    try {
      const transport = this.#newTransport();
      if (this.#renewalInfo === undefined) {
        const { body } = await getJson(this.#parts.directory, transport);
        const { renewalInfo } = body as { renewalInfo?: unknown };
        this.#renewalInfo = typeof renewalInfo === 'string' ? renewalInfo.replace(/\/$/, '') : null;
      }
      const id = certificateId(chain);
      if (this.#renewalInfo === null || id === null) return null;
      const { body, retryAfterMs } = await getJson(`${this.#renewalInfo}/${id}`, transport);
      const { start, end } = (body as { suggestedWindow: { start: string; end: string } }).suggestedWindow;
      const window = { start: Date.parse(start), end: Date.parse(end), retryAfterMs };
      return window.start <= window.end ? window : null;
    } catch {
      return null;
    }
  }

  #newTransport(): Transport {
    const { ca, signal } = this.#parts;
    return { ca, signal, retryAfterMs: null };
  }

  async #order({ host, challenges, replaces, publish }: CertificateOrder): Promise<Issued> {
    const acme = await this.#load();
    const client = await this.#register(acme);
    const identifiers = [{ type: 'dns', value: host }];
    const id = replaces === null ? null : certificateId(replaces);
    const replaced = id === null ? {} : { replaces: id };
    const order = await client.createOrder({ identifiers, ...replaced } as Parameters<
      Client['createOrder']
    >[0]);
    const [authorization] = await client.getAuthorizations(order);
    if (authorization?.status === 'pending') {
      const offered = authorization.challenges;
      const type = challenges.find((one) => offered.some((challenge) => challenge.type === one));
      const challenge = offered.find((one) => one.type === type);
      if (!challenge) {
        const text = `the authority offers none of ${challenges.join(', ')} for ${host}`;
        throw new AcmeFailure(text, { kind: 'host', type: 'unsupportedChallenge' });
      }
      const keyAuthorization = await client.getChallengeKeyAuthorization(challenge);
      await publish({ token: challenge.token, keyAuthorization });
      await client.completeChallenge(challenge);
    }
    await this.#poll(client, order, ['ready', 'valid']);
    const { privateKey } = generateKeyPairSync('ec', {
      namedCurve: 'P-256',
      publicKeyEncoding: { type: 'spki', format: 'pem' },
      privateKeyEncoding: { type: 'pkcs8', format: 'pem' },
    });
    const [, request] = await acme.crypto.createCsr({ altNames: [host] }, privateKey);
    await client.finalizeOrder(order, request);
    const done = await this.#poll(client, order, ['valid']);
    return checked(await client.getCertificate(done), privateKey, host);
  }

  async #load(): Promise<AcmeModule> {
    this.#module ??= await import('acme-client');
    const { defaults } = this.#module.axios;
    defaults.adapter = acmeAdapter as unknown as typeof defaults.adapter;
    return this.#module;
  }

  /** With the same key, the authority finds the account that it has. */
  async #register(acme: AcmeModule): Promise<Client> {
    if (this.#client) return this.#client;
    const { directory, accountKey, contact } = this.#parts;
    const client = new acme.Client({ directoryUrl: directory, accountKey });
    try {
      await client.createAccount({ termsOfServiceAgreed: true, contact: [`mailto:${contact}`] });
    } catch (error) {
      // A problem with the account concerns every host.
      if (!(error instanceof AcmeFailure) || error.kind !== 'host') throw error;
      throw new AcmeFailure(error.message, { kind: 'authority', type: error.type });
    }
    this.#client = client;
    return client;
  }

  /** RFC 8555 section 7.1.6: an order becomes `ready`, `valid`, or, if a check has failed, `invalid`. */
  async #poll(client: Client, order: Order, until: Order['status'][]): Promise<Order> {
    for (let polls = 0; polls < maxPolls; polls++) {
      const now = await client.getOrder(order);
      if (until.includes(now.status)) return now;
      if (now.status === 'invalid') throw await this.#refusal(client, now);
      const { pollMs = defaultPollMs, signal } = this.#parts;
      const askedMs = Math.min(transports.getStore()!.retryAfterMs ?? 0, maxRetryAfterMs);
      await sleep(Math.max(pollMs, askedMs), null, { signal });
    }
    throw new AcmeFailure('the order is not complete after minutes', {
      kind: 'authority',
      type: 'authority',
    });
  }

  async #refusal(client: Client, order: Order): Promise<AcmeFailure> {
    const authorizations = await client.getAuthorizations(order);
    const errors = authorizations.flatMap(({ challenges }) =>
      challenges.map((one) => (one as { error?: unknown }).error),
    );
    const { type, detail } = readProblem(errors.find(Boolean) ?? (order as { error?: unknown }).error);
    const text = detail || 'the authority gives no reason';
    return new AcmeFailure(text, { kind: 'host', type: type || 'refused' });
  }
}

/** An authority that answers with something else than was ordered must not take the place of a certificate that works. */
function checked(chain: string, privateKey: string, host: string): Issued {
  const certificate = new X509Certificate(chain);
  const [notBefore, notAfter] = [Date.parse(certificate.validFrom), Date.parse(certificate.validTo)];
  const fits =
    certificate.checkHost(host) !== undefined && certificate.publicKey.equals(createPublicKey(privateKey));
  if (!fits || !(notBefore < notAfter)) {
    const text = `the authority has sent a certificate that is not the one of the order for ${host}`;
    throw new AcmeFailure(text, { kind: 'authority', type: 'authority' });
  }
  try {
    // Reads every certificate of the chain.
    createSecureContext({ cert: chain, key: privateKey });
  } catch (error) {
    const text = `the authority has sent a chain for ${host} that cannot be used: ${(error as Error).message}`;
    throw new AcmeFailure(text, { kind: 'authority', type: 'authority' });
  }
  return { chain, privateKey, notBefore, notAfter };
}

/** RFC 9773 section 4.1: the authority's key identifier and the serial number; null if the certificate lacks the former. */
function certificateId(chain: string): string | null {
  const { tbsCertificate } = AsnConvert.parse(new X509Certificate(chain).raw, AsnCertificate);
  const extension = tbsCertificate.extensions?.find(({ extnID }) => extnID === id_ce_authorityKeyIdentifier);
  if (!extension) return null;
  const { keyIdentifier } = AsnConvert.parse(extension.extnValue, AuthorityKeyIdentifier);
  if (!keyIdentifier) return null;
  const parts = [keyIdentifier.buffer, tbsCertificate.serialNumber];
  return parts.map((part) => Buffer.from(part).toString('base64url')).join('.');
}
