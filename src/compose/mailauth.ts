/**
 * mailauth's steps of a DKIM signature one by one, with types for what we use of them. Its front door takes the key
 * as PEM and parses it for every mail, streams the message, and signs in the thread that calls it.
 */
import { createRequire } from 'node:module';

interface HeaderLine {
  /** The field's name in lower case. */
  key: string;
}

interface SigningLines {
  headers: HeaderLine[];
}

interface Signature {
  signingDomain: string;
  selector: string;
  algorithm: 'rsa-sha256';
  canonicalization: 'relaxed/relaxed';
  /** Base64. */
  bodyHash: string;
  /** Seconds. */
  timestamp: number;
}

/** The tags of a signature; `b` is the signature itself, base64. */
type Tags = Record<string, unknown> & { b?: string };

interface Tools {
  parseHeaders(head: Buffer): { parsed: HeaderLine[] };
  /** `names`: colons between them. */
  getSigningHeaderLines(headers: HeaderLine[], names: string): SigningLines;
  formatSignatureHeaderLine(type: 'DKIM', tags: Tags, folded: true): string;
}

interface BodyHash {
  update(chunk: Buffer): void;
  digest(encoding: 'base64'): string;
}

const require = createRequire(import.meta.url);

export const { parseHeaders, getSigningHeaderLines, formatSignatureHeaderLine }: Tools =
  require('mailauth/lib/tools');

export const { dkimBody }: { dkimBody(canonicalization: 'relaxed', algorithm: 'sha256'): BodyHash } =
  require('mailauth/lib/dkim/body');

export const {
  generateCanonicalizedHeader,
}: {
  generateCanonicalizedHeader(
    type: 'DKIM',
    lines: SigningLines,
    signature: Signature,
  ): { canonicalizedHeader: Buffer; dkimHeaderOpts: Tags };
} = require('mailauth/lib/dkim/header');
