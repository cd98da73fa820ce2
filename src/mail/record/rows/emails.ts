/** Reads emails with their deliveries, events and attempts, in a fixed number of statements. */

import { query } from '#platform/database/engine/json-rows.ts';
import { type Db, isPostgres, type Trx } from '#platform/database/engine/open.ts';
import { number, orNull, records, text } from '#platform/database/engine/records.ts';
import { deliveries, type EmailRow, emails } from '#platform/database/tables/mail-tables.ts';
import { bytesOf, type StoredMessage, storedMessage } from '#platform/database/tables/messages.ts';
import { attemptDetail, eventData, lastResult } from '#platform/database/tables/packed-records.ts';
import { tallyFrom } from './engagement.ts';

const events = records({
  id: text,
  type: text,
  at: number,
  recipient: orNull(text),
});

const attempts = records({
  deliveryId: text,
  number,
  startedAt: number,
  endedAt: number,
});

export type DeliveryRecord = ReturnType<typeof deliveryFrom>;
export type AttemptRecord = ReturnType<typeof attemptFrom>;
export type EmailRecord = EmailRow & {
  /** In the order to, cc, bcc. */
  deliveries: DeliveryRecord[];
  events: ReturnType<typeof eventFrom>[];
};

/**
 * `orgId` null (the operator): an email of any organization. A test key (`isTest`) finds test mail only. All parts are read at
 * one moment, so that the events match the states of the deliveries.
 */
export function findEmail(
  db: Db,
  id: string,
  orgId: string | null,
  { isTest = false }: { isTest?: boolean } = {},
): Promise<EmailRecord | null> {
  const oneMoment = isPostgres(db) ? { isolationLevel: 'repeatable read' as const } : undefined;
  return db.transaction((trx) => readEmail(trx, id, orgId, isTest), oneMoment);
}

async function readEmail(
  trx: Trx,
  id: string,
  orgId: string | null,
  onlyTest: boolean,
): Promise<EmailRecord | null> {
  const row = await trx('emails')
    .where(orgId === null ? { id } : { id, org_id: orgId })
    .first();
  if (!row || (onlyTest && !row.is_test)) return null;
  const deliveryRows = await trx('deliveries').where({ email_id: id }).orderBy('position');
  const eventRows = await trx('events').where({ email_id: id }).orderBy('position');
  return {
    ...emails.read(row),
    deliveries: deliveryRows.map(deliveryFrom),
    events: eventRows.map(eventFrom),
  };
}

// biome-ignore lint/suspicious/noExplicitAny: the driver's rows have no type
function deliveryFrom(row: any) {
  return {
    ...deliveries.read(row),
    ...lastResult(row),
    /** When the delivery is due; if that has passed, it waits for capacity at its destination. */
    nextAttemptAt: row.status === 'sending' ? null : (row.due_at as number | null),
    opens: tallyFrom(row, 'open'),
    clicks: tallyFrom(row, 'click'),
  };
}

// biome-ignore lint/suspicious/noExplicitAny: the driver's rows have no type
const eventFrom = (row: any) => ({ ...events.read(row), data: eventData(row) });

// biome-ignore lint/suspicious/noExplicitAny: the driver's rows have no type
export const attemptFrom = (row: any) => ({ ...attempts.read(row), ...attemptDetail(row) });

/** Lists all attempts of an email's deliveries, or of one recipient's, the oldest first, with their transcripts. */
export async function listAttempts(db: Db, emailId: string, recipient?: string): Promise<AttemptRecord[]> {
  const rows = db('attempts')
    .join('deliveries', 'deliveries.id', 'attempts.delivery_id')
    .where('deliveries.email_id', emailId)
    .orderBy([{ column: 'deliveries.position' }, { column: 'attempts.number' }])
    .select('attempts.*');
  if (recipient !== undefined) rows.where('deliveries.recipient', recipient);
  return (await rows).map(attemptFrom);
}

const maxScanned = 200;

/** The latest email of a key, if it is among the organization's latest. */
export async function latestEmailOf(db: Db, orgId: string, keyId: string): Promise<string | null> {
  const latest = db('emails').where({ org_id: orgId }).orderBy('id', 'desc').limit(maxScanned);
  const row = await db(latest.select('id', 'key_id').as('latest')).where({ key_id: keyId }).first('id');
  return row?.id ?? null;
}

/** Returns the messages of an email, or the first ones, exactly as they are sent, as long as they are kept. */
export async function readSources(db: Db, emailId: string, limit = 1000): Promise<Buffer[]> {
  const rows = await query<StoredMessage>(
    db,
    `select ${storedMessage} where messages.email_id = ? and size > 0 order by id limit ?`,
    [emailId, limit],
  );
  return rows.map((row) => bytesOf(row)).filter((raw) => raw.length > 0);
}
