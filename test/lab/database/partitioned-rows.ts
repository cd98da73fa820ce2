/** Emails of any age with all that belongs to them, as rows, whose ids tell their age as the program's own do. */
import { v7 } from 'uuid';
import { insertOrganization } from '#accounts/rows/organizations.ts';
import type { Db } from '#platform/database/engine/open.ts';
import { boundName, createPartition, type PartitionedTable } from '#platform/database/schema/partitions.ts';

export interface EmailIds {
  emailId: string;
  deliveryId: string;
}

/** One of those that are there, or a new one. */
async function anyOrganization(db: Db): Promise<string> {
  return (await db('organizations').first('id'))?.id ?? insertOrganization(db, 'Acme', 0);
}

export async function insertEmail(db: Db, at: number, status = 'delivered'): Promise<EmailIds> {
  const org_id = await anyOrganization(db);
  const id = () => v7({ msecs: at });
  const [emailId, messageId, deliveryId] = [id(), id(), id()];
  const times = { created_at: at, updated_at: at };
  const texts = { recipients: '[]', tags: '{}', tracking: '{}' };
  await db.transaction(async (trx) => {
    await trx('emails').insert({
      id: emailId,
      org_id,
      message_id: 'm',
      sender: 'a@b.invalid',
      subject: 's',
      credits: 1,
      ...texts,
      ...times,
    });
    await trx('messages').insert({ id: messageId, email_id: emailId, size: 1, raw: Buffer.from('x') });
    await trx('deliveries').insert({
      id: deliveryId,
      email_id: emailId,
      org_id,
      message_id: messageId,
      position: 0,
      status,
      recipient: 'c@d.invalid',
      domain: 'd.invalid',
      expires_at: at,
      ...times,
    });
    await trx('attempts').insert({
      id: id(),
      delivery_id: deliveryId,
      number: 1,
      started_at: at,
      ended_at: at,
      verdict: '{}',
      transcript: '[]',
    });
    await trx('events').insert({
      id: id(),
      org_id,
      email_id: emailId,
      type: 'email.delivered',
      recipient: 'c@d.invalid',
      at,
      data: '{}',
    });
    await trx('inbound_mails').insert({
      id: id(),
      delivery_id: deliveryId,
      kind: 'bounce',
      sender: '',
      recipient: 'r@b.invalid',
      peer: '127.0.0.1',
      at,
      reading: '{}',
      size: 1,
      raw: Buffer.from('x'),
    });
  });
  return { emailId, deliveryId };
}

const dayMs = 86_400_000;

/** Partitions as the last month would have left them; what is there by now is new, and there is little of it. */
export async function splitTables(db: Db): Promise<void> {
  const today = Math.floor(Date.now() / dayMs) * dayMs;
  const ends: Record<PartitionedTable, number[]> = {
    attempts: [-30, -24, -18, -12, -6].map((days) => today + days * dayMs),
    emails: [-30, -20, -10].map((days) => today + days * dayMs),
    events: [10_000, 20_000, 30_000, 40_000, 60_000],
  };
  for (const [table, bounds] of Object.entries(ends) as [PartitionedTable, number[]][]) {
    await db.transaction(async (trx) => {
      const rows = await trx(`${table}_first`).select();
      await trx.raw(`drop table ${table}_first`);
      for (const [at, from] of [null, ...bounds].entries()) {
        const name = from === null ? `${table}_first` : `${table}_${boundName(table, from)}`;
        await createPartition(trx, table, { name, from, to: bounds[at] ?? null });
      }
      await trx(table).insert(rows);
    });
  }
}
