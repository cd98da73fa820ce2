/**
 * Addresses to which an organization sends no mail. `addressKey` is the normalized address, used for comparisons. An entry is of
 * the whole organization, or of one of its streams: then it stops the mail of that stream alone. Every change of a list adds an
 * event of the organization in the same transaction.
 */

import { newId } from '#platform/base/id.ts';
import { insertRows } from '#platform/database/engine/insert-rows.ts';
import { jsonRows, query } from '#platform/database/engine/json-rows.ts';
import { type Neighbors, nearestFirst } from '#platform/database/engine/neighbors.ts';
import type { Db, Trx } from '#platform/database/engine/open.ts';
import { partsOf } from '#platform/database/engine/parts-of.ts';
import type { Read } from '#platform/database/engine/read-together.ts';
import { json, number, orNull, records, text } from '#platform/database/engine/records.ts';
import { eventRow } from '#platform/database/tables/event-row.ts';
import { pagedSearch } from '#platform/database/tables/paged-search.ts';
import { lastIdOf, timeOfId } from '#platform/database/tables/time-of-id.ts';
import { compareKey } from '#platform/values/address.ts';
import type { Reply } from '#platform/values/glossary.ts';
import { replyIn } from './bounce-reply.ts';

const suppressions = records({
  id: text,
  address: text,
  addressKey: text,
  reason: text,
  createdAt: number,
  reply: orNull(json<Reply>()),
  /** `ofAll`, or the name of a stream. */
  stream: text,
});

/** The list that stops all mail of the organization. */
export const ofAll = '';

export type SuppressionRecord = ReturnType<typeof suppressions.read>;
export type Suppression = Pick<SuppressionRecord, 'address' | 'reason' | 'createdAt'>;

export interface NewSuppression {
  orgId: string;
  address: string;
  addressKey: string;
  reason: string;
  /** The email whose bounce or complaint caused it. */
  emailId?: string;
  /** With which it bounced (bounce-reply.ts). */
  reply?: Reply | null;
  /** The list; without it, that of all mail. */
  stream?: string | null | undefined;
}

/**
 * The reason for an address that is suppressed by hand; a reason such as "hard bounce: 550 5.1.1 No such user" quotes the
 * reply.
 */
export function suppressionOf(
  orgId: string,
  address: string,
  reason: string,
  reply: Reply | null = quotedIn(reason),
): NewSuppression {
  return { orgId, address, addressKey: compareKey(address), reason, reply };
}

const quotedReply = /^hard bounce: (?<said>[45]\d\d\b.*)/s;

function quotedIn(reason: string): Reply | null {
  const said = quotedReply.exec(reason)?.groups?.said;
  return said === undefined ? null : replyIn(said);
}

/** False if the address was already on the list; its first reason stays. */
export async function addSuppression(db: Db, suppression: NewSuppression, now: number): Promise<boolean> {
  return (await addSuppressions(db, [suppression], now)) > 0;
}

/** SQLite compiles several rows to a compound SELECT, which has at most 500 terms. */
const rowsPerStatement = 400;

/**
 * Returns how many were not on the list before. They are committed in parts, so that other writers have their turn. An
 * interrupted call can be repeated.
 */
export async function addSuppressions(
  db: Db,
  list: NewSuppression[],
  now: number,
  signal?: AbortSignal,
): Promise<number> {
  let added = 0;
  for (const part of partsOf(list, rowsPerStatement)) {
    signal?.throwIfAborted();
    added += await db.transaction((trx) => suppress(trx, part, now));
  }
  return added;
}

/** At most `rowsPerStatement` of them. Sorted, so that two transactions never deadlock. */
export async function suppress(trx: Trx, list: NewSuppression[], now: number): Promise<number> {
  if (list.length === 0) return 0;
  const suppressionKeyOf = ({ orgId, addressKey, stream }: NewSuppression) =>
    suppressionKey(orgId, addressKey, stream);
  const byKey = new Map([...list].reverse().map((one) => [suppressionKeyOf(one), one]));
  const rows = await trx('suppressions')
    .insert([...byKey.keys()].sort().map((key) => rowOf(byKey.get(key)!, now)))
    .onConflict(['org_id', 'stream', 'address_key'])
    .ignore()
    .returning(['org_id', 'stream', 'address_key']);
  const added = rows.map((row) => byKey.get(suppressionKey(row.org_id, row.address_key, row.stream))!);
  // Events of the organization, because an email's own events are only about its delivery.
  const events = added.map(({ orgId, address, reason, emailId = null, stream }) => {
    const data = { address, reason, emailId, ...(stream && { stream }) };
    return eventRow({ orgId, type: 'suppression.added', at: now, data });
  });
  await insertRows(trx, 'events', events);
  return added.length;
}

