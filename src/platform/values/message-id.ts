/**
 * The Message-ID of a mail whose caller gave none. It contains a keyed tag, so that a complaint that quotes it proves that
 * its reporter received the mail (mail/returned/complaint-tokens.ts), and a forged one is recognized without the database.
 *
 *   base64url of  email id (16 bytes) | tag (8)   @   name of this host
 *
 * The part before the @ has 32 bytes, so that the field fits on one line: not every reader copes with a folded one.
 */
import { timingSafeEqual } from 'node:crypto';
import { stringify } from 'uuid';
import { type Hmac, hmacSha256 } from '#platform/base/hmac.ts';
import { deriveKey, keysOf, type Secrets } from '#platform/base/secrets.ts';

export function createMessageId(secrets: Secrets, hostname: string): (emailId: string) => string {
  const keys = keysOf(secrets, hmacWith);
  return (emailId) => {
    const id = Buffer.from(emailId.replaceAll('-', ''), 'hex');
    return `${Buffer.concat([id, tagOf(keys.current(), id)]).toString('base64url')}@${hostname}`;
  };
}

/** The email id in the part before the @; null if the tag is not ours. */
export type ReadMessageId = (localPart: string) => string | null;

export function createMessageIdReader(secrets: Secrets): ReadMessageId {
  const keys = keysOf(secrets, hmacWith);
  return (localPart) => {
    if (!/^[\w-]{32}$/.test(localPart)) return null;
    const bytes = Buffer.from(localPart, 'base64url');
    const [id, tag] = [bytes.subarray(0, 16), bytes.subarray(16)];
    return keys.find((key) => (timingSafeEqual(tag, tagOf(key, id)) ? stringify(id) : null));
  };
}

function hmacWith(secret: string): Hmac {
  return hmacSha256(deriveKey(secret, 'message-id'));
}

function tagOf(hmac: Hmac, id: Buffer): Buffer {
  return hmac(id).subarray(0, 8);
}
