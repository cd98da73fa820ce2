/**
 * The Message-ID of a mail that came without one. It is keyed, so that a complaint that quotes it shows that its reporter
 * has had the mail (bounces/complaint-tokens.ts), and a made-up one is told without a look into the database.
 *
 *   base64url of  email id (16 octets) | tag (8)   @   name of this host
 *
 * 32 octets before the @, so that the field fits on a line: not every reader copes with a folded one.
 */
import { createHmac, createSecretKey, type KeyObject, timingSafeEqual } from 'node:crypto';
import { parse, stringify } from 'uuid';
import { deriveKey, keysOf, type Secrets } from '../base/secrets.ts';

export function createMessageId(secrets: Secrets, hostname: string): (emailId: string) => string {
  const keys = keysOf(secrets, keyOf);
  return (emailId) => {
    const id = parse(emailId);
    return `${Buffer.concat([id, tagOf(keys.current(), id)]).toString('base64url')}@${hostname}`;
  };
}

/** Whose Message-ID the part before the @ is, as an email's id; null: nobody's, the tag is not ours. */
export type ReadMessageId = (localPart: string) => string | null;

export function createMessageIdReader(secrets: Secrets): ReadMessageId {
  const keys = keysOf(secrets, keyOf);
  return (localPart) => {
    if (!/^[\w-]{32}$/.test(localPart)) return null;
    const bytes = Buffer.from(localPart, 'base64url');
    const [id, tag] = [bytes.subarray(0, 16), bytes.subarray(16)];
    return keys.find((key) => (timingSafeEqual(tag, tagOf(key, id)) ? stringify(id) : null));
  };
}

/** Bytes would be made a key of for every mail, which takes longer than the HMAC. */
function keyOf(secret: string): KeyObject {
  return createSecretKey(deriveKey(secret, 'message-id'));
}

function tagOf(key: KeyObject, id: Uint8Array): Buffer {
  return createHmac('sha256', key).update(id).digest().subarray(0, 8);
}
