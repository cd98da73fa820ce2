/**
 * The two TLS offers that we make to a host, and what came of one.
 *
 * The first offer is TLS 1.2 or newer with Node's ciphers and groups, the post-quantum X25519MLKEM768 among them. Many old hosts
 * cannot meet it, and some break off at a ClientHello of more than one packet. If nothing demands TLS, they get the second
 * offer: any TLS is better than clear text (RFC 7435 section 3), even TLS 1.0, a 1024-bit key or no certificate.
 */
import { constants } from 'node:crypto';
import type { Socket } from 'node:net';
import { createSecureContext, type SecureContext, TLSSocket } from 'node:tls';

export type TlsOffer = 'modern' | 'legacy';

/** Created once each, because they contain the certificates of all public authorities. */
const contexts: Partial<Record<TlsOffer, SecureContext>> = {};

export function secureContextOf(offer: TlsOffer): SecureContext {
  contexts[offer] ??= offer === 'modern' ? createSecureContext() : createLegacyContext();
  return contexts[offer];
}

function createLegacyContext(): SecureContext {
  return createSecureContext({
    minVersion: 'TLSv1',
    // Ciphers without a certificate come last.
    ciphers: 'ALL:!eNULL:+aNULL@SECLEVEL=0',
    ecdhCurve: 'X25519:P-256:P-384:P-521',
    // Hosts without secure renegotiation (RFC 5746).
    secureOptions: constants.SSL_OP_LEGACY_SERVER_CONNECT,
  });
}

/** The protection of a connection, read once, because it does not change. */
export interface Handshake {
  socket: TLSSocket;
  offer: TlsOffer;
  protocol: string;
  cipher: string;
  group: string | null;
}

/** Null without TLS. */
export function handshakeOf(socket: Socket, offer: TlsOffer): Handshake | null {
  const protocol = socket instanceof TLSSocket ? socket.getProtocol() : null;
  if (!(socket instanceof TLSSocket) || protocol === null) return null;
  const cipher = socket.getCipher()?.standardName ?? 'unknown';
  return { socket, offer, protocol, cipher, group: groupOf(socket) };
}

/** OpenSSL's names of NIST's curves, which nobody else uses. */
const curves: Record<string, string> = { prime256v1: 'P-256', secp384r1: 'P-384', secp521r1: 'P-521' };

/** Null if the host's RSA key itself encrypted the secret, as up to TLS 1.2. */
function groupOf(socket: TLSSocket): string | null {
  // Typed too narrowly: since OpenSSL 3.5, `type` may also be TLSGroup.
  const info = socket.getEphemeralKeyInfo() as { type?: string; name?: string; size?: number } | null;
  if (!info?.type) return null;
  if (info.name) return curves[info.name] ?? info.name;
  return info.size ? `${info.type}-${info.size}` : info.type;
}
