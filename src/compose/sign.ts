/**
 * The DKIM signature (RFC 6376): relaxed/relaxed, rsa-sha256, over the message as it will be sent. The canonical
 * forms and the header are mailauth's, so the bytes are those that its own signer makes; the key is parsed once for
 * many mails. RSA is nearly all the work, and is done in the thread that calls.
 */
import { createHash, createPrivateKey, type KeyObject, sign as signBytes } from 'node:crypto';
import { LRUCache } from 'lru-cache';
import {
  dkimBody,
  formatSignatureHeaderLine,
  generateCanonicalizedHeader,
  getSigningHeaderLines,
  parseHeaders,
} from './mailauth.ts';

/**
 * What is signed where it is there: RFC 6376 section 5.4.1, and RFC 8058 section 4's two, without which one-click
 * unsubscription is not honoured.
 */
const signedHeaders = [
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
].join(':');

export interface Signer {
  domain: string;
  selector: string;
  privateKey: KeyObject;
}

/** A key is some kilobytes. */
const mostKeys = 1000;

/**
 * Keys ready to sign with, each opened and parsed once: OpenSSL also prepares a key when it first signs, and parsing
 * it anew for every mail costs as much as the signature. They are in memory only. Throws where there is no RSA key.
 */
export function createKeyRing(open: (sealed: string) => string): (sealed: string) => KeyObject {
  const keys = new LRUCache<string, KeyObject>({ max: mostKeys });
  return (sealed) => {
    const known = keys.get(sealed);
    if (known) return known;
    const key = createPrivateKey(open(sealed));
    if (key.asymmetricKeyType !== 'rsa') throw new Error(`not an RSA key: ${key.asymmetricKeyType}`);
    keys.set(sealed, key);
    return key;
  };
}

/** The message with its signature on top. Throws where no signature could be made: nothing leaves unsigned. */
export function sign(raw: Buffer, signer: Signer, at: number): Buffer {
  const bodyStart = raw.indexOf('\r\n\r\n') + 4;
  const { parsed } = parseHeaders(raw.subarray(0, bodyStart));
  const { canonicalizedHeader, dkimHeaderOpts: tags } = generateCanonicalizedHeader(
    'DKIM',
    getSigningHeaderLines(parsed, signedHeaders),
    {
      signingDomain: signer.domain,
      selector: signer.selector,
      algorithm: 'rsa-sha256',
      canonicalization: 'relaxed/relaxed',
      bodyHash: bodyHash(raw.subarray(bodyStart)),
      timestamp: Math.floor(at / 1000),
    },
  );
  const signature = signBytes('sha256', canonicalizedHeader, signer.privateKey);
  const header = formatSignatureHeaderLine('DKIM', { ...tags, b: signature.toString('base64') }, true);
  return Buffer.concat([Buffer.from(`${header}\r\n`), raw]);
}

/**
 * RFC 6376 section 3.4.4: white space at a line's end goes, other white space becomes one space, empty lines at the
 * end go. Most bodies have no white space to change and hash as they are: looking for it is a small part of the work
 * of rewriting.
 */
function bodyHash(body: Buffer): string {
  const isToChange = body.includes('\t') || / [ \r]/.test(body.toString('latin1')) || body.at(-1) !== 0x0a;
  if (!isToChange) return createHash('sha256').update(withoutEmptyEnd(body)).digest('base64');
  const hash = dkimBody('relaxed', 'sha256');
  hash.update(body);
  return hash.digest('base64');
}

function withoutEmptyEnd(body: Buffer): Buffer {
  let end = body.length;
  while (end >= 2 && body[end - 2] === 0x0d && body[end - 1] === 0x0a) end -= 2;
  return body.subarray(0, end === 0 ? 0 : end + 2);
}
