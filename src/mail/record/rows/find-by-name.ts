/**
 * Finds rows by what an operator has at hand: the end of an id, a Message-ID, a recipient's address. No index answers
 * these, so the rows are read from the newest one back, and a name that does not exist costs a scan of the table. Only the
 * command line may ask, because it asks in a process of its own; a server may call `emailIdByIndex`.
 */
import { validate as isUuid } from 'uuid';
import { isTo } from '#mail/queue/rows/recipient-condition.ts';
import type { Db } from '#platform/database/engine/open.ts';
import { domainOf } from '#platform/values/address.ts';

/** Ends of ids are random; with six hexadecimal digits, one in sixteen million is the same by chance. */
const idEnd = /^[0-9a-f-]{6,36}$/i;

/** More matches than this are not looked for. */
const maxMatches = 4;

type TableWithIds =
  | 'emails'
  | 'api_keys'
  | 'auto_pauses'
  | 'webhooks'
  | 'inbound_mails'
  | 'events'
  | 'receiving_routes'
  | 'received_mails';

/** The ids that are this one, or end like it; the newest first. */
export async function idsEndingIn(db: Db, table: TableWithIds, end: string): Promise<string[]> {
  const lower = end.trim().toLowerCase();
  if (isUuid(lower)) return db(table).where({ id: lower }).pluck('id');
  if (!idEnd.test(lower)) return [];
  const query = db(table).whereRaw('cast(id as text) like ?', [`%${lower}`]);
  return query.orderBy('id', 'desc').limit(maxMatches).pluck('id');
}

/** The ids of the emails with this id, end of an id, id of a delivery or Message-ID, or of the newest one to this address. */
export async function emailIdsOf(db: Db, name: string): Promise<string[]> {
  const trimmed = name.trim();
  const text = withoutBrackets(trimmed);
  const ids = await idsEndingIn(db, 'emails', text);
  if (ids.length > 0) return ids;
  if (isUuid(text)) return db('deliveries').where({ id: text.toLowerCase() }).pluck('email_id');
  if (!text.includes('@')) return [];
  const own = await ofOwnMessageId(db, text);
  if (own.length > 0) return own;
  // A text in angle brackets is a Message-ID; any other is more often an address.
  if (trimmed !== text) return ofMessageId(db, text);
  const newest = await newestTo(db, text);
  return newest.length > 0 ? newest : ofMessageId(db, text);
}

export const withoutBrackets = (text: string) => text.replace(/^<(.*)>$/s, '$1');

/** The organization's email with this id, id of a delivery or Message-ID of ours. */
export async function emailIdByIndex(db: Db, orgId: string, name: string): Promise<string | null> {
  const text = withoutBrackets(name.trim());
  const id = isUuid(text) ? text.toLowerCase() : idWithin(text);
  if (id === null) return null;
  const emails: string[] = await db('emails').where({ id, org_id: orgId }).pluck('id');
  const found =
    emails.length > 0 ? emails : await db('deliveries').where({ id, org_id: orgId }).pluck('email_id');
  return found[0] ?? null;
}

async function ofOwnMessageId(db: Db, messageId: string): Promise<string[]> {
  const id = idWithin(messageId);
  return id === null ? [] : db('emails').where({ id, message_id: messageId }).pluck('id');
}

/** A Message-ID of ours contains the id of its email (platform/values/message-id.ts). */
function idWithin(messageId: string): string | null {
  const [local = ''] = messageId.split('@');
  if (!/^[\w-]{32}$/.test(local)) return null;
  const hex = Buffer.from(local, 'base64url').toString('hex', 0, 16);
  const id = hex.replace(/^(.{8})(.{4})(.{4})(.{4})/, '$1-$2-$3-$4-');
  return isUuid(id) ? id : null;
}

async function ofMessageId(db: Db, messageId: string): Promise<string[]> {
  return db('emails').where({ message_id: messageId }).orderBy('id', 'desc').limit(maxMatches).pluck('id');
}

async function newestTo(db: Db, address: string): Promise<string[]> {
  if (domainOf(address) === null) return [];
  return db('deliveries').where(isTo(address)).orderBy('id', 'desc').limit(1).pluck('email_id');
}