function rowOf(
  { orgId, address, addressKey, reason, reply = null, stream }: NewSuppression,
  now: number,
): object {
  const entry = { id: newId(), address, addressKey, reason, createdAt: now, reply, stream: stream ?? ofAll };
  return { org_id: orgId, ...suppressions.write(entry) };
}

/** False if the address was not on the list. */
export async function removeSuppression(
  db: Db,
  orgId: string,
  addressKey: string,
  now: number,
  stream = ofAll,
): Promise<boolean> {
  return db.transaction(async (trx) => {
    const row = await trx('suppressions')
      .where({ org_id: orgId, stream, address_key: addressKey })
      .forUpdate()
      .first();
    if (!row) return false;
    await trx('suppressions').where({ id: row.id }).delete();
    const { address, reason } = row;
    if (stream !== ofAll) await noteResubscribed(trx, { orgId, stream, addressKey });
    const data = { address, reason, ...(stream !== ofAll && { stream }) };
    const event = eventRow({ orgId, type: 'suppression.removed', at: now, data });
    await trx('events').insert(event);
    return true;
  });
}

interface StreamAddress {
  orgId: string;
  stream: string;
  addressKey: string;
}

/** The time is that of an id, because it is compared with ids of emails. */
async function noteResubscribed(trx: Trx, { orgId, stream, addressKey }: StreamAddress): Promise<void> {
  await trx('resubscriptions')
    .insert({ org_id: orgId, stream, address_key: addressKey, at: timeOfId(newId()) })
    .onConflict(['org_id', 'stream', 'address_key'])
    .merge();
}

/** When the address was last taken off the list of the stream; null: never. */
export async function resubscribedAt(
  db: Db,
  { orgId, stream, addressKey }: StreamAddress,
): Promise<number | null> {
  const row = await db('resubscriptions')
    .where({ org_id: orgId, stream, address_key: addressKey })
    .first('at');
  return row?.at ?? null;
}

export async function findSuppression(
  db: Db,
  orgId: string,
  addressKey: string,
  stream = ofAll,
): Promise<SuppressionRecord | null> {
  const row = await db('suppressions').where({ org_id: orgId, stream, address_key: addressKey }).first();
  return row ? suppressions.read(row) : null;
}

/** Entries of one address in all organizations. No index answers this; only the command line may ask. */
export async function suppressionsOf(
  db: Db,
  addressKey: string,
): Promise<(SuppressionRecord & { organization: string })[]> {
  const rows = await db('suppressions')
    .join('organizations', 'organizations.id', 'suppressions.org_id')
    .where({ address_key: addressKey })
    .orderBy('suppressions.id')
    .select('suppressions.*', 'organizations.name as organization');
  return rows.map((row) => ({ ...suppressions.read(row), organization: row.organization }));
}

export async function findSuppressionById(
  db: Db,
  orgId: string,
  id: string,
): Promise<SuppressionRecord | null> {
  const row = await db('suppressions').where({ id, org_id: orgId }).first();
  return row ? suppressions.read(row) : null;
}

/** The event of a suppression is inserted after it in the same transaction, which is short. */
const maxEventDelayMs = 10_000;

/** Returns the email whose bounce or complaint caused it; null if none did, or the event has been deleted. */
export async function causeOf(
  db: Db,
  orgId: string,
  { id, address }: SuppressionRecord,
): Promise<string | null> {
  const rows = await db('events')
    .where('id', '>', id)
    .where('id', '<=', lastIdOf(timeOfId(id) + maxEventDelayMs))
    .where({ org_id: orgId, type: 'suppression.added' })
    .orderBy('id')
    .select('data');
  const data = rows.map((row) => JSON.parse(row.data)).find((one) => one.address === address);
  return data?.emailId ?? null;
}

export async function listSuppressions(db: Db, orgId: string, stream = ofAll): Promise<SuppressionRecord[]> {
  const rows = await db('suppressions').where({ org_id: orgId, stream }).orderBy('address_key');
  return rows.map(suppressions.read);
}

export async function countSuppressions(db: Db, orgId: string, stream?: string): Promise<number> {
  const rows = db('suppressions').where({ org_id: orgId, ...(stream !== undefined && { stream }) });
  const row = await rows.count('* as count').first();
  return Number(row!.count);
}

/** The cause that put an address on the list. */
export type SuppressionOrigin = 'bounce' | 'complaint' | 'manual';

const bounceReasons = ['hard bounce', 'soft bounce'];
const bounceReasonLength = 11;
const complaintReason = 'complaint';

export function originOf({ reason }: Pick<Suppression, 'reason'>): SuppressionOrigin {
  if (bounceReasons.includes(reason.slice(0, bounceReasonLength))) return 'bounce';
  return reason === complaintReason ? 'complaint' : 'manual';
}

