/**
 * The rows of received mail. They are kept for POSTERN_KEEP_RECEIVED, and an organization's take at most
 * POSTERN_RECEIVED_STORE: the row of received_stores counts them, so that no statement reads what is kept.
 */

import type { ReceivedMail, ReceivedSummary } from '#mail/received/received-mail.ts';
import type { Db, Trx } from '#platform/database/engine/open.ts';
import { json, number, orNull, records, text, value } from '#platform/database/engine/records.ts';
import { packMessage, unpackMessage } from '#platform/values/packed-message.ts';
import { receivedTestDomain } from '#platform/values/test-route.ts';

const receivedMails = records({
  id: text,
  orgId: text,
  domain: text,
  routeId: text,
  action: value<'webhook' | 'store'>(),
  webhookId: orNull(text),
  recipients: json<string[]>(),
  sender: text,
  peer: text,
  helo: text,
  messageId: orNull(text),
  subject: text,
  fromHeader: text,
  inReplyTo: orNull(text),
  summary: json<ReceivedSummary>(),
  size: number,
  at: number,
});

/** A mail to be kept, with its bytes. */
export interface NewReceivedMail extends ReceivedMail {
  raw: Buffer;
}

/** One insert each, because bytes in JSON take four times their size. */
export async function insertReceived(trx: Trx, mails: readonly NewReceivedMail[]): Promise<void> {
  for (const { raw, ...mail } of mails)
    await trx('received_mails').insert({ ...receivedMails.write(mail), raw: packMessage(raw) });
  await count(trx, mails, 1);
}

/** `orgId` null: a mail of any organization. */
export async function findReceived(db: Db, orgId: string | null, id: string): Promise<ReceivedMail | null> {
  const row = await db('received_mails')
    .where(orgId === null ? { id } : { id, org_id: orgId })
    .first(receivedMails.columns);
  return row ? receivedMails.read(row) : null;
}

/** Lists an organization's mails, the newest first: those before the id `before`, or the last ones after `after`. */
export async function listReceived(
  db: Db,
  orgId: string,
  { before, after, limit, onlyTest = false }: ReceivedPage,
): Promise<ReceivedMail[]> {
  const rows = db('received_mails')
    .where({ org_id: orgId })
    .orderBy('id', 'desc')
    .limit(limit)
    .select(receivedMails.columns);
  if (before !== undefined) rows.where('id', '<', before);
  if (after !== undefined) rows.clearOrder().where('id', '>', after).orderBy('id');
  if (onlyTest) rows.where({ domain: receivedTestDomain });
  const mails = (await rows).map((row) => receivedMails.read(row));
  return after === undefined ? mails : mails.reverse();
}

/** The bytes of a mail as they came, after our fields; null if it does not exist. */
export async function rawOf(db: Db, orgId: string, id: string): Promise<Buffer | null> {
  const row = await db('received_mails').where({ id, org_id: orgId }).first('raw');
  return row ? unpackMessage(row.raw) : null;
}

/** What an organization's mails take. */
export async function storedBytes(db: Db, orgId: string): Promise<number> {
  const row = await db('received_stores').where({ org_id: orgId }).first('bytes');
  return row?.bytes ?? 0;
}

const rowsAtOnce = 100;

/** Deletes mails from before `until`, a bounded number of them; returns how many. The oldest have the first ids. */
export async function deleteOldReceived(db: Db, until: number): Promise<number> {
  return db.transaction(async (trx) => {
    // Locked, because another node may be deleting them too, and then they are counted once.
    const first: Counted[] = await trx('received_mails')
      .orderBy('id')
      .limit(rowsAtOnce)
      .forUpdate()
      .select('id', 'at', 'org_id as orgId', 'size');
    const old = first.filter(({ at }) => at < until);
    if (old.length === 0) return 0;
    await trx('received_mails')
      .whereIn(
        'id',
        old.map(({ id }) => id),
      )
      .delete();
    await count(trx, old, -1);
    return old.length;
  });
}

interface Counted {
  id: string;
  orgId: string;
  size: number;
  at: number;
}

/** In the order of the organizations, so that two nodes never wait for each other. */
async function count(
  trx: Trx,
  mails: readonly Pick<Counted, 'orgId' | 'size'>[],
  sign: 1 | -1,
): Promise<void> {
  const byOrg = new Map<string, { mails: number; bytes: number }>();
  for (const { orgId, size } of mails) {
    const sum = byOrg.get(orgId) ?? { mails: 0, bytes: 0 };
    byOrg.set(orgId, { mails: sum.mails + sign, bytes: sum.bytes + sign * size });
  }
  for (const [orgId, { mails: more, bytes }] of [...byOrg].sort(([a], [b]) => (a < b ? -1 : 1)))
    await trx('received_stores')
      .insert({ org_id: orgId, mails: more, bytes })
      .onConflict('org_id')
      .merge({
        mails: trx.raw('received_stores.mails + excluded.mails'),
        bytes: trx.raw('received_stores.bytes + excluded.bytes'),
      });
}

interface ReceivedPage {
  before?: string | undefined;
  after?: string | undefined;
  limit: number;
  onlyTest?: boolean;
}
