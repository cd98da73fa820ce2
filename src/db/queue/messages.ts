/**
 * How messages are kept: whole; or, where tracking gives each recipient a copy, as patches (base/byte-patch.ts) of what the copies of
 * an email have in common, its row in message_bases. Both tables' bytes come and go in the same transactions.
 */
import { patched } from '../../base/byte-patch.ts';

export interface StoredMessage {
  raw: Buffer;
  /** 0 and 1 on SQLite. */
  isPatch: boolean | number;
  base: Buffer | null;
}

/** For a SELECT of `StoredMessage`. */
export const storedMessage = `messages.raw, messages.is_patch as "isPatch", message_bases.raw as base
  from messages left join message_bases on messages.is_patch and message_bases.email_id = messages.email_id`;

/** Exactly as it goes on the wire; empty where it is not kept any more. */
export function bytesOf({ raw, isPatch, base }: StoredMessage): Buffer {
  if (!isPatch || raw.length === 0) return raw;
  if (!base) throw new Error('what a message is a patch of is not in the database');
  return patched(base, raw);
}
