/**
 * The protection that a connection must have, and the check whether it has it.
 *
 * The handshake accepts any certificate (RFC 7435). It is checked against the demand here before any part of a mail is
 * sent. Only 'off' and 'opportunistic' allow a connection without TLS.
 */
import type { X509Certificate } from 'node:crypto';
import type { TLSSocket } from 'node:tls';
import type { MailTls, TlsaRecord, TlsFailureType, TlsFloor, TlsUsed } from '#platform/values/glossary.ts';
import type { Handshake } from './handshake.ts';
import { tlsaMismatch } from './match-tlsa.ts';

export type Demand = { policy: 'off' | TlsFloor | 'mta-sts' } | { policy: 'dane'; records: TlsaRecord[] };

/** The demand of the domain's own policy, from the route. DANE: only usable records. */
type HostPolicy = { policy: 'opportunistic' | 'mta-sts' } | { policy: 'dane'; records: TlsaRecord[] };

const ladder = ['off', 'opportunistic', 'encrypted', 'verified', 'mta-sts', 'dane'];

/** The strongest of the demands of the host's policy, the destination's shape and the sender. */
export function demandOf(published: HostPolicy, shape: TlsFloor | 'off', mail: MailTls): Demand {
  // RFC 8689: REQUIRETLS demands a valid certificate; TLS-Required: No asks to ignore what the recipient's domain demands.
  const host: HostPolicy = mail === 'not-required' ? { policy: 'opportunistic' } : published;
  const sender = mail === 'requiretls' ? 'verified' : mail === 'not-required' ? 'opportunistic' : mail;
  // 'off' is weaker than every demand of the sender.
  const fallback = shape === 'off' && sender === 'opportunistic' ? 'off' : sender;
  const demands: Demand[] = [{ policy: shape }, { policy: fallback }];
  if (host.policy === 'mta-sts') demands.push({ policy: 'mta-sts' });
  // RFC 7672 section 2.2: if no record is usable, they still say that the host supports TLS.
  if (host.policy === 'dane') demands.push(host.records.length > 0 ? host : { policy: 'encrypted' });
  return demands.reduce((one, other) => (rank(other) > rank(one) ? other : one));
}

const rank = ({ policy }: Demand) => ladder.indexOf(policy);

/** Clear text is acceptable. */
export function allowsClear({ policy }: Demand): boolean {
  return policy === 'off' || policy === 'opportunistic';
}

export interface Protection {
  /** Null without TLS. */
  tls: TlsUsed | null;
  /** One sentence: what protects the connection. */
  note: string;
  /** Why the demand is not met, in one sentence; null if it is. */
  unmet: string | null;
  /** The failure of the certificate; null if it satisfies the policy, or there is no TLS. */
  certificateFailure: TlsFailureType | null;
}

/** As in "gives no TLS, which …". */
const demanding: Record<Demand['policy'], string> = {
  off: 'is not demanded',
  opportunistic: 'is not demanded',
  encrypted: 'is demanded for this mail',
  verified: 'is demanded for this mail',
  'mta-sts': "the domain's MTA-STS policy demands",
  dane: 'DANE demands',
};

/** `names`: the host's, and the domain whose mail it takes. */
export function protectionOf(
  handshake: Handshake | null,
  demand: Demand,
  names: { host: string; domain: string },
): Protection {
  const demands = demanding[demand.policy];
  if (!handshake) {
    const unmet = allowsClear(demand) ? null : `${names.host} gives no TLS, which ${demands}`;
    return { tls: null, note: 'in clear', unmet, certificateFailure: null };
  }
  const { socket, offer, protocol, cipher, group } = handshake;
  const mismatch =
    demand.policy === 'dane'
      ? tlsaMismatch(demand.records, chainOf(socket), [names.host, names.domain])
      : authorityMismatch(socket, names.host);
  const policy = demand.policy === 'off' ? 'opportunistic' : demand.policy;
  const verified = mismatch === null;
  const proof = verified ? `verified (${policy})` : `not verified: ${mismatch}`;
  const parts = [protocol, cipher, ...(group === null ? [] : [group])].join(' ');
  return {
    tls: { protocol, cipher, group, verified, policy },
    note: `${parts}${offer === 'legacy' ? ' (outdated TLS allowed)' : ''}, ${proof}`,
    unmet: allowsClear(demand) ? null : lackOf(handshake, demand, mismatch, names.host),
    certificateFailure: verified
      ? null
      : demand.policy === 'dane'
        ? 'validation-failure'
        : certificateFailureOf(socket),
  };
}

function lackOf({ offer }: Handshake, { policy }: Demand, mismatch: string | null, host: string) {
  if (offer === 'legacy') return `${host} gave no sound TLS, which ${demanding[policy]}`;
  if (mismatch === null || policy === 'encrypted') return null;
  return `${host} does not prove who it is, which ${demanding[policy]}: ${mismatch}`;
}

function certificateFailureOf({ authorizationError }: TLSSocket): TlsFailureType {
  // Typed as an Error; it is a code.
  const code = String(authorizationError);
  if (code === 'CERT_HAS_EXPIRED') return 'certificate-expired';
  return code === 'ERR_TLS_CERT_ALTNAME_INVALID' ? 'certificate-host-mismatch' : 'certificate-not-trusted';
}

/** The failure that Node found in chain, dates or name; null if there is none. */
function authorityMismatch(socket: TLSSocket, host: string): string | null {
  if (socket.authorized) return null;
  // Typed as an Error; it is a code.
  const reason = String(socket.authorizationError);
  if (reason !== 'ERR_TLS_CERT_ALTNAME_INVALID') return certificateFailures[reason] ?? unknownFailure(reason);
  const { subjectaltname, subject } = socket.getPeerCertificate();
  return `its certificate is for ${subjectaltname ?? `CN:${subject?.CN}`}, not for ${host}`;
}

/** OpenSSL's verification errors (X509_V_ERR_…), as Node names them. */
const certificateFailures: Record<string, string> = {
  CERT_HAS_EXPIRED: 'its certificate has expired',
  CERT_NOT_YET_VALID: 'its certificate is not valid yet',
  CERT_REVOKED: 'its certificate has been revoked',
  DEPTH_ZERO_SELF_SIGNED_CERT: 'its certificate is self-signed',
  SELF_SIGNED_CERT_IN_CHAIN: 'its certificate is from an unknown authority',
  UNABLE_TO_GET_ISSUER_CERT: 'its certificate is from an unknown authority',
  UNABLE_TO_GET_ISSUER_CERT_LOCALLY: 'its certificate is from an unknown authority',
  UNABLE_TO_VERIFY_LEAF_SIGNATURE: 'its certificate comes without that of its authority',
};

function unknownFailure(reason: string): string {
  return `its certificate was not accepted: ${reason.toLowerCase().replaceAll('_', ' ')}`;
}

/** As the host sent it, leaf first. */
function chainOf(socket: TLSSocket): X509Certificate[] {
  const chain: X509Certificate[] = [];
  const maxCertificates = 20;
  let next = socket.getPeerX509Certificate();
  while (next && chain.length < maxCertificates) {
    chain.push(next);
    next = next.issuerCertificate;
  }
  return chain;
}
