/**
 * Mail that came in and is kept: bounces and complaints that changed something (db/bounces/returned-mail.ts writes those), and what
 * only people can read: letters to postmaster and abuse, and what came to a return path and is no bounce that we know.
 * Bounded, for anybody may write to us.
 */
import type { ParsedReturn } from '../../bounces/parse/parse-result.ts';
import type { Db } from '../engine/open.ts';
import { type InboundMail, mailRow } from './returned-mail.ts';

/** Letters, in all. */
const maxLetters = 1000;
/** What nobody could read, of one delivery. */
const maxOfOne = 3;

/** False: there is enough of that. */
export async function keepMail(
  db: Db,
  mail: InboundMail,
  deliveryId: string | null,
  reading: ParsedReturn,
): Promise<boolean> {
  return db.transaction(async (trx) => {
    if (deliveryId !== null) {
      // Of several that come at once, each counts those before it.
      await trx('deliveries').where({ id: deliveryId }).forNoKeyUpdate().first('id');
      const kept = await trx('inbound_mails')
        .where({ delivery_id: deliveryId, kind: reading.is })
        .pluck('id');
      if (kept.length >= maxOfOne) return false;
    }
    await trx('inbound_mails').insert(mailRow(mail, deliveryId, reading));
    if (deliveryId !== null) return true;
    const old: string[] = await trx('inbound_mails')
      .whereNull('delivery_id')
      .orderBy('id', 'desc')
      .offset(maxLetters)
      .limit(100)
      .pluck('id');
    if (old.length > 0) await trx('inbound_mails').whereIn('id', old).delete();
    return true;
  });
}

export interface InboundRecord {
  id: string;
  kind: string;
  at: number;
  sender: string;
  recipient: string;
  peer: string;
  size: number;
  /** The email that it is about. */
  emailId: string | null;
  /** Whom that email was for. */
  emailTo: string | null;
  reading: Record<string, unknown>;
}

const columns = ['id', 'kind', 'at', 'sender', 'recipient', 'peer', 'size', 'reading'].map(
  (name) => `inbound_mails.${name}`,
);

/** The newest first. */
export async function listInbound(
  db: Db,
  { kind, emailId, limit }: { kind?: string; emailId?: string; limit: number },
): Promise<InboundRecord[]> {
  const query = db('inbound_mails')
    .leftJoin('deliveries', 'deliveries.id', 'inbound_mails.delivery_id')
    .orderBy('inbound_mails.id', 'desc')
    .limit(limit)
    .select(...columns, 'deliveries.email_id', { email_to: 'deliveries.recipient' });
  if (kind !== undefined) query.where('inbound_mails.kind', kind);
  if (emailId !== undefined) query.where('deliveries.email_id', emailId);
  return (await query).map(({ email_id, email_to, reading, ...row }) => ({
    ...row,
    emailId: email_id,
    emailTo: email_to,
    reading: JSON.parse(reading),
  }));
}

/** As it came, from its beginning; null: there is no such mail. */
export async function readInbound(db: Db, id: string): Promise<{ raw: Buffer; size: number } | null> {
  const row = await db('inbound_mails').where({ id }).first('raw', 'size');
  return row ?? null;
}