/** The same in SQL: a list that is read to find the few of one origin may have a million addresses. */
const isOfOrigin: Record<SuppressionOrigin, [sql: string, values: string[]]> = {
  bounce: [`substr(reason, 1, ${bounceReasonLength}) in (?, ?)`, bounceReasons],
  complaint: ['reason = ?', [complaintReason]],
  manual: [
    `substr(reason, 1, ${bounceReasonLength}) not in (?, ?) and reason <> ?`,
    [...bounceReasons, complaintReason],
  ],
};

export interface SuppressionKind {
  /** The list; without it, that of all mail. */
  stream?: string | undefined;
  origin?: SuppressionOrigin | undefined;
  createdFrom?: number | undefined;
  createdBefore?: number | undefined;
}

/** In the order of their keys, from after the key `after`, or backwards from `before`. */
export async function pageOfSuppressions(
  db: Db,
  {
    orgId,
    stream = ofAll,
    origin,
    createdFrom,
    createdBefore,
    ...page
  }: Neighbors & SuppressionKind & { orgId: string },
): Promise<SuppressionRecord[]> {
  const rows = db('suppressions').where({ org_id: orgId, stream });
  if (origin) rows.whereRaw(...isOfOrigin[origin]);
  if (createdFrom !== undefined) rows.where('created_at', '>=', createdFrom);
  if (createdBefore !== undefined) rows.where('created_at', '<', createdBefore);
  return (await nearestFirst(rows, ['address_key', 'asc'], page)).map(suppressions.read);
}

export interface SuppressionSearch extends SuppressionKind {
  orgId: string;
  /** In the address; null: every address. */
  substring: string | null;
  after: string | null;
  /** Entries before this one (null: before the end), the last of them first. */
  before?: string | null | undefined;
  limit: number;
}

export function searchSuppressions(
  db: Db,
  { orgId, substring, after, before, limit, ...kind }: SuppressionSearch,
) {
  const from = before === undefined ? 'after' : 'before';
  return pagedSearch({
    read: async (last, pageSize) => ({
      rows: await pageOfSuppressions(db, { ...kind, orgId, [from]: last, limit: pageSize }),
    }),
    positionOf: ({ addressKey }) => addressKey,
    isWanted: ({ addressKey }) => substring === null || addressKey.includes(substring),
    after: before ?? after,
    limit,
    maxScanned: 5000,
    pageSize: 500,
  });
}

/**
 * Returns the suppressed ones of these addresses, and those that bounced softly of late (soft-bounces.ts), as
 * `suppressionKey` writes them; one query for all.
 */
export async function suppressedAmong(db: Db, pairs: AddressOfOrganization[]): Promise<KnownAddresses> {
  const { sql, values, resultOf } = readSuppressed(db, pairs);
  return resultOf(await query(db, sql, values));
}

export interface AddressOfOrganization {
  orgId: string;
  addressKey: string;
  /** The list; without it, that of all mail. */
  stream?: string | null;
}

/** The lists that stop mail: that of all mail, and that of its stream. */
export function listsOf<Pair extends AddressOfOrganization>(pair: Pair): AddressOfOrganization[] {
  return pair.stream ? [{ ...pair, stream: ofAll }, pair] : [pair];
}

interface KnownAddresses {
  /** With the reasons. */
  suppressed: Map<string, string>;
  /** Addresses that bounced softly of late. */
  watched: Set<string>;
}

export function readSuppressed(db: Db, pairs: AddressOfOrganization[]): Read<FoundAddress, KnownAddresses> {
  const { from, column } = jsonRows(db, { org_id: 'uuid', stream: 'text', address_key: 'text' });
  const given = JSON.stringify(
    pairs.map(({ orgId, addressKey, stream }) => ({
      org_id: orgId,
      stream: stream ?? ofAll,
      address_key: addressKey,
    })),
  );
  const among = (table: string, stream: string, reason: string) =>
    `select '${table}' as found_in, kept.org_id, kept.address_key, ${stream} as stream, ${reason} as reason from ${from} cross join ${table} as kept
     where kept.org_id = ${column('org_id')} and kept.address_key = ${column('address_key')}`;
  return {
    sql: `${among('suppressions', 'kept.stream', 'kept.reason')} and kept.stream = ${column('stream')}
      union ${among('soft_bounces', "''", "''")}`,
    values: [given, given],
    columns: ['found_in', 'org_id', 'address_key', 'stream', 'reason'],
    resultOf(rows) {
      const foundIn = (table: string) =>
        new Map(
          rows
            .filter(({ found_in }) => found_in === table)
            .map((row) => [suppressionKey(row.org_id, row.address_key, row.stream), row.reason]),
        );
      return { suppressed: foundIn('suppressions'), watched: new Set(foundIn('soft_bounces').keys()) };
    },
  };
}

interface FoundAddress {
  found_in: string;
  org_id: string;
  address_key: string;
  stream: string;
  reason: string;
}

export function suppressionKey(orgId: string, addressKey: string, stream?: string | null): string {
  return stream ? `${orgId}/${stream} ${addressKey}` : `${orgId} ${addressKey}`;
}
