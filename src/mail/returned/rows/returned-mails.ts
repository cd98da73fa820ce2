/**
 * Stored mail that came in: bounces and complaints that changed a delivery (record-bounces.ts inserts those), and mail that only
 * people can read: letters to postmaster and abuse, and mail to a return path that is not a known kind of bounce. The number
 * is bounded, because anyone may send mail to us.
 */
import type { ParseResult } from '#mail/returned/parse-result.ts';
import { deleteBeyond } from '#platform/database/engine/delete-old.ts';
import type { Db } from '#platform/database/engine/open.ts';
import { mailRow, type ReturnedMail, returnedMails, withoutLink } from './record-bounces.ts';

/** Letters in total. */
const maxLetters = 1000;
/** Unrecognized mails for one delivery. */
const maxPerDelivery = 3;

/** False if the maximum is reached. */
export async function keepMail(
  db: Db,
  mail: ReturnedMail,
  deliveryId: string | null,
  reading: ParseResult,
): Promise<boolean> {
  return db.transaction(async (trx) => {
    let kept = mail;
    if (deliveryId !== null) {
      // The lock makes each of several mails at the same time count those before it.
      const delivery = await trx('deliveries').where({ id: deliveryId }).forNoKeyUpdate().first('org_id');
      if (delivery) kept = withoutLink(mail, { orgId: delivery.org_id });
      const before = await trx('inbound_mails')
        .where({ delivery_id: deliveryId, kind: reading.kind })
        .pluck('id');
      if (before.length >= maxPerDelivery) return false;
    }
    await trx('inbound_mails').insert(mailRow(kept, deliveryId, reading));
    if (deliveryId === null) await deleteBeyond(trx, 'inbound_mails', { delivery_id: null }, maxLetters);
    return true;
  });
}

const shown = returnedMails.pick('id', 'kind', 'at', 'sender', 'recipient', 'peer', 'size', 'reading');

export type ReturnedRecord = ReturnType<typeof shown.read> & {
  /** The email that the mail is about, and its recipient. */
  emailId: string | null;
  emailTo: string | null;
};

/** Lists mails, the newest first. */
export async function listReturned(
  db: Db,
  { kind, emailId, limit }: { kind?: string; emailId?: string; limit: number },
): Promise<ReturnedRecord[]> {
  const query = db('inbound_mails')
    .leftJoin('deliveries', 'deliveries.id', 'inbound_mails.delivery_id')
    .orderBy('inbound_mails.id', 'desc')
    .limit(limit)
    .select(...shown.columnsOf('inbound_mails'), 'deliveries.email_id', { email_to: 'deliveries.recipient' });
  if (kind !== undefined) query.where('inbound_mails.kind', kind);
  if (emailId !== undefined) query.where('deliveries.email_id', emailId);
  return (await query).map((row) => ({
    ...shown.read(row),
    emailId: row.email_id,
    emailTo: row.email_to,
  }));
}

/** Returns the first bytes of a mail as they were received; null if the mail does not exist. */
export async function readReturned(db: Db, id: string): Promise<{ raw: Buffer; size: number } | null> {
  const row = await db('inbound_mails').where({ id }).first('raw', 'size');
  return row ?? null;
}
