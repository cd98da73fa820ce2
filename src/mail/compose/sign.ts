/**
 * DKIM signatures (RFC 6376): relaxed/relaxed, rsa-sha256; if the domain has a second key, also ed25519-sha256 (RFC
 * 8463). mailauth selects and canonicalizes what is signed and writes the field (platform/vendor/mailauth.ts); only the
 * private-key operation is done here, with a key that is parsed once for many mails. RSA is most of the work. It is
 * synchronous, so this file is called in the composing threads.
 */
import { createPrivateKey, hash, type KeyObject, sign as signBytes } from 'node:crypto';
import { LRUCache } from 'lru-cache';
import { dkimBody, generateCanonicalizedHeader, getSigningHeaderLines } from '#platform/vendor/mailauth.ts';
import type { FieldLine } from './field.ts';
import type { MimeMessage } from './mime.ts';

/**
 * The fields that are listed in `h=` once more than they occur, so that none of them can be added to the message without
 * breaking the signature (RFC 6376 section 8.15): readers differ on which of two they show. List-Unsubscribe and
 * List-Unsubscribe-Post must be signed, or receivers ignore one-click unsubscription (RFC 8058 section 4).
 */
const oversigned = [
  'From',
  'Reply-To',
  'To',
  'Cc',
  'Subject',
  'Date',
  'Message-ID',
  'MIME-Version',
  'Content-Type',
  'Content-Transfer-Encoding',
  'List-Id',
  'List-Unsubscribe',
  'List-Unsubscribe-Post',
  'List-Help',
  'List-Subscribe',
  'List-Post',
  'List-Owner',
  'List-Archive',
  'Feedback-ID',
];

const oversignedNames = oversigned.join(': ');

/** The fields that are signed if the message has them, in lower case. */
const signedNames = new Set(
  [...oversigned, 'Sender', 'In-Reply-To', 'References'].map((name) => name.toLowerCase()),
);

interface SigningKey {
  selector: string;
  privateKey: KeyObject;
}

export interface DkimSigner extends SigningKey {
  domain: string;
  second?: SigningKey;
}

/** A key is some kilobytes. */
const maxKeys = 1000;

/**
 * Private keys ready to sign with, each opened and parsed once: OpenSSL also prepares a key at its first signature, and
 * parsing it for every mail would cost more than the signature. Keys are only kept in memory. Throws if a key is
 * neither RSA nor Ed25519.
 */
export function createKeyRing(open: (sealed: string) => string): (sealed: string) => KeyObject {
  const keys = new LRUCache<string, KeyObject>({ max: maxKeys });
  return (sealed) => {
    const known = keys.get(sealed);
    if (known) return known;
    const key = createPrivateKey(open(sealed));
    if (!isEd25519(key) && key.asymmetricKeyType !== 'rsa')
      throw new Error(`not a key for DKIM: ${key.asymmetricKeyType}`);
    keys.set(sealed, key);
    return key;
  };
}

function isEd25519({ asymmetricKeyType }: KeyObject): boolean {
  return asymmetricKeyType === 'ed25519';
}

/**
 * The fields to put on top of the message, one for each key. Throws if a signature cannot be made: no message leaves
 * unsigned. `charset` is the one that the fields' texts are written in.
 */
export function signatures(
  { fields, body }: MimeMessage,
  { second, domain, ...first }: DkimSigner,
  at: number,
  charset: 'utf8' | 'latin1' = 'utf8',
): FieldLine[] {
  const lines = fields.map(({ name, text }) => {
    return { key: name.toLowerCase(), casedKey: name, line: Buffer.from(text, charset) };
  });
  // mailauth reads each name that it is given, so it gets those that the message has.
  const names = lines.flatMap(({ key }) => (signedNames.has(key) ? [key] : []));
  const present = getSigningHeaderLines(lines, names.join(':'));
  // A name in `h=` that has no field left signs its absence (RFC 6376 section 5.4.2).
  const listed = present.keys === '' ? oversignedNames : `${present.keys}: ${oversignedNames}`;
  const signed = { keys: listed, headers: present.headers };
  const bodyHasher = dkimBody('relaxed', 'sha256');
  bodyHasher.update(body);
  const bodyHash = bodyHasher.digest('base64');
  const keys = second ? [first, second] : [first];
  return keys.map(({ selector, privateKey }) => {
    const { canonicalizedHeader, signatureHeaderLine } = generateCanonicalizedHeader('DKIM', signed, {
      signingDomain: domain,
      selector,
      algorithm: isEd25519(privateKey) ? 'ed25519-sha256' : 'rsa-sha256',
      canonicalization: 'relaxed/relaxed',
      bodyHash,
      signTime: new Date(at),
      signature: placeholder.repeat(signatureLength(privateKey)),
    });
    const b = signatureOf(canonicalizedHeader, privateKey).toString('base64');
    return { name: 'DKIM-Signature', text: withSignature(signatureHeaderLine, b) };
  });
}

/** Occurs nowhere else in the field. With it, mailauth folds the field once, as the signature of this length will have it. */
const placeholder = '~';

/** In base64. */
function signatureLength({ asymmetricKeyDetails }: KeyObject): number {
  const bytes = asymmetricKeyDetails?.modulusLength ? asymmetricKeyDetails.modulusLength / 8 : 64;
  return 4 * Math.ceil(bytes / 3);
}

function withSignature(line: string, b: string): string {
  let at = 0;
  return line.replace(/~+/g, (part) => {
    at += part.length;
    return b.slice(at - part.length, at);
  });
}

/** RFC 8463 section 3: Ed25519 signs the hash. */
function signatureOf(bytes: Buffer, key: KeyObject): Buffer {
  if (!isEd25519(key)) return signBytes('sha256', bytes, key);
  return signBytes(null, hash('sha256', bytes, 'buffer'), key);
}
