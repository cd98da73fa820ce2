/**
 * The streams of organizations (platform/values/stream.ts). A name never changes, because emails, suppressions and statistics have
 * it. What a removed stream has suppressed stays, so that people who left it get nothing from a new one of the same name.
 */

import { forUpdate, jsonRows, query } from '#platform/database/engine/json-rows.ts';
import type { Db, Trx } from '#platform/database/engine/open.ts';
import { flag, number, orNull, records, text, value } from '#platform/database/engine/records.ts';
import { isStreamName, maxStreams, type StreamKind } from '#platform/values/stream.ts';
import { insertWithin } from './organizations.ts';

const streams = records({
  orgId: text,
  name: text,
  /** For people: recipients see it on the page where they unsubscribe. */
  title: text,
  kind: value<StreamKind>(),
  /** Null: the organization's IP pool. */
  pool: orNull(text),
  /** Null: as the sender's domain has it. */
  openTracking: orNull(flag),
  clickTracking: orNull(flag),
  /** Recipients a day; null: only the organization's limit. */
  emailsPerDay: orNull(number),
  /** Of the page where recipients unsubscribe, as #rrggbb; null: ours. */
  color: orNull(text),
  createdAt: number,
});

export type Stream = ReturnType<typeof streams.read>;

export type StreamSettings = Pick<
  Stream,
  'title' | 'kind' | 'pool' | 'openTracking' | 'clickTracking' | 'emailsPerDay' | 'color'
>;

export async function listStreams(db: Db, orgId: string): Promise<Stream[]> {
  return (await db('streams').where({ org_id: orgId }).orderBy('name')).map(streams.read);
}

/** `name`: any text of a caller. */
export async function findStream(db: Db, orgId: string, name: string): Promise<Stream | null> {
  // PostgreSQL takes no NUL.
  if (!isStreamName(name)) return null;
  const row = await db('streams').where({ org_id: orgId, name }).first();
  return row ? streams.read(row) : null;
}

/** `taken`: the organization has a stream of this name; `full`: it has as many as it can have. */
export async function insertStream(db: Db, stream: Stream): Promise<'created' | 'taken' | 'full'> {
  const terms = { orgId: stream.orgId, table: 'streams', max: maxStreams };
  const inserted = await insertWithin(db, terms, (trx) =>
    trx('streams').insert(streams.write(stream)).onConflict(['org_id', 'name']).ignore().returning('name'),
  );
  if (inserted?.length) return 'created';
  return (await findStream(db, stream.orgId, stream.name)) ? 'taken' : 'full';
}

/** False if there is no such stream. */
export async function changeStream(
  db: Db,
  { orgId, name }: Pick<Stream, 'orgId' | 'name'>,
  changes: Partial<StreamSettings>,
): Promise<boolean> {
  const row = streams.write(changes);
  if (Object.keys(row).length === 0) return (await findStream(db, orgId, name)) !== null;
  return (await db('streams').where({ org_id: orgId, name }).update(row)) > 0;
}

export async function removeStream(db: Db, orgId: string, name: string): Promise<boolean> {
  return (await db('streams').where({ org_id: orgId, name }).delete()) > 0;
}

/** How many recipients a stream with a limit has had on a day. */
export interface StreamUse {
  orgId: string;
  stream: string;
  day: string;
  emails: number;
}

export const streamUseKey = ({ orgId, stream }: Pick<StreamUse, 'orgId' | 'stream'>) => `${orgId} ${stream}`;

/** Of streams that have a limit. Locks the rows until the transaction ends; the organizations are locked before. */
export async function readStreamUses(
  trx: Trx,
  sends: { orgId: string; stream?: string | null; streamLimit?: number | null }[],
  day: string,
): Promise<Map<string, StreamUse>> {
  const wanted = sends.filter(({ stream, streamLimit }) => stream && streamLimit != null);
  if (wanted.length === 0) return new Map();
  const { from, column } = jsonRows(trx, { org_id: 'text', name: 'text' });
  const list = wanted.map(({ orgId, stream }) => ({ org_id: orgId, name: stream }));
  const rows = await query<{ org_id: string; name: string; used_day: string | null; used: number }>(
    trx,
    `select streams.org_id, streams.name, used_day, used from streams
     where exists (select 1 from ${from} where streams.org_id = ${column('org_id')} and streams.name = ${column('name')})
     order by streams.org_id, streams.name ${forUpdate(trx)}`,
    [JSON.stringify(list)],
  );
  return new Map(
    rows.map(({ org_id: orgId, name: stream, used_day, used }) => {
      const use = { orgId, stream, day, emails: used_day === day ? used : 0 };
      return [streamUseKey(use), use];
    }),
  );
}

export async function saveStreamUses(trx: Trx, uses: Iterable<StreamUse>): Promise<void> {
  const list = [...uses].map(({ orgId, stream, day, emails }) => ({
    org_id: orgId,
    name: stream,
    day,
    used: emails,
  }));
  if (list.length === 0) return;
  const { from, column } = jsonRows(trx, { org_id: 'text', name: 'text', day: 'text', used: 'integer' });
  await query(
    trx,
    `update streams set used_day = ${column('day')}, used = ${column('used')} from ${from}
     where streams.org_id = ${column('org_id')} and streams.name = ${column('name')}`,
    [JSON.stringify(list)],
  );
}
