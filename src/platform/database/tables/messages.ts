/**
 * Messages are stored whole, packed if that makes them smaller (platform/values/packed-message.ts). If tracking makes a copy
 * for each recipient, the copies are stored as patches (platform/base/byte-patch.ts) of their common bytes, the email's row in
 * message_bases. The rows of both tables are inserted and deleted together.
 */
import { patched } from '#platform/base/byte-patch.ts';
import { unpackMessage } from '#platform/values/packed-message.ts';

export interface StoredMessage {
  /** The whole message, packed; or a patch of its base. */
  bytes: Buffer;
  /** 0 and 1 on SQLite. */
  isPatch: boolean | number;
  base: Buffer | null;
}

/** The columns and tables of a SELECT of `StoredMessage`. */
export const storedMessage = `messages.raw as bytes, messages.is_patch as "isPatch", message_bases.raw as base
  from messages left join message_bases on messages.is_patch and message_bases.email_id = messages.email_id`;

/** The bytes exactly as they are sent; empty if an older version has deleted them. */
export function bytesOf({ bytes, isPatch, base }: StoredMessage): Buffer {
  if (!isPatch || bytes.length === 0) return unpackMessage(bytes);
  if (!base) throw new Error('the base of a patched message is not in the database');
  return patched(unpackMessage(base), bytes);
}
