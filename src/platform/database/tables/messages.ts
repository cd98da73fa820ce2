/**
 * Messages are stored whole, packed if that makes them smaller (platform/values/packed-message.ts). If tracking makes a copy
 * for each recipient, the copies are stored as patches (platform/base/byte-patch.ts) of their common bytes, the email's row in
 * message_bases. The rows of both tables are inserted and deleted together.
 */
import { patched } from '#platform/base/byte-patch.ts';
import type { Trx } from '#platform/database/engine/open.ts';
import { deliveryStates, serverOrgId } from '#platform/values/glossary.ts';
import { isSealed, unpackMessage } from '#platform/values/packed-message.ts';
import { isFinal } from '#platform/values/states.ts';

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

/** Opens a sealed message. */
export type OpenSealed = (sealed: Buffer) => Buffer;

const nothing = Buffer.alloc(0);

/** The bytes exactly as they are sent; empty if they have been deleted, or are sealed and the caller cannot open them. */
export function bytesOf({ bytes, isPatch, base }: StoredMessage, open?: OpenSealed): Buffer {
  if (isSealed(bytes)) return open ? unpackMessage(open(bytes)) : nothing;
  if (!isPatch || bytes.length === 0) return unpackMessage(bytes);
  if (!base) throw new Error('the base of a patched message is not in the database');
  return patched(unpackMessage(base), bytes);
}

const unfinished = deliveryStates.filter((state) => !isFinal(state));

/**
 * Empties the messages of the server's own mail of which nothing waits any more: a link is for its recipient alone. The caller
 * has locked the emails, so that of two that end at the same time one sees the other.
 */
export async function emptyServerMessages(
  trx: Trx,
  changed: { orgId: string; emailId: string }[],
): Promise<void> {
  const ids = changed.filter(({ orgId }) => orgId === serverOrgId).map(({ emailId }) => emailId);
  if (ids.length === 0) return;
  const waiting = trx('deliveries').whereIn('email_id', ids).whereIn('status', unfinished).select('email_id');
  await trx('messages')
    .whereIn('email_id', ids)
    .whereNotIn('email_id', waiting)
    .update({ raw: nothing, size: 0 });
}
