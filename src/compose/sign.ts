/**
 * The DKIM signature (RFC 6376): relaxed/relaxed, rsa-sha256, over the message as it will be sent; where the domain has
 * a second key, one by ed25519-sha256 (RFC 8463) beside it. To the byte it is
 * what mailauth's own signer makes, in a tenth of the time beside RSA: the key is parsed once for many mails, and the
 * headers, which are fields still, not at all. RSA is nearly all the work, and is done in the thread that calls.
 */
import { createPrivateKey, hash, type KeyObject, sign as signBytes } from 'node:crypto';
import { LRUCache } from 'lru-cache';
import { dkimBody } from '../vendor/mailauth.ts';
import { type FieldLine, field } from './field.ts';
import type { MimeMessage } from './mime.ts';

/**
 * What is signed where it is there: RFC 6376 section 5.4.1, and RFC 8058 section 4's two, without which one-click
 * unsubscription is not honoured.
 */
const signedHeaders = new Set(
  [
    'From',
    'Sender',
    'Reply-To',
    'To',
    'Subject',
    'Date',
    'Message-ID',
    'In-Reply-To',
    'References',
    'MIME-Version',
    'Content-Type',
    'Content-Transfer-Encoding',
    'List-Id',
    'List-Unsubscribe',
    'List-Unsubscribe-Post',
  ].map((name) => name.toLowerCase()),
);

export interface Signer {
  domain: string;
  selector: string;
  privateKey: KeyObject;
  second?: { selector: string; privateKey: KeyObject };
}

/** A key is some kilobytes. */
const maxKeys = 1000;

/**
 * Keys ready to sign with, each opened and parsed once: OpenSSL also prepares a key when it first signs, and parsing
 * it anew for every mail costs as much as the signature. They are in memory only. Throws where the key is neither RSA nor Ed25519.
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

/** The fields to go on top of the message: one for each key. */
export function signatures(
  message: MimeMessage,
  { second, ...signer }: Signer,
  at: number,
  charset?: 'utf8' | 'latin1',
): FieldLine[] {
  const one = sign(message, signer, at, charset);
  return second ? [one, sign(message, { ...signer, ...second }, at, charset)] : [one];
}

/**
 * The field to go on top of the message. Throws where no signature could be made: nothing leaves unsigned. `charset`:
 * what the fields' texts are written in.
 */
export function sign(
  { fields, body }: MimeMessage,
  signer: Signer,
  at: number,
  charset: 'utf8' | 'latin1' = 'utf8',
): FieldLine {
  // From the bottom up, as RFC 6376 section 5.4.2 has it for fields that are there more than once.
  const signed = fields.filter(({ name }) => signedHeaders.has(name.toLowerCase())).reverse();
  const tags = [
    `v=1; a=${isEd25519(signer.privateKey) ? 'ed25519' : 'rsa'}-sha256; c=relaxed/relaxed`,
    `d=${signer.domain}`,
    `h=${signed.map(({ name }) => name).join(': ')}`,
    `q=dns/txt; s=${signer.selector}; t=${Math.floor(at / 1000)}; bh=${bodyHash(body)}`,
  ].join('; ');
  const canonical = [...signed.map(relaxed), `dkim-signature:${tags}; b=`].join('\r\n');
  const signature = signatureOf(Buffer.from(canonical, charset), signer.privateKey).toString('base64');
  const pieces = `b=${signature}`.match(/.{1,75}/g)!;
  return field('DKIM-Signature', `${tags}; ${pieces.join(' ')}`);
}

/** RFC 8463 section 3: Ed25519 signs the hash. */
function signatureOf(bytes: Buffer, key: KeyObject): Buffer {
  if (!isEd25519(key)) return signBytes('sha256', bytes, key);
  return signBytes(null, hash('sha256', bytes, 'buffer'), key);
}

/** RFC 6376 section 3.4.2. */
function relaxed({ name, text }: FieldLine): string {
  const value = text.slice(name.length + 1).replace(/[ \t\r\n]+/g, ' ');
  return `${name.toLowerCase()}:${value.replace(/^ | $/g, '')}`;
}

/**
 * RFC 6376 section 3.4.4: white space at a line's end goes, other white space becomes one space, empty lines at the
 * end go. Most bodies have no white space to change and hash as they are: looking for it is a small part of the work
 * of rewriting.
 */
function bodyHash(body: Buffer): string {
  const isToChange = body.includes('\t') || / [ \r]/.test(body.toString('latin1')) || body.at(-1) !== 0x0a;
  if (!isToChange) return hash('sha256', withoutEmptyEnd(body), 'base64');
  const canonical = dkimBody('relaxed', 'sha256');
  canonical.update(body);
  return canonical.digest('base64');
}

function withoutEmptyEnd(body: Buffer): Buffer {
  let end = body.length;
  while (end >= 2 && body[end - 2] === 0x0d && body[end - 1] === 0x0a) end -= 2;
  return body.subarray(0, end === 0 ? 0 : end + 2);
}
