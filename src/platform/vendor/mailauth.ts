/**
 * The parts of mailauth's DKIM signer, read in version 7.1.0, which package.json pins. Its public signer takes the
 * private key as PEM and parses it for every message, which costs more than the RSA operation, and it streams the
 * message. Here mailauth selects and canonicalizes the header fields and the body and writes the signature field; only
 * the private-key operation is Postern's (mail/compose/sign.ts). These parts take about 50 µs for a mail of 4 KB, beside 250 µs
 * for RSA, and 14 MB of modules in each thread that signs.
 *
 * mailauth's `parseHeaders` is not used: its time grows with the square of a field's lines, to seconds at 100 KB.
 */
import { createRequire } from 'node:module';

interface HeaderLine {
  /** In lower case. */
  key: string;
  /** As written. */
  casedKey: string;
  /** The whole field, folded, without its last CRLF. */
  line: Buffer;
}

/** The selected fields and the value of the `h=` tag. */
interface SigningHeaderLines {
  headers: HeaderLine[];
  keys: string;
}

interface SignatureOptions {
  signingDomain: string;
  selector: string;
  algorithm: 'rsa-sha256' | 'ed25519-sha256';
  canonicalization: 'relaxed/relaxed';
  bodyHash: string;
  signTime: Date;
  /** The value of `b=`. */
  signature: string;
}

interface BodyHash {
  update(chunk: Buffer): void;
  digest(encoding: 'base64'): string;
}

const require = createRequire(import.meta.url);

export const {
  getSigningHeaderLines,
}: {
  /** `fieldNames`: separated by colons. */
  getSigningHeaderLines(headers: readonly HeaderLine[], fieldNames: string): SigningHeaderLines;
} = require('mailauth/lib/tools');

export const {
  generateCanonicalizedHeader,
}: {
  generateCanonicalizedHeader(
    type: 'DKIM',
    lines: SigningHeaderLines,
    options: SignatureOptions,
  ): {
    /** The bytes that are signed; without the value of `b=`. */
    canonicalizedHeader: Buffer;
    /** The field, folded. */
    signatureHeaderLine: string;
  };
} = require('mailauth/lib/dkim/header');

export const { dkimBody }: { dkimBody(canonicalization: 'relaxed', algorithm: 'sha256'): BodyHash } =
  require('mailauth/lib/dkim/body');
